"""Decides and rewards with a local decider until it is killed, and prints what is durable.

Run it as `python decider_process.py URL FOLDER TIMEOUT`.
"""

import json
import sys

import dynabandit as db


def main(url: str, folder: str, timeout: float) -> None:
    with db.LocalDecider(url, "b", folder, refresh_seconds=0.05, timeout=timeout) as decider:
        while True:
            made = decider.decide_many(20)
            for one in made:
                decider.reward(one.decision, one.arm == "blue")
            decider.flush()
            sys.stdout.write(f"{json.dumps([[one.decision, one.arm] for one in made])}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
