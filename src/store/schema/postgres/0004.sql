-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. To change it: write the next file, never this one.

-- Tasks: what a person did to the whole of it.

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks.

-- Operations: what is done to many tasks at once.

-- One row is one operation; `doc` (JSON) holds which tasks it concerns, what is done to them, how far
-- it is and what came of it. Every change names the revision on which it was decided.
CREATE TABLE ~operation (
    seq        BIGSERIAL PRIMARY KEY,
    id         TEXT COLLATE "C" NOT NULL UNIQUE,
    revision   BIGINT NOT NULL,
    open       BOOLEAN NOT NULL,
    state      TEXT NOT NULL,
    verb       TEXT NOT NULL,
    actor      TEXT NOT NULL,
    reason     TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at   BIGINT,
    doc        TEXT NOT NULL
);

CREATE INDEX operation_open ON ~operation (seq) WHERE open;

-- For people: operations with readable times and what came of them.
CREATE VIEW ~operation_view AS
SELECT id, state, verb, actor, reason, to_timestamp(started_at / 1000.0) AS started_at,
    to_timestamp(ended_at / 1000.0) AS ended_at,
    coalesce((doc::json ->> 'matched')::bigint, 0) AS matched,
    coalesce((doc::json ->> 'done')::bigint, 0) AS done,
    coalesce((doc::json ->> 'failed')::bigint, 0) AS failed,
    coalesce((doc::json ->> 'gone')::bigint, 0) AS gone,
    doc::json -> 'refused' AS refused, doc::json -> 'filter' AS filter,
    doc::json -> 'arguments' AS arguments
FROM ~operation;

-- Alerts: what a person is told of.

-- Reserved: ids of tasks that were deleted.
SELECT 1;
