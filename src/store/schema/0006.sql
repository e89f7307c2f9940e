-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. Times are milliseconds since 1970 UTC, NULL is "none".

-- Tasks: what a person did to the whole of it.

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks. A message is inserted with the change that it tells of, and
-- deleted when it was delivered: most are gone a moment later, so this table has no index. Numbers
-- are given by the server, and rise.
CREATE TABLE outbox (
    seq        INTEGER PRIMARY KEY,
    task       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Messages that could not be delivered at once, under the same numbers.
CREATE TABLE outbox_aside (
    seq        INTEGER PRIMARY KEY,
    task       TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    target     TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    state      TEXT    NOT NULL CHECK (state IN ('waiting', 'dead')),
    tries      INTEGER NOT NULL,
    retry_at   INTEGER,
    since      INTEGER NOT NULL,
    story      TEXT
) STRICT;

CREATE INDEX outbox_state ON outbox_aside (state, seq);
CREATE INDEX outbox_target ON outbox_aside (state, target, seq);
CREATE INDEX outbox_task ON outbox_aside (task, seq);

-- For people: all messages that were not delivered.
CREATE VIEW message AS
SELECT seq, task || '/' || name AS id, task, target, 'waiting' AS state, 0 AS tries,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
    NULL AS retry_at, NULL AS story, body
FROM outbox
UNION ALL
SELECT seq, task || '/' || name, task, target, state, tries,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch'),
    strftime('%Y-%m-%dT%H:%M:%fZ', retry_at / 1000.0, 'unixepoch'), story, body
FROM outbox_aside;

-- Operations: what is done to many tasks at once.

-- Alerts: what a person is told of.

-- One row is one group: a condition and its labels. `doc` is JSON (count, examples, who was told);
-- `live` ones may yet change.
CREATE TABLE alert (
    seq              INTEGER PRIMARY KEY,
    id               TEXT    NOT NULL UNIQUE,
    key              TEXT    NOT NULL,
    doc              TEXT    NOT NULL,
    opened_at        INTEGER NOT NULL,
    acknowledged_at  INTEGER,
    acknowledged_by  TEXT,
    acknowledged_why TEXT,
    resolved_at      INTEGER,
    live             INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX alert_live ON alert (key) WHERE live;
-- Tasks that wait for a person, in the order in which they stopped.
CREATE INDEX task_stopped ON task (ended_at) WHERE state = 'error';

-- Reserved: ids of tasks that were deleted.
