"""A bandit without HTTP or threads, for tests of the domain."""

import contextlib
from typing import Any

import numpy as np

from dynabandit.service import api_types
from dynabandit.service.domain import changes
from dynabandit.service.domain.alerts import raise_alerts
from dynabandit.service.domain.decisions import decide
from dynabandit.service.domain.rewards import reward, settle_due
from dynabandit.service.domain.unit_of_work import UnitOfWork
from dynabandit.service.errors import LateRewardError
from dynabandit.service.stores import open_store
from dynabandit.service.verify import verify_bandit
from tools.harness import ARMS, ManualClock

FEATURES = {"hour": "number", "new": "boolean", "country": {"kind": "category", "values": ["NO", "SE"]}}
COUNTRIES = ("NO", "SE", "DK")


class Shop:
    """A bandit "b" in a store, whose clock the test moves."""

    def __init__(self, url: str, **given: Any) -> None:
        self.store = open_store(url)
        self.store.prepare()
        self.clock = ManualClock()
        self.work = UnitOfWork(self.store, self.clock)
        self.rng = np.random.default_rng(5)
        asked = api_types.Create(arms=ARMS, seed=11, **given)
        self.bandit_number = self.run(lambda: changes.create(self.work, "b", asked))[0].bandit_number

    @property
    def state(self) -> Any:
        return self.work.state(self.bandit_number)

    def run(self, function: Any) -> Any:
        result = function()
        raise_alerts(self.work)
        self.store.commit(*self.work.batch())
        self.work.clear()
        return result

    def decide(self, key: str | None = None, **asked: Any) -> api_types.Decision:
        [made] = self.run(lambda: decide(self.work, "b", api_types.Decide(**asked), key))
        return made

    def reward(self, decision: api_types.Decision, value: float) -> None:
        with contextlib.suppress(LateRewardError):  # which closes the decision
            reward(self.work, self.bandit_number, decision.step, value)
        self.run(lambda: None)

    def context(self) -> dict[str, Any]:
        hour = None if self.rng.random() < 0.1 else float(self.rng.normal(12, 4))
        return {"hour": hour, "new": bool(self.rng.random() < 0.5), "country": str(self.rng.choice(COUNTRIES))}

    def learn(self, steps: int) -> None:
        """Decide and reward in another order; the best arm depends on the context, and some decisions get no reward."""
        waiting: list[tuple[api_types.Decision, float]] = []
        for _ in range(steps):
            context = self.context()
            made = self.decide(context=context)
            waiting.append((made, float((made.arm == "blue") == context["new"])))
            self.clock.seconds += 1.0
            self.rng.shuffle(waiting)
            if len(waiting) > 5:
                self.reward(*waiting.pop())
            self.run(lambda: settle_due(self.work, self.bandit_number))

    def assert_replays(self) -> None:
        now = self.state.state_hash()
        other = UnitOfWork(self.store, self.clock)
        assert other.state(self.bandit_number).state_hash() == now, "from the latest snapshot, or the whole log"
        found = verify_bandit(self.store, self.bandit_number, "b")
        assert (found.problem, found.state_hash) == (None, now)
