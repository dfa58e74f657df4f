"""Commands: serve, keys, verify, compact."""

import contextlib
import errno
import gc
import math
import os
import re
import socket
import sys
import time
import urllib.parse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from dynabandit.extras import import_extra
from dynabandit.plugins import disabled
from dynabandit.policies import use_plugin
from dynabandit.policies.auto import AUTO, RECOMMENDED_WITH_FEATURES
from dynabandit.service.admission import MAX_WAITING
from dynabandit.service.compaction import compact as compact_store
from dynabandit.service.domain.warm_start import bandit_to_compile, compile_policy
from dynabandit.service.errors import StoreError
from dynabandit.service.http.authorisation import is_loopback
from dynabandit.service.http.cross_origin import check_origin
from dynabandit.service.http.limits import MAX_CONNECTIONS
from dynabandit.service.http.routes import Instrumentation
from dynabandit.service.http.server import make_server
from dynabandit.service.http.telemetry_settings import is_configured
from dynabandit.service.keys import ROLES, allowed, new_key
from dynabandit.service.logging_setup import configure_logging, log
from dynabandit.service.rate_limits import check_rate
from dynabandit.service.service import Service, Webhook
from dynabandit.service.stores import KeyRow, Store, key_tables, open_store
from dynabandit.service.stores.schema import VERSION
from dynabandit.service.verify import verify as verify_store
from dynabandit.validation import number

DEFAULT_STORE = "sqlite:///dynabandit.db"
SHORTEST_SECRET = 16  # characters
COLLECTED_OBJECTS = 10_000  # new ones until the collector runs; after 700, as by default, it takes a tenth of all time
SWITCH_SECONDS = 0.0005  # so that the writer's thread does not wait long for the interpreter's lock
PluginOption = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin", metavar="POLICY", help="Allow a policy of another package: its name, or module:Class; repeat it."
    ),
]
RewardsOption = Annotated[bool, typer.Option(help="Whether pages with this key may send rewards.")]
MetricOption = Annotated[
    list[str] | None,
    typer.Option("--metric", help="Let pages with this key send this metric, which can pause arms; repeat it."),
]
StoreOption = Annotated[str, typer.Option(help="sqlite:///file or postgresql://...")]

app = typer.Typer(help="Decisions over HTTP.", no_args_is_help=True)
keys_app = typer.Typer(help="API keys.", no_args_is_help=True)
app.add_typer(keys_app, name="keys")


@app.command()
def serve(
    *,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    host: Annotated[str, typer.Option(help="Any other than 127.0.0.1 needs API keys.")] = "127.0.0.1",
    store: StoreOption = DEFAULT_STORE,
    require_keys: Annotated[bool, typer.Option(help="Ask for API keys on 127.0.0.1, too.")] = False,
    most_waiting: Annotated[int, typer.Option(min=1, help="Calls that may wait; others get 429.")] = MAX_WAITING,
    most_connections: Annotated[
        int, typer.Option(min=1, help="Connections at once; a new one replaces one that waits, or gets 503.")
    ] = MAX_CONNECTIONS,
    most_per_address: Annotated[
        int | None,
        typer.Option(min=1, help="The same for each address. [default: 90% of --most-connections]", show_default=False),
    ] = None,
    patience: Annotated[float, typer.Option(min=0.1, help="Seconds until a call gets 503.")] = 5.0,
    webhook: Annotated[str | None, typer.Option(metavar="URL", help="Where alerts are sent.")] = None,
    webhook_secret_file: Annotated[
        Path | None, typer.Option(help="The file with the secret that signs them, at least 16 characters.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Let web pages of this origin decide and reward; repeat it for more."),
    ] = None,
    compile_first: Annotated[
        list[str] | None,
        typer.Option("--compile", metavar="POLICY", help="Compile this policy before the start; repeat it for more."),
    ] = None,
    plugin: PluginOption = None,
    allow_compositions: Annotated[
        bool, typer.Option("--allow-compositions", help="Let callers combine memories, rules and detectors.")
    ] = False,
) -> None:
    """Serve decisions over HTTP until stopped."""
    configure_logging()
    try:
        number("--patience", patience, 0.1, math.inf)  # typer's range accepts NaN and infinity
        origins = [check_origin(one) for one in allow_origin or ()]
    except ValueError as error:
        _refuse(str(error))
    use_plugins(plugin)
    target = _webhook(webhook, webhook_secret_file)
    _check_address(host, port)
    _compile(compile_first or ())
    needs_keys = require_keys or not is_loopback(host)
    opened = _open(store)
    try:
        opened.prepare()
        if needs_keys and not any(key.revoked is None for key in key_tables.api_keys(opened)):
            opened.close()
            why = "--require-keys" if require_keys else f"host {host}"
            _fail(f"{why} needs API keys, and the store has none: dynabandit keys create --role admin --store ...")
    except (StoreError, ValueError) as error:
        if not opened.shared or isinstance(error, ValueError):
            _fail(str(error))
        opened.rollback()
        log.warning("store not available yet", problem=str(error))
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # what was imported: all threads wait while the collector looks through everything that it knows
    gc.set_threshold(COLLECTED_OBJECTS)
    service = Service(
        opened, needs_keys, max_waiting=most_waiting, patience=patience, webhook=target, allowed_origins=origins
    )
    # Names of policies come from requests: only those of --plugin are loaded, and compositions if they are allowed
    with disabled(compositions=allow_compositions):
        make_server(service, host, port, most_connections, most_per_address, _make_telemetry(service)).run()


