"""A wire that can be cut: a proxy between a service and its database, or between clients and a service."""

import contextlib
import socket
import threading
from collections.abc import Iterator

from tools.postgres_server import patient, socket_folder

Target = str | tuple[str, int]  # a Unix socket, or an address


class Proxy:
    """Passes bytes on, unless it is told to hold them back or to break every connection.

    Without a target it breaks every connection. Its own address stays the same, also while a service behind it is
    restarted: the port of a service that has ended could be taken by another program.
    """

    def __init__(self, target: Target | None = None) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._lock = threading.Lock()  # of `_pairs`, `_refusing` and `_target`
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                near, _ = self._listener.accept()
                with self._lock:
                    pair = None if self._refusing else self._connect(near)
                if pair is None:
                    near.close()
                    continue
                for source, sink in (pair, pair[::-1]):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _connect(self, near: socket.socket) -> tuple[socket.socket, socket.socket] | None:
        if self._target is None:
            return None
        far = socket.socket(socket.AF_UNIX if isinstance(self._target, str) else socket.AF_INET)
        try:
            far.connect(self._target)
        except OSError:
            far.close()
            return None
        self._pairs.append((near, far))
        return near, far

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._flowing.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def lead_to(self, url: str | None) -> None:
        """Pass new connections on to a service, or to none."""
        host, _, port = (url or "").removeprefix("http://").rpartition(":")
        with self._lock:
            self._target = (host, int(port)) if url else None

    def hold(self) -> None:
        """Let nothing through, and say nothing: a cable that was pulled."""
        self._flowing.clear()

    def release(self) -> None:
        """Let through what was held, late as it is."""
        self._flowing.set()

    def refuse(self) -> None:
        """Break every connection and take no new one: a database that went down."""
        with self._lock:
            self._refusing = True
            for pair in self._pairs:
                for end in pair:
                    with contextlib.suppress(OSError):
                        end.shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        with self._lock:
            self._refusing = False

    def close(self) -> None:
        self.refuse()
        self.release()
        self._listener.close()


@contextlib.contextmanager
def wire(postgres_url: str, idle_in_transaction: str | None = None) -> Iterator[tuple[Proxy, str]]:
    """A proxy to a database, and the URL that goes through it."""
    proxy = Proxy(f"{socket_folder(postgres_url)}/.s.PGSQL.5432")
    database = postgres_url.partition("?")[0].rsplit("/", 1)[1]
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
    try:
        yield proxy, patient(url) if idle_in_transaction is None else patient(url, idle_in_transaction)
    finally:
        proxy.close()


@contextlib.contextmanager
def address() -> Iterator[Proxy]:
    """An address under which one service after the other can be reached."""
    proxy = Proxy()
    try:
        yield proxy
    finally:
        proxy.close()
