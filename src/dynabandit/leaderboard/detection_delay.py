"""How many steps a policy needs to detect that another arm has become the best."""

import numpy as np

from dynabandit.results import Run

HALF, WINDOW = 0.5, 50  # share of the plays, and number of steps


def detection_delay(run: Run) -> float | None:
    """Return the steps after the first recorded one until half of the plays of 50 steps go to the best arm, or None.

    Several steps are counted, since a policy that explores every arm at regular intervals plays the new best arm now
    and then without having detected the change.
    """
    spacing = int(run.times[1] - run.times[0]) if len(run.times) > 1 else 1
    after = run.correct[1:]  # the first recorded step is the last before the change
    length = min(max(1, WINDOW // spacing), after.size)
    if length == 0:
        return None
    shares = np.convolve(after, np.full(length, 1.0 / length), mode="valid")
    detected = np.flatnonzero(shares >= HALF - 1e-9)
    return float(run.times[1:][detected[0]] - run.times[0]) if detected.size else None
