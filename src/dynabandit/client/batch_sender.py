"""Sends the batches of local files to the service: those of a local decider, and those of deciders that were killed."""

import time
from pathlib import Path

import msgspec

from dynabandit.client.base import Call, ServiceError, bandit_path
from dynabandit.client.early_rewards import EarlyRewards
from dynabandit.client.local_log import LocalLog
from dynabandit.client.sync_client import Client
from dynabandit.service.domain.deciders import SECRET_HEADER
from dynabandit.service.local_types import LocalBatchResult

ADOPT_SECONDS = 60.0  # between two searches for the files of deciders that were killed
INVALID = 422  # the status of a batch that the service will never store


class BatchSender:
    """The files of a local decider and of killed ones, and what the service answered to their batches.

    One thread may send at a time.

    Parameters
    ----------
    client
        Sends the requests.
    name
        The name of the bandit.
    folder
        Where the files are.
    bandit, decider
        The ids of the bandit and of the decider.
    secret
        That of the decider.
    """

    def __init__(self, client: Client, name: str, folder: Path, bandit: str, decider: str, secret: str) -> None:
        self._client, self._name, self._folder, self._bandit = client, name, folder, bandit
        self.log = LocalLog.create(folder, f"{bandit}-{decider}", secret)  # of the decider
        self.others: list[LocalLog] = []  # of deciders that were killed: their batches are sent first
        self.rejected = 0  # rewards that the service did not count: late, unknown, or another one came first
        self.refused: str | None = None  # the latest batch that the service refused
        self.sent_to = 0  # the event up to which the service had written when it stored the latest batch
        self._early = EarlyRewards(folder, bandit, decider, secret, self.others)
        self._adopt_files()

    @property
    def waiting(self) -> int:
        """Decisions and rewards in the files."""
        return sum(log.waiting for log in (*self.others, self.log))

    def send_all(self, until: float) -> bool:
        """Send the batches that all files have now; return whether there was enough time."""
        self._early.start_round()
        if time.monotonic() >= self._next_adoption:
            self._adopt_files()
        for log in list(self.others):
            self._send(log, until)
            if not log.waiting:
                self.others.remove(log)
                log.close()
        self._send(self.log, until)
        return time.monotonic() <= until

    def _adopt_files(self) -> None:
        """Take over the files of deciders that do not run any more."""
        self.others += LocalLog.adopt(self._folder, f"{self._bandit}-")
        self._next_adoption = time.monotonic() + ADOPT_SECONDS

    def _send(self, log: LocalLog, until: float) -> None:
        """Send the batches that a file has now."""
        path = bandit_path(self._name, "local-decisions")
        headers = {} if log.secret is None else {SECRET_HEADER: log.secret}
        for _ in range(len(log)):
            batch = log.first()
            if batch is None or time.monotonic() > until:
                return
            try:
                answer = self._client._send(Call("POST", path, LocalBatchResult, msgspec.Raw(batch), headers))
            except ServiceError as error:
                if error.status != INVALID:
                    raise
                self.refused = f"the service refused a batch, which is in {log.set_aside()} now: {error}"
                continue
            early = self._early.keep(batch, answer.results)
            self.rejected += sum(one.status != 200 for one in answer.results) - early
            self.sent_to = answer.sequence
            log.acknowledge()

    def close(self) -> None:
        """Close the files; those with batches stay for a later decider."""
        for log in (*self.others, self.log):
            log.close()
