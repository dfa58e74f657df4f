"""The process for previews, as the service sees it: started at the first one, used again, and killed if it hangs."""

import contextlib
import pickle
import queue
import subprocess
import sys
import threading
from typing import Any

import msgspec

from dynabandit.bandit import Bandit
from dynabandit.policies import used_plugins
from dynabandit.service import api_types, preview_process
from dynabandit.service.domain.bandit_state import LoggedState
from dynabandit.service.domain.preview import Check, preview
from dynabandit.service.errors import InvalidValueError, WorkInterruptedError
from dynabandit.service.stores import Store

COMMAND = (sys.executable, "-P", "-m", preview_process.__name__)
SPARE_SECONDS = 300.0  # after which an unused process is ended
CHECK_SECONDS = 0.1  # between two questions whether a result is still wanted
ENDED = "the process of this preview ended, perhaps for lack of memory; ask for less"


class PreviewWorker:
    """Runs one preview after the other in a process, called by the thread of the previews.

    A preview that is no longer wanted, or takes too long, ends with its process, and the next one starts another.
    """

    def __init__(self) -> None:
        self.started = 0  # processes so far
        self._lock = threading.Lock()  # of the process: the event loop and a timer end it
        self._process: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._expiry: threading.Timer | None = None
        self._busy = self._stopped = False

    def preview(
        self, store: Store, state: LoggedState, asked: api_types.PreviewPolicy, check: Check
    ) -> api_types.Preview:
        """Return what `domain.preview` returns; `check` is called every now and then, and ends it by an error."""
        self._reserve()
        try:
            return preview(store, state, asked, check, self._trial)
        finally:
            self._busy = False
            self._expiry = threading.Timer(SPARE_SECONDS, self._expire)
            self._expiry.daemon = True
            self._expiry.start()

    def _trial(self, bandit: Bandit, asked: api_types.PreviewPolicy, check: Check) -> "RemoteTrial":
        """Return a trial in the process; `check` ends it, by an error."""
        self._start()
        answer = self.ask(("start", bandit.to_json(), msgspec.to_builtins(asked)), check)
        if answer.problem is not None:
            raise InvalidValueError(answer.problem)
        return RemoteTrial(self, check)

    def ask(self, message: tuple[Any, ...], check: Check) -> preview_process.Answer:
        """Send a message and return the answer."""
        process = self._process
        if process is None or process.stdin is None:
            raise WorkInterruptedError
        try:
            with contextlib.suppress(OSError, ValueError):  # it has ended: the answer says so
                preview_process.write_message(process.stdin, pickle.dumps(message))
            answer = self._next_answer(check)
        except BaseException:
            self.end()
            raise
        if answer is None:
            self.end()
            if self._stopped:
                raise WorkInterruptedError
            raise InvalidValueError(ENDED)
        return msgspec.json.decode(answer, type=preview_process.Answer)

    def _next_answer(self, check: Check) -> bytes | None:
        while True:
            check()
            with contextlib.suppress(queue.Empty):
                return self._answers.get(timeout=CHECK_SECONDS)

    def _reserve(self) -> None:
        """Keep the process, if there is one."""
        with self._lock:
            self._busy = True
            if self._expiry is not None:
                self._expiry.cancel()

    def _start(self) -> None:
        """Start a process, unless there is one."""
        with self._lock:
            if self._stopped:
                raise WorkInterruptedError
            if self._process is not None and self._process.poll() is None:
                return
            self._kill()
            pipe = subprocess.PIPE
            self._process = subprocess.Popen([*COMMAND, *used_plugins()], stdin=pipe, stdout=pipe)
            self._answers = queue.SimpleQueue()
            self.started += 1
            threading.Thread(target=_read, args=(self._process, self._answers), daemon=True).start()

    def end(self) -> None:
        """Kill the process; whoever waits for its answer gets an error."""
        with self._lock:
            self._kill()

    def _expire(self) -> None:
        with self._lock:
            if not self._busy:
                self._kill()

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdin is not None
            with contextlib.suppress(OSError):
                process.stdin.close()

    def stop(self) -> None:
        """Kill the process, and start no other."""
        with self._lock:
            self._stopped = True
            if self._expiry is not None:
                self._expiry.cancel()
            self._kill()


class RemoteTrial:
    """A trial in the process of a `PreviewWorker`."""

    def __init__(self, worker: PreviewWorker, check: Check) -> None:
        self._worker, self._check = worker, check

    def learn(self, rewards: list[tuple[Any, ...]], latest: int) -> int:
        answer = self._worker.ask(("learn", rewards, latest), self._check)
        if answer.problem is not None:
            raise ValueError(answer.problem)
        return answer.latest

    def arms(self) -> list[api_types.PreviewArm]:
        answer = self._worker.ask(("arms",), self._check)
        if answer.problem is not None:
            raise InvalidValueError(answer.problem)
        return answer.arms


def _read(process: "subprocess.Popen[bytes]", answers: "queue.SimpleQueue[bytes | None]") -> None:
    """Put every answer of a process into a queue, and None at its end."""
    assert process.stdout is not None
    with process.stdout, contextlib.suppress(OSError, ValueError):
        while (answer := preview_process.read_message(process.stdout)) is not None:
            answers.put(answer)
    answers.put(None)
