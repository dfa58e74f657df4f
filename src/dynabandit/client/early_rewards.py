"""Rewards of decisions that another local decider has made and not sent yet."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dynabandit.client.local_log import LocalLog
from dynabandit.service.api_types import RewardResult
from dynabandit.service.local_types import LocalBatch

RETRY_SECONDS = 180.0  # time enough to find the file of a decider that was killed, and to send it
UNKNOWN = 404


class EarlyRewards:
    """Keeps rewards whose decisions the service does not know yet, in files that are sent again.

    A reward and its decision may come from different processes, and the service may get the reward first. Each round
    of sending writes them to a new file, which is added to `logs`, those that the next round sends.
    """

    def __init__(self, folder: Path, bandit: str, decider: str, secret: str, logs: list[LocalLog]) -> None:
        self._folder, self._bandit, self._logs = folder, bandit, logs
        self._decider, self._secret = decider, secret
        self._since: dict[tuple[str, int], float] = {}  # when a reward was first found to be early
        self._log: LocalLog | None = None  # of this round
        self._rounds = 0

    def start_round(self) -> None:
        """Write to a new file from now on."""
        self._log, self._rounds = None, self._rounds + 1

    def keep(self, content: bytes, results: Sequence[RewardResult]) -> int:
        """Keep the early rewards of a batch, given its results, and return how many; they are then durable.

        Those of the decider's own decisions are not early: its decisions were sent before.
        """
        if not self._since and all(one.status != UNKNOWN for one in results):
            return 0
        now, batch, early = time.monotonic(), msgspec.json.decode(content, type=LocalBatch), []
        for reward, result in zip(batch.rewards, results, strict=True):
            key = reward.decider, reward.step
            is_own = reward.decider == batch.decider and key not in self._since
            if result.status == UNKNOWN and not is_own and now - self._since.setdefault(key, now) < RETRY_SECONDS:
                early.append(reward)
            else:
                self._since.pop(key, None)
        if early:
            if self._log is None:
                name = f"{self._bandit}-{self._decider}-{self._rounds}"
                self._log = LocalLog.create(self._folder, name, self._secret)
                self._logs.append(self._log)
            self._log.append([LocalBatch(id=batch.id, decider=self._decider, first=1, base=1, rewards=early)])
        return len(early)
