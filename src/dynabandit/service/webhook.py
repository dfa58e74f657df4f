"""The webhook: alerts are sent to the URL of the operator, until they are accepted or refused for good.

Alerts are events of the logs. For each bandit, the store has the last one that was sent, so an alert is sent at least
once, also if the service stops in between. The alerts of a bandit are sent in order; those of other bandits do not wait
for them. Nothing else waits for this task.
"""

import asyncio
import contextlib
import dataclasses
import hashlib
import hmac
import ssl
import time

import httpx
import msgspec

from dynabandit.service.domain.alerts import sent_alert
from dynabandit.service.domain.events import ALERT
from dynabandit.service.errors import OverloadedError, StoreError
from dynabandit.service.failure_log import FailureLog
from dynabandit.service.logging_setup import log
from dynabandit.service.monitoring_types import SentAlert
from dynabandit.service.service import Service, Webhook
from dynabandit.service.stores import Statements, Store
from dynabandit.service.stores.alert_positions import first_waiting, save_position, save_refusal
from dynabandit.service.thread_pool import ReaderThread

POLL_SECONDS = 5.0  # until alerts of other replicas are noticed
START_SECONDS = 0.05  # between two looks, until the writer has prepared the store
PASS_SECONDS = 1.0  # of sending, until alerts that were raised since are looked for
MAX_ALERTS = 100  # of a bandit that are sent before those of the next one
LAST_RETRY = 300.0  # seconds; each pause is twice as long as the one before
MAX_REFUSALS = 5  # answers with a status from 400 to 499, until an alert is not sent any more
TEMPORARY = (408, 425, 429)  # of these statuses, those that ask for another attempt
TIMESTAMP_HEADER, SIGNATURE_HEADER = "Dynabandit-Timestamp", "Dynabandit-Signature"


def sign(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a message: HMAC-SHA256 of the timestamp, a dot and the body.

    Examples
    --------
    >>> sign(b"secret", "1700000000", b"{}")[:15]
    'sha256=b8569b78'
    """
    return "sha256=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


@dataclasses.dataclass
class Retry:
    """The next attempt to send the first waiting alert of a bandit, which was not accepted."""

    pause: float
    at: float = 0.0
    refusals: int = 0


class AlertSender:
    """Sends the alerts of all bandits, those of one bandit in order; of several replicas, one sends them."""

    def __init__(self, service: Service, webhook: Webhook) -> None:
        self._service, self._webhook = service, webhook
        self._reader = ReaderThread("alerts", service.store)
        self._retries: dict[int, Retry] = {}  # by bandit
        self._failures = FailureLog("webhook")
        self._raised = asyncio.Event()  # an alert, since the last look
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start; call it in a running event loop."""
        loop = asyncio.get_running_loop()
        self._service.writer.on_alert = lambda: loop.call_soon_threadsafe(self._raised.set)
        self._task = loop.create_task(self._run())

    async def stop(self) -> None:
        """End at once; what was not accepted is sent after the next start."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._reader.stop()

    async def _run(self) -> None:
        try:
            made = await asyncio.to_thread(_make_client)
        except Exception:
            log.exception("alerts cannot be sent")
            return
        async with made as client:
            while True:
                self._raised.clear()
                try:
                    pause = await self._send_due(client)
                except (StoreError, OverloadedError):
                    pause = POLL_SECONDS
                except Exception:  # the task must survive any error
                    log.exception("sending alerts failed")
                    pause = POLL_SECONDS
                self._failures.write_due()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._raised.wait()

    async def _send_due(self, client: httpx.AsyncClient) -> float:
        """Send the alerts that wait, except where the time of the next attempt has not come.

        Return the seconds until there is something to do.
        """
        if not self._service.writer.is_prepared:
            return START_SECONDS
        waiting = await self._reader.run(_find)
        retries = self._retries = {bandit: retry for bandit, retry in self._retries.items() if bandit in waiting}
        now = time.monotonic()
        times = {bandit: retries[bandit].at if bandit in retries else 0.0 for bandit in waiting}
        for bandit in sorted((bandit for bandit, at in times.items() if at <= now), key=times.__getitem__):
            if time.monotonic() - now > PASS_SECONDS:
                return 0.0
            try:
                await self._send_waiting(client, bandit, waiting[bandit])
            except (StoreError, OverloadedError):
                raise
            except Exception:  # such as a log that is damaged; those of other bandits do not wait
                log.exception("sending alerts failed", bandit=bandit)
                retries[bandit] = Retry(LAST_RETRY, time.monotonic() + LAST_RETRY)
        following = min((retry.at for retry in retries.values()), default=float("inf"))
        return min(POLL_SECONDS, max(0.0, following - time.monotonic()))

    async def _send_waiting(self, client: httpx.AsyncClient, bandit: int, first: int) -> None:
        """Send the alerts of a bandit in order, until one must be tried again."""

        def read(store: Store) -> list[SentAlert]:
            return [sent_alert(store, event) for event in store.events(bandit, first - 1, MAX_ALERTS, (ALERT,))]

        for alert in await self._reader.run(read):
            answer = await self._post(client, alert)
            statements: Statements = [save_position(bandit, alert.sequence)]
            if isinstance(answer, int) and 200 <= answer < 300:
                self._failures.note_success()
            else:
                self._failures.note_failure(f"it answered {answer}" if isinstance(answer, int) else answer)
                retry = self._retries.setdefault(bandit, Retry(self._webhook.first_retry))
                is_refused = isinstance(answer, int) and 400 <= answer < 500 and answer not in TEMPORARY
                retry.refusals += is_refused
                if not (isinstance(answer, int) and is_refused and retry.refusals >= MAX_REFUSALS):
                    retry.at = time.monotonic() + retry.pause
                    retry.pause = min(2.0 * retry.pause, LAST_RETRY)
                    return
                statements += save_refusal(bandit, alert.sequence, answer, time.time())
            await self._save(statements)
            self._retries.pop(bandit, None)
            if len(statements) > 1:
                self._service.metrics.alerts_refused.inc()
                log.error("alert was refused", alert=alert.id, bandit=alert.bandit, status=answer)

    async def _post(self, client: httpx.AsyncClient, alert: SentAlert) -> int | str:
        """Return the status of the answer, of which nothing more is read, or say why there is none."""
        body = msgspec.json.encode(alert)
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(self._webhook.secret, timestamp, body),
        }
        try:
            async with (
                asyncio.timeout(self._webhook.timeout),  # one for everything: a receiver may send byte after byte
                client.stream("POST", self._webhook.url, content=body, headers=headers) as answer,
            ):
                return answer.status_code
        except TimeoutError:
            return f"it did not answer within {self._webhook.timeout:g} seconds"
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return f"{type(error).__name__}: {error}"

    async def _save(self, statements: Statements) -> None:
        """Note that an alert was sent; if that fails, it is sent again."""
        await self._service.writer.submit(lambda work: work.store.write(statements), alone=True, priority=True)


def _make_client() -> httpx.AsyncClient:
    """Return a client that follows no redirects, which would lose the body, and has a new connection for each alert."""
    limits = httpx.Limits(max_keepalive_connections=0)
    return httpx.AsyncClient(verify=ssl.create_default_context(), timeout=None, limits=limits)


def _find(store: Store) -> dict[int, int]:
    return first_waiting(store) if store.is_leader("webhook") else {}
