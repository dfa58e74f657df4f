"""The tables of a store, their version, and the migrations from older versions."""

# Entry n has the statements that turn version n into version n + 1; an empty database has version 0. Only append:
# stores of all earlier versions exist.
MIGRATIONS = (
    """
CREATE TABLE bandits (number {integer} PRIMARY KEY, name {bytes} NOT NULL, deleted INTEGER NOT NULL DEFAULT 0);
CREATE UNIQUE INDEX bandits_name ON bandits (name) WHERE deleted = 0;
CREATE TABLE events (
    bandit {integer} NOT NULL, sequence {integer} NOT NULL, kind TEXT NOT NULL, step {integer}, settles {integer},
    arm INTEGER, value {real}, time {real} NOT NULL, wall {real} NOT NULL, key TEXT, body TEXT,
    PRIMARY KEY (bandit, sequence)){without_rowid};
CREATE UNIQUE INDEX events_step ON events (bandit, step) WHERE step IS NOT NULL;
CREATE UNIQUE INDEX events_settles ON events (bandit, settles) WHERE settles IS NOT NULL;
CREATE UNIQUE INDEX events_key ON events (bandit, key) WHERE key IS NOT NULL;
CREATE INDEX events_changes ON events (bandit, kind, sequence) WHERE body IS NOT NULL;
CREATE TABLE snapshots (
    bandit {integer} NOT NULL, sequence {integer} NOT NULL, state_hash TEXT NOT NULL, body TEXT,
    PRIMARY KEY (bandit, sequence));
CREATE TABLE clock (id INTEGER PRIMARY KEY, time {real} NOT NULL);
INSERT INTO clock VALUES (1, 0);
CREATE TABLE keys (
    id TEXT PRIMARY KEY, role TEXT NOT NULL, digest TEXT NOT NULL, note TEXT NOT NULL, created {real} NOT NULL,
    revoked {real})
""",
    # 0.1.0 made this table when the first history was saved
    """
CREATE TABLE IF NOT EXISTS histories (bandit {integer} PRIMARY KEY, sequence {integer} NOT NULL, body TEXT NOT NULL)
""",
    # Earlier releases cannot replay the events of this one, so they must not open its stores. Histories are a cache
    """
DELETE FROM histories
""",
    # Decision ids are signed: `unsigned_ids` has the last decision of each bandit whose id earlier releases gave out.
    # Keys can be bound to a namespace, and have a limit of requests
    """
CREATE TABLE signing_secret (id INTEGER PRIMARY KEY, value {bytes} NOT NULL);
INSERT INTO signing_secret VALUES (1, {random});
CREATE TABLE unsigned_ids (bandit {integer} PRIMARY KEY, last_step {integer} NOT NULL);
INSERT INTO unsigned_ids SELECT number, last_step FROM
    (SELECT number, (SELECT max(step) FROM events WHERE bandit = number AND step IS NOT NULL) AS last_step
     FROM bandits) AS bandits_before WHERE last_step > 0;
ALTER TABLE keys ADD COLUMN namespace TEXT;
ALTER TABLE keys ADD COLUMN requests_per_second {real}
""",
    # `units` has the latest decision for each unit, by the hash of the unit. Decisions may have a body, and are no
    # changes
    """
CREATE TABLE units (
    bandit {integer} NOT NULL, unit TEXT NOT NULL, step {integer} NOT NULL, arm INTEGER NOT NULL, time {real} NOT NULL,
    propensity {real}, holdout INTEGER NOT NULL, PRIMARY KEY (bandit, unit)){without_rowid};
CREATE INDEX units_time ON units (bandit, time);
DROP INDEX events_changes;
CREATE INDEX events_changes ON events (bandit, kind, sequence) WHERE body IS NOT NULL AND step IS NULL
""",
    # `alert_positions` has the last alert of each bandit that the webhook has accepted
    """
CREATE TABLE alert_positions (bandit {integer} PRIMARY KEY, sequence {integer} NOT NULL)
""",
    # The rules of decisions have changed: earlier versions cannot replay them
    """
DELETE FROM histories
""",
    # `refused_alerts` has alerts that the webhook has refused for good
    """
CREATE TABLE refused_alerts (
    bandit {integer} NOT NULL, sequence {integer} NOT NULL, status INTEGER NOT NULL, wall {real} NOT NULL,
    PRIMARY KEY (bandit, sequence)){without_rowid}
""",
    # The rules of decisions have changed: earlier versions cannot replay them
    """
DELETE FROM histories
""",
)
VERSION = len(MIGRATIONS)
TABLES = (
    "bandits", "events", "snapshots", "clock", "keys", "histories", "signing_secret", "unsigned_ids", "units",
    "alert_positions", "refused_alerts",
)  # fmt: skip
DIALECTS = {
    "sqlite": {
        "integer": "INTEGER",
        "real": "REAL",
        "bytes": "BLOB",
        "without_rowid": " WITHOUT ROWID",
        "random": "randomblob(32)",
    },
    "postgres": {
        "integer": "BIGINT",
        "real": "DOUBLE PRECISION",
        "bytes": "BYTEA",
        "without_rowid": "",
        "random": "uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())",  # 244 random bits
    },
}


def migration(dialect: str, version: int) -> list[str]:
    """Return the statements that bring tables of a version up to date.

    Examples
    --------
    >>> migration("sqlite", VERSION)
    []
    """
    return [
        statement.strip().format(**DIALECTS[dialect]) for step in MIGRATIONS[version:] for statement in step.split(";")
    ]


def check_version(store: str, version: int) -> None:
    """Raise an error for tables of a later release."""
    if version > VERSION:
        raise ValueError(
            f"store {store} has schema version {version}, but this release reads versions up to {VERSION}: "
            "upgrade dynabandit to the release that wrote it, or name another store with --store"
        )
