"""A wire that can be cut: a proxy between a service and its database."""

import contextlib
import socket
import threading
from collections.abc import Iterator


class Proxy:
    """Passes bytes on, unless it is told to hold them back or to break every connection."""

    def __init__(self, target: str) -> None:
        self._target = target  # a Unix socket
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._refusing:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._target)
                self._pairs.append((near, far))
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._flowing.wait()
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def hold(self) -> None:
        """Let nothing through, and say nothing: a cable that was pulled."""
        self._flowing.clear()

    def release(self) -> None:
        """Let through what was held, late as it is."""
        self._flowing.set()

    def refuse(self) -> None:
        """Break every connection and take no new one: a database that went down."""
        self._refusing = True
        for pair in self._pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def accept(self) -> None:
        self._refusing = False

    def close(self) -> None:
        self.refuse()
        self.release()
        self._listener.close()


@contextlib.contextmanager
def wire(postgres_url: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy to a database, and the URL that goes through it."""
    head, _, folder = postgres_url.partition("?host=")
    proxy = Proxy(f"{folder}/.s.PGSQL.5432")
    database = head.rsplit("/", 1)[1]
    try:
        yield proxy, f"postgresql://postgres@127.0.0.1:{proxy.port}/{database}"
    finally:
        proxy.close()
