-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. To change it: write the next file, never this one.

-- Tasks: what a person did to the whole of it.

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks. A message is inserted with the change that it tells of, and
-- deleted when it was delivered: most are gone a moment later.
CREATE SEQUENCE ~outbox_seq;

CREATE TABLE ~outbox (
    seq        BIGINT PRIMARY KEY DEFAULT nextval('~outbox_seq'),
    task       TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 10000);

-- Messages that could not be delivered at once, under the same numbers.
CREATE TABLE ~outbox_aside (
    seq        BIGINT PRIMARY KEY,
    task       TEXT COLLATE "C" NOT NULL,
    name       TEXT COLLATE "C" NOT NULL,
    target     TEXT COLLATE "C" NOT NULL,
    body       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    state      TEXT COLLATE "C" NOT NULL CHECK (state IN ('waiting', 'dead')),
    tries      BIGINT NOT NULL,
    retry_at   BIGINT,
    since      BIGINT NOT NULL,
    story      TEXT
);

CREATE INDEX outbox_state ON ~outbox_aside (state, seq);
CREATE INDEX outbox_target ON ~outbox_aside (state, target, seq);
CREATE INDEX outbox_task ON ~outbox_aside (task, seq);

-- For people: all messages that were not delivered.
CREATE VIEW ~message AS
SELECT seq, task || '/' || name AS id, task, target, 'waiting' AS state, 0::bigint AS tries,
    to_timestamp(created_at / 1000.0) AS created_at, NULL::timestamptz AS retry_at,
    NULL::text AS story, body
FROM ~outbox
UNION ALL
SELECT seq, task || '/' || name, task, target, state, tries, to_timestamp(created_at / 1000.0),
    to_timestamp(retry_at / 1000.0), story, body
FROM ~outbox_aside;

-- Operations: what is done to many tasks at once.

-- Alerts: what a person is told of.

-- One row is one group: a condition and its labels. `doc` is JSON (count, examples, who was told);
-- `live` ones may yet change.
CREATE TABLE ~alert (
    seq              BIGSERIAL PRIMARY KEY,
    id               TEXT COLLATE "C" NOT NULL UNIQUE,
    key              TEXT COLLATE "C" NOT NULL,
    doc              TEXT NOT NULL,
    opened_at        BIGINT NOT NULL,
    acknowledged_at  BIGINT,
    acknowledged_by  TEXT,
    acknowledged_why TEXT,
    resolved_at      BIGINT,
    live             BOOLEAN NOT NULL
);

CREATE UNIQUE INDEX alert_live ON ~alert (key) WHERE live;
-- Tasks that wait for a person, in the order in which they stopped.
CREATE INDEX task_stopped ON ~task (ended_at, seq) WHERE state = 'error';

-- Reserved: ids of tasks that were deleted.
SELECT 1;