def use_plugins(policies: Iterable[str] | None) -> None:
    """Register policies of other packages, each given as the name of an entry point or as module:Class."""
    for text in policies or ():
        try:
            use_plugin(text)
        except ValueError as error:
            _refuse(f"--plugin: {error}")


def _webhook(url: str | None, secret_file: Path | None) -> Webhook | None:
    """Return where alerts are sent, if anywhere."""
    if (url is None) != (secret_file is None):
        _refuse("--webhook needs --webhook-secret-file, and the other way round")
    if url is None or secret_file is None:
        return None
    try:
        parts = urllib.parse.urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isascii() and url.isprintable()
    except ValueError:
        is_valid = False
    if not is_valid or " " in url:
        _refuse(f"--webhook must be like https://host/path, got {url!r}")
    try:
        secret = secret_file.read_bytes().strip()
    except OSError as error:
        _refuse(f"--webhook-secret-file {secret_file}: {error.strerror}")
    if len(secret) < SHORTEST_SECRET:
        _refuse(f"--webhook-secret-file must have at least {SHORTEST_SECRET} characters, got {len(secret)}")
    return Webhook(url, secret)


def _make_telemetry(service: Service) -> Instrumentation | None:
    """Return what the environment variables of OpenTelemetry configure; a service runs without it, too."""
    if not is_configured(os.environ):
        return None
    try:
        import_extra("opentelemetry.sdk", "otel")
        from dynabandit.service.http.telemetry import make_telemetry

        return make_telemetry(service, os.environ)
    except (ModuleNotFoundError, ValueError) as error:
        log.warning("no telemetry", problem=str(error))
        return None


@keys_app.command("create")
def create_key(
    role: Annotated[str, typer.Option(help=f"{', '.join(ROLES)}: page for web pages, decide for your programs.")],
    store: StoreOption = DEFAULT_STORE,
    note: Annotated[str, typer.Option(help="Who has it.")] = "",
    namespace: Annotated[
        str | None, typer.Option(help="Let it use only bandits in this namespace: shop has shop/banner.")
    ] = None,
    requests_per_second: Annotated[
        float | None, typer.Option(help="Decisions, rewards and metrics it may send to each replica; others get 429.")
    ] = None,
    rewards: RewardsOption = True,
    metric: MetricOption = None,
) -> None:
    """Create an API key and show it; it is not shown again."""
    try:
        key, row = new_key(role, note, namespace, requests_per_second, rewards, metric or ())
        note.encode()
    except UnicodeEncodeError:
        _refuse(f"--note must be text that UTF-8 can hold, got {note!r}")
    except ValueError as error:
        _refuse(str(error))
    with open_tables(store, new=True) as opened:
        key_tables.add_key(opened, row)
    print(key, flush=True)


