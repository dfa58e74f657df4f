"""Commands: serve, keys, verify."""

import contextlib
import ipaddress
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import structlog
import typer
import uvicorn

from dynabandit.service.app import make_app
from dynabandit.service.errors import StoreFailed
from dynabandit.service.keys import ROLES, new_key
from dynabandit.service.service import Service
from dynabandit.service.stores import Store, open_store
from dynabandit.service.verify import verify as verify_store

__all__ = ["Server", "app"]

DEFAULT_STORE = "sqlite:///dynabandit.db"
SWITCH_SECONDS = 0.0005  # the writer's thread must not wait long for its turn
StoreOption = Annotated[str, typer.Option(help="sqlite:///file or postgresql://...")]

app = typer.Typer(help="Decisions over HTTP.", no_args_is_help=True)
keys_app = typer.Typer(help="API keys.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")


@app.command()
def serve(
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    host: Annotated[str, typer.Option(help="Any other than 127.0.0.1 needs API keys.")] = "127.0.0.1",
    store: StoreOption = DEFAULT_STORE,
    require_keys: Annotated[bool, typer.Option(help="Ask for API keys on 127.0.0.1, too.")] = False,
    most_waiting: Annotated[int, typer.Option(min=1, help="Calls that may wait; others get 429.")] = 128,
    patience: Annotated[float, typer.Option(min=0.1, help="Seconds until a call gets 503.")] = 5.0,
) -> None:
    """Serve decisions over HTTP until stopped."""
    needs_keys = require_keys or not _is_loopback(host)
    opened = _open(store)
    try:
        opened.prepare()
        if needs_keys and not any(key.revoked is None for key in opened.api_keys()):
            opened.close()
            _fail(f"host {host} needs API keys, and the store has none: dynabandit keys create --role admin")
    except StoreFailed as error:
        if not opened.shared:
            _fail(str(error))
        opened.rollback()
        structlog.get_logger("dynabandit.service").warning("store not available yet", problem=str(error))
    sys.setswitchinterval(SWITCH_SECONDS)
    _write_logs()
    service = Service(opened, needs_keys, most_waiting=most_waiting, patience=patience)
    config = uvicorn.Config(
        make_app(service),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    Server(config, service.closing).run()


class Server(uvicorn.Server):
    """A server that says where it listens: port 0 asks the system for a free one."""

    def __init__(self, config: uvicorn.Config, closing: threading.Event) -> None:
        super().__init__(config)
        self._closing = closing

    async def shutdown(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        self._closing.set()  # pages that watch would keep it waiting
        await super().shutdown(sockets)  # type: ignore[arg-type]

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        await super().startup(sockets)  # type: ignore[arg-type]
        for server in self.servers:
            for socket in server.sockets:
                address, port = socket.getsockname()[:2]
                shown = f"[{address}]" if ":" in address else address
                print(f"dynabandit serves http://{shown}:{port}", flush=True)


@keys_app.command("create")
def create_key(
    role: Annotated[str, typer.Option(help=", ".join(ROLES))],
    store: StoreOption = DEFAULT_STORE,
    note: Annotated[str, typer.Option(help="Who has it.")] = "",
) -> None:
    """Create an API key and show it, this once."""
    try:
        key, row = new_key(role, note)
    except ValueError as error:
        _fail(str(error))
    with _tables(store) as opened:
        opened.add_key(row)
    print(key)


@keys_app.command("list")
def list_keys(store: StoreOption = DEFAULT_STORE) -> None:
    """List the API keys, without their secrets."""
    with _tables(store) as opened:
        keys = opened.api_keys()
    for key in keys:
        state = "revoked" if key.revoked is not None else "valid"
        created = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(key.created))
        print(f"{key.id}  {key.role:<6}  {state:<7}  {created}  {key.note!r}")


@keys_app.command("revoke")
def revoke_key(id: str, store: StoreOption = DEFAULT_STORE) -> None:  # noqa: A002 - what users see
    """Revoke an API key; a running service turns it away within a second or two."""
    with _tables(store) as opened:
        found = opened.revoke_key(id, time.time())
    if not found:
        _fail(f"there is no key {id!r}; dynabandit keys list shows them")


@app.command()
def verify(store: StoreOption = DEFAULT_STORE) -> None:
    """Replay every log and say where it first differs from what was answered."""
    if store.startswith("sqlite:///") and not Path(store.removeprefix("sqlite:///")).exists():
        _fail(f"store {store} does not exist")
    with contextlib.closing(_open(store)) as opened:
        verdicts = verify_store(opened)
    for one in verdicts:
        if one.problem is None:
            print(f"agrees   {one.name!r}: {one.events} events, {one.steps} steps, state {one.state_hash[:16]}")
        else:
            print(f"DIFFERS  {one.problem}")
    if any(one.problem is not None for one in verdicts):
        raise typer.Exit(1)


def _open(url: str) -> Store:
    try:
        return open_store(url)
    except ValueError as error:
        _fail(str(error))


@contextlib.contextmanager
def _tables(url: str) -> Iterator[Store]:
    """A store with its tables, beside a service that may be running on it."""
    with contextlib.closing(_open(url)) as opened:
        try:
            opened.prepare_tables()
            yield opened
        except StoreFailed as error:
            _fail(str(error))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _fail(problem: str) -> NoReturn:
    typer.echo(f"error: {problem}", err=True)
    raise typer.Exit(1)


def _write_logs() -> None:
    """Write events as JSON lines on the standard error; headers, and with them keys, are never among them."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
