"""The webhook: a thread that sends alerts to the URL of the operator, until they are accepted.

Alerts are events of the logs. For each bandit, the store has the last one that was accepted, so an alert is sent at
least once, also if the service stops in between. Nothing else waits for this thread.
"""

import asyncio
import hashlib
import hmac
import threading
import time
import urllib.request
from http.client import HTTPException, HTTPMessage
from typing import IO

import msgspec

from dynabandit.service.domain.alerts import sent_alert
from dynabandit.service.domain.names import read_public_id
from dynabandit.service.errors import StoreError
from dynabandit.service.logging_setup import log
from dynabandit.service.monitoring_types import SentAlert
from dynabandit.service.service import Service, Webhook
from dynabandit.service.stores import Store
from dynabandit.service.stores.alert_positions import next_alerts, save_position

POLL_SECONDS = 5.0  # until alerts of other replicas are noticed
START_SECONDS = 0.05  # between two looks, until the writer has prepared the store
LAST_RETRY = 300.0  # seconds; each pause is twice as long as the one before
TIMESTAMP_HEADER, SIGNATURE_HEADER = "Dynabandit-Timestamp", "Dynabandit-Signature"


def sign(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a message: HMAC-SHA256 of the timestamp, a dot and the body.

    Examples
    --------
    >>> sign(b"secret", "1700000000", b"{}")[:15]
    'sha256=b8569b78'
    """
    return "sha256=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class AlertSender:
    """Sends the alerts of all bandits, those of one bandit in order; of several replicas, one sends them."""

    def __init__(self, service: Service, webhook: Webhook) -> None:
        self._service, self._webhook = service, webhook
        self._thread = threading.Thread(target=self._run, name="dynabandit-webhook", daemon=True)
        self._stopping = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    async def stop(self) -> None:
        """End the thread; what was not accepted is sent after the next start."""
        self._stopping.set()
        self._service.writer.alert_raised.set()
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        store = self._service.store.reader()
        pause = self._webhook.first_retry
        while not self._stopping.is_set():
            self._service.writer.alert_raised.clear()
            try:
                found = self._find(store)
                if not found:
                    is_ready = self._service.writer.is_prepared
                    self._service.writer.alert_raised.wait(POLL_SECONDS if is_ready else START_SECONDS)
                    continue
                for alert in found:
                    self._send(alert)
                    self._save(alert)
                pause = self._webhook.first_retry
            except StoreError:
                store.rollback()
                self._stopping.wait(pause)
            except (OSError, HTTPException, TimeoutError) as error:
                log.warning("alert was not sent", problem=str(error), again_in=pause)
                self._stopping.wait(pause)
                pause = min(2.0 * pause, LAST_RETRY)
            except Exception:  # the thread must survive any error
                log.exception("sending alerts failed")
                self._stopping.wait(POLL_SECONDS)
        store.close()

    def _find(self, store: Store) -> list[SentAlert]:
        if not self._service.writer.is_prepared or not store.is_leader("webhook"):
            return []
        return [sent_alert(store, event) for event in next_alerts(store)]

    def _send(self, alert: SentAlert) -> None:
        body = msgspec.json.encode(alert)
        timestamp = str(int(time.time()))
        headers = {
            "Content-Type": "application/json",
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: sign(self._webhook.secret, timestamp, body),
        }
        request = urllib.request.Request(self._webhook.url, body, headers, method="POST")
        with _opener.open(request, timeout=self._webhook.timeout):
            pass

    def _save(self, alert: SentAlert) -> None:
        """Note that an alert was accepted; if that fails, it is sent again."""
        position = save_position(read_public_id(alert.bandit_id) or 0, alert.sequence)
        try:
            self._service.write_from_thread([position], self._webhook.timeout)
        except Exception as error:
            raise StoreError(str(error)) from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is no acceptance: what is sent elsewhere would lose its body."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirect)