@keys_app.command("list")
def list_keys(store: StoreOption = DEFAULT_STORE) -> None:
    """List the API keys without their secrets.

    One line per key: id, role, state, creation time, note and, if it has them, the namespace, the rate limit, that it
    may send no rewards, and the metrics that a page may send.
    """
    with open_tables(store) as opened:
        keys = key_tables.api_keys(opened)
    for key in keys:
        state = "revoked" if key.revoked is not None else "valid"
        created = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(key.created))
        within = "" if key.namespace is None else f"  namespace {key.namespace!r}"
        limit = "" if key.requests_per_second is None else f"  {_shown(key.requests_per_second)} requests per second"
        rights = "" if key.sends_rewards else "  no rewards"
        rights += f"  metrics {', '.join(map(repr, key.metrics))}" if key.metrics else ""
        print(f"{key.id}  {key.role:<6}  {state:<7}  {created}  {key.note!r}{within}{limit}{rights}")


@keys_app.command("limit")
def limit_key(
    id: str,  # noqa: A002 - what users see
    requests_per_second: Annotated[float | None, typer.Argument(help="Without it, the key has no limit.")] = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Limit the decisions, rewards and metrics that a key may send. A running service follows within two seconds."""
    try:
        check_rate(requests_per_second)
    except ValueError as error:
        _refuse(str(error))
    with _tables_of_key(id, store) as opened:
        _check_found(id, key_tables.limit_key(opened, id, requests_per_second))


@keys_app.command("allow")
def allow_key(
    id: str,  # noqa: A002 - what users see
    rewards: RewardsOption = True,
    metric: MetricOption = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Set what pages may send with a key of the role page. A running service follows within two seconds."""
    with _tables_of_key(id, store) as opened:
        key = _find_key(opened, id)
        try:
            key = allowed(key, rewards, metric or ())
        except ValueError as error:
            _refuse(str(error))
        key_tables.allow_key(opened, key)


@keys_app.command("unit-secret")
def show_unit_secret(id: str, store: StoreOption = DEFAULT_STORE) -> None:  # noqa: A002 - what users see
    """Show the secret with which your server signs units for pages."""
    with _tables_of_key(id, store) as opened:
        role = _find_key(opened, id).role
        if role != "page":
            _refuse(f"only keys with the role page need signed units, got one with the role {role}")
        secret = opened.decision_ids().unit_secret(id)
    print(secret, flush=True)


@keys_app.command("revoke")
def revoke_key(id: str, store: StoreOption = DEFAULT_STORE) -> None:  # noqa: A002 - what users see
    """Revoke an API key. A running service rejects it within two seconds."""
    with _tables_of_key(id, store) as opened:
        _check_found(id, key_tables.revoke_key(opened, id, time.time()))


@app.command()
def verify(store: StoreOption = DEFAULT_STORE, plugin: PluginOption = None) -> None:
    """Replay all logs and report the first difference in each."""
    use_plugins(plugin)
    with open_tables(store) as opened:
        verdicts = verify_store(opened)
    for one in verdicts:
        if one.problem is None:
            said = f"agrees   {one.name!r}: {one.events} events, {one.steps} steps, state {one.state_hash[:16]}"
            if one.start:
                said += f", compacted up to event {one.start} and replayed from there"
            for release, count in one.made_by.items():
                said += f", {count} decisions made by {release}, rewards agree"
            if one.imported:
                said += f", {one.imported} decisions imported"
            if one.local or one.local_taken:
                said += f", {one.local} local decisions"
            if one.local_taken:
                said += f" and {one.local_taken} taken from the log"
            if one.local_different:
                said += f", {one.local_different} local decisions that their states do not make"
                said += f" (the first is event {one.first_different})"
            print(said)
        else:
            print(f"DIFFERS  {one.problem}")
    if any(one.problem is not None for one in verdicts):
        raise typer.Exit(1)


@app.command()
def compact(
    before: Annotated[str, typer.Option(metavar="AGE", help="Such as 90d, 12w or 36h; at least 1h.")],
    store: StoreOption = DEFAULT_STORE,
    plugin: PluginOption = None,
) -> None:
    """Remove old events from all logs.

    The state after them is verified and kept, and each log then starts from it.
    """
    use_plugins(plugin)
    age = re.fullmatch(r"(\d{1,6})([hdw])", before)
    seconds = 0.0 if age is None else int(age[1]) * {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}[age[2]]
    if seconds < 3600.0:
        _refuse(f"--before must be an age such as 90d, 12w or 36h, at least 1h, got {before!r}")
    now = time.time()
    with open_tables(store) as opened:
        if opened.rows(opened.version_statement)[0][0] < VERSION:  # the earlier release may still use it
            _fail(f"store {opened.public_url} is of an earlier release: let dynabandit serve migrate it first")
        results = compact_store(opened, now - seconds, now)
    for one in results:
        if one.problem is None:
            print(f"compacted  {one.name!r}: {one.removed} events removed, the log starts after event {one.start}")
        else:
            print(f"unchanged  {one.name!r}: {one.problem}")


def _open(url: str) -> Store:
    try:
        return open_store(url)
    except ModuleNotFoundError as error:
        _fail(str(error))
    except ValueError as error:
        _refuse(str(error))


def _compile(policies: Iterable[str]) -> None:
    """Compile policies before the server starts, so that no request waits for it; "auto" with and without features."""
    given = [one for name in policies for one in ((AUTO, RECOMMENDED_WITH_FEATURES) if name == AUTO else (name,))]
    names = list(dict.fromkeys(given))
    for name in names:
        try:
            bandit_to_compile(name, {})
        except ValueError as error:
            _refuse(f"--compile: {error}")
    for name in names:
        compile_policy(name, {})


@contextlib.contextmanager
def open_tables(url: str, new: bool = False) -> Iterator[Store]:
    """Open a store, which a service may be using; with `new` it is created if it does not exist."""
    if not new and url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        _open(url).close()  # a URL that is wrong in itself has its own message
        _refuse(f"store {url} does not exist; name one with --store, or let dynabandit serve make it")
    with contextlib.closing(_open(url)) as opened:
        try:
            opened.create_tables()
            yield opened
        except (StoreError, ValueError) as error:
            _fail(str(error))


def _tables_of_key(identity: str, url: str) -> contextlib.AbstractContextManager[Store]:
    if identity.startswith("dyna_"):  # not printed: it may be a valid secret
        _refuse("ID must be the first word of a line of dynabandit keys list, not the key itself")
    return open_tables(url)


def _shown(rate: object) -> str:
    return f"{rate:g}" if isinstance(rate, int | float) else repr(rate)  # what a damaged store contains


def _find_key(opened: Store, identity: str) -> KeyRow:
    found = next((key for key in key_tables.api_keys(opened) if key.id == identity), None)
    _check_found(identity, found is not None)
    assert found is not None
    return found


def _check_found(identity: str, found: bool) -> None:
    if not found:
        _refuse(f"there is no key {identity!r}; dynabandit keys list shows them")


def _check_address(host: str, port: int) -> None:
    """Report a wrong address before the store is opened."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                if os.name == "posix":  # as the server does: a port that was just closed is free
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(address)
                probe.listen()
    except (OSError, UnicodeError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            _fail(f"port {port} of {host} is in use; name another with --port, or 0 for any that is free")
        why = error.strerror if isinstance(error, OSError) else error
        _fail(f"cannot listen on port {port} of host {host!r}: {why}")


def _refuse(problem: str) -> NoReturn:
    """End because of a wrong argument."""
    _fail(problem, code=2)


def _fail(problem: str, code: int = 1) -> NoReturn:
    typer.echo(f"dynabandit: {problem}", err=True)
    raise typer.Exit(code)
