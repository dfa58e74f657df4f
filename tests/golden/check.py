"""Compare decisions with the recorded ones, in this process: compiled, interpreted or on the simulated GPU.

python tests/golden/check.py                               # every environment, compiled
python tests/golden/check.py paper                         # the tables of the whole paper
NUMBA_DISABLE_JIT=1 python tests/golden/check.py case-1/10  # one of them, interpreted
NUMBA_ENABLE_CUDASIM=1 python tests/tools/cudasim.py tests/golden/check.py case-3/2 ucb ts
"""

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as a script
from golden.cases import HERE, HORIZON, SHORT_HORIZON, paper_hashes, simulate_case

FIGURES = 19


def main(cases: list[str], policies: list[str]) -> int:
    on_gpu = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
    recorded = json.loads((HERE / ("decisions-short.json" if on_gpu else "decisions.json")).read_text())
    backend, horizon = ("cuda", SHORT_HORIZON) if on_gpu else ("cpu", HORIZON)
    wrong = 0
    for case in cases or recorded:
        name, arms = case.split("/")
        expected = {key: value for key, value in recorded[case].items() if not policies or key in policies}
        found = simulate_case(name, int(arms), list(expected), horizon, backend)
        for policy in expected:
            if found[policy] != expected[policy]:
                wrong += 1
                print(f"{policy} on {case} decides otherwise than recorded")
    return int(wrong > 0)


def check_paper() -> int:
    recorded = json.loads((HERE / "paper-quick.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        wrong = [name for name, found in paper_hashes(Path(folder)).items() if found != recorded[name]]
        drawn = len(list((Path(folder) / "figures").glob("*.svg")))
    if wrong:
        print(f"the paper writes other bytes than recorded into {', '.join(wrong)}")
    if drawn != FIGURES:
        print(f"the report of the paper has {drawn} figures, not {FIGURES}")
    return int(bool(wrong) or drawn != FIGURES)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words == ["paper"]:
        sys.exit(check_paper())
    sys.exit(main([word for word in words if "/" in word], [word for word in words if "/" not in word]))
