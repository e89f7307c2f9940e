-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. Times are milliseconds since 1970 UTC, NULL is "none".

-- Tasks: what a person did to the whole of it.

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks.

-- Operations: what is done to many tasks at once.

-- One row is one operation; `doc` (JSON) holds which tasks it concerns, what is done to them, how far
-- it is and what came of it. Every change names the revision on which it was decided.
CREATE TABLE operation (
    seq        INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    revision   INTEGER NOT NULL,
    open       INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    verb       TEXT    NOT NULL,
    actor      TEXT    NOT NULL,
    reason     TEXT    NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    doc        TEXT    NOT NULL
) STRICT;

CREATE INDEX operation_open ON operation (seq) WHERE open;

-- For people: operations with readable times and what came of them.
CREATE VIEW operation_view AS
SELECT id, state, verb, actor, reason, strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch')
        AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', ended_at / 1000.0, 'unixepoch') AS ended_at,
    coalesce(doc ->> '$.matched', 0) AS matched, coalesce(doc ->> '$.done', 0) AS done,
    coalesce(doc ->> '$.failed', 0) AS failed, coalesce(doc ->> '$.gone', 0) AS gone,
    doc -> '$.refused' AS refused, doc -> '$.filter' AS filter, doc -> '$.arguments' AS arguments
FROM operation;

-- Alerts: what a person is told of.

-- Reserved: ids of tasks that were deleted.
