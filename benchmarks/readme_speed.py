"""Write the table of speeds in README.md from the measurements of peers.py and contextual_peers.py.

    python benchmarks/readme_speed.py

Both benchmarks also write it, with --write. It measures nothing.
"""

import json
from pathlib import Path
from typing import Any

from report import DOCS, replace_part, table

README = Path(__file__).parent.parent / "README.md"
MEASURED = DOCS / "measured"
LIBRARIES = ("dynabandit", "river", "MABWiser", "pymab", "Vowpal Wabbit", "bayesianbandits", "GrowthBook")
SIMULATED_AS = {"pymab": "pymab's Rust loop"}
DECIDED_AS = {"dynabandit": {"Bandit lin-ucb": "`lin-ucb`", "Bandit mix-lin-ucb": "`auto`"}}
SIMULATIONS = (("ucb", "UCB"), ("ts", "Thompson sampling"))
ARMS = "50"
NOT_MEASURED = "not measured"
HEADING = "Speed, in microseconds of processor time on one core ({processor}):"
NOTES = """\
A simulated step is a decision, its reward and the update. The times of pymab are those of its compiled loop. In the
last column each library is called from Python with a policy that it has: Thompson sampling for bayesianbandits,
epsilon-greedy for Vowpal Wabbit, LinUCB for the others. The measurements are described in
[Performance](docs/performance.md) and [The recommended policy with features](docs/auto-context.md); `make bench-peers`
repeats them."""


def text() -> str:
    """Return the part of README.md about speed."""
    peers = json.loads((MEASURED / "peers.json").read_text(encoding="utf-8"))
    contextual = json.loads((MEASURED / "contextual-speed.json").read_text(encoding="utf-8"))
    head = [
        "library",
        *(f"simulated step: {label}, {ARMS} arms" for _, label in SIMULATIONS),
        "decision by features and its update: 10 features, 10 arms",
    ]
    rows = [
        [
            library,
            *(simulated(peers, library, name) for name, _ in SIMULATIONS),
            decided(contextual, library),
        ]
        for library in LIBRARIES
    ]
    return f"""{HEADING.format(processor=peers["machine"]["processor"])}

{table(head, rows)}

{NOTES}"""


def simulated(peers: dict[str, Any], library: str, policy: str) -> str:
    """Return the time of a simulated step."""
    times = peers["microseconds"].get(SIMULATED_AS.get(library, library), {})
    return shown(times.get(policy, {}).get(ARMS))


def decided(contextual: dict[str, Any], library: str) -> str:
    """Return the time of a decision by features and its update."""
    times = contextual["one by one"]
    if library not in DECIDED_AS:
        return shown(times.get(library))
    return ", ".join(f"{shown(times[name])} ({label})" for name, label in DECIDED_AS[library].items())


def shown(microseconds: float | None) -> str:
    """Return a time with two digits.

    >>> shown(0.0842), shown(32.9), shown(1327.0), shown(None)
    ('0.084', '33', '1,300', 'not measured')
    """
    if microseconds is None:
        return NOT_MEASURED
    rounded = float(f"{microseconds:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def write() -> None:
    """Write the table into README.md."""
    replace_part(README, "speed", text())


if __name__ == "__main__":
    write()
