"""The log of something that fails for a while: a line when it begins, once per minute, and when it works again."""

import time
from collections import Counter
from collections.abc import Callable

from dynabandit.service.logging_setup import log

LINE_SECONDS = 60.0
STEADY_SECONDS = 10.0  # after which it works again: on a full disk some calls succeed between others that fail
MAX_PROBLEMS = 10  # different ones that are named in a line
OTHERS = "other problems"


class FailureLog:
    """Logs the failures of `name`; it belongs to one thread. `timer` returns seconds that never go back."""

    def __init__(self, name: str, timer: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._timer = timer
        self._began: float | None = None
        self._works_since: float | None = None
        self._next_line = 0.0
        self._total: Counter[str] = Counter()  # failed calls by problem
        self._recent: Counter[str] = Counter()  # the same since the latest line

    def note_failure(self, problem: str, calls: int = 1) -> None:
        """Note a problem, which so many calls have met."""
        now, self._works_since = self._timer(), None
        if self._began is None:
            self._began, self._next_line = now, now + LINE_SECONDS
            self._total, self._recent = Counter({problem: calls}), Counter()
            log.error(f"{self._name} failed", problem=problem, calls=calls)
            return
        counted = problem if problem in self._total or len(self._total) < MAX_PROBLEMS else OTHERS
        self._total[counted] += calls
        self._recent[counted] += calls
        self.write_due()

    def note_success(self) -> None:
        """Note that it worked."""
        if self._began is not None and self._works_since is None:
            self._works_since = self._timer()
        self.write_due()

    def write_due(self) -> None:
        """Write the line that is due, if there is one; call it about once per second."""
        if self._began is None:
            return
        now = self._timer()
        if self._works_since is not None:
            if now - self._works_since >= STEADY_SECONDS:
                seconds = round(self._works_since - self._began, 3)
                log.info(f"{self._name} works again", seconds=seconds, calls=dict(self._total))
                self._began = None
        elif now >= self._next_line:
            log.error(f"{self._name} still fails", seconds=round(now - self._began, 3), calls=dict(self._recent))
            self._recent.clear()
            self._next_line = now + LINE_SECONDS
