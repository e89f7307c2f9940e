-- The state store on PostgreSQL, first version: the tables of the SQLite one, with what several
-- nodes need besides. Times are milliseconds since 1970 UTC, NULL is "none". "~" stands for the
-- schema. To change it: write the next file, never this one.
-- Texts compare by their bytes (COLLATE "C"): ranges over owners and names rely on it.

CREATE SEQUENCE ~task_seq;

-- One row is one task, with all its steps and attempts in `doc` (JSON). Every change names the
-- revision on which it was decided and raises it by one. fillfactor leaves room for the next
-- version of a row on its page, so that most changes touch no index.
CREATE TABLE ~task (
    seq           BIGINT PRIMARY KEY DEFAULT nextval('~task_seq'),
    id            TEXT COLLATE "C" NOT NULL UNIQUE,
    workflow      TEXT COLLATE "C" NOT NULL,
    version       BIGINT NOT NULL,
    submitted_at  BIGINT,
    reply_to      TEXT,
    tags          TEXT,
    revision      BIGINT NOT NULL,
    state         TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'processing', 'processed',
                                                 'compensating', 'compensated', 'error')),
    direction     TEXT NOT NULL CHECK (direction IN ('forward', 'undo')),
    priority      BIGINT NOT NULL,
    locked_by     TEXT COLLATE "C",
    complete_by   BIGINT,
    wake_at       BIGINT,
    not_before    BIGINT,
    waiting_for   TEXT COLLATE "C",
    rank          BIGINT NOT NULL,
    request       TEXT,
    failure_count BIGINT NOT NULL,
    started_at    BIGINT,
    ended_at      BIGINT,
    doc           TEXT NOT NULL
) WITH (fillfactor = 70);

CREATE INDEX task_claim ON ~task (waiting_for, rank, seq)
    WHERE state = 'pending' AND locked_by IS NULL;
CREATE INDEX task_wake ON ~task (wake_at, seq) WHERE wake_at IS NOT NULL;
CREATE INDEX task_lock ON ~task (locked_by, seq) WHERE locked_by IS NOT NULL;
CREATE INDEX task_request ON ~task (locked_by, seq) WHERE request IS NOT NULL;
CREATE INDEX task_state ON ~task (state, seq) WHERE state <> 'processed';
CREATE INDEX task_workflow ON ~task (workflow, seq);

-- Values too long for a task's document, inserted once and never changed. `task` is its seq.
CREATE TABLE ~payload (
    task   BIGINT NOT NULL,
    number BIGINT NOT NULL,
    json   TEXT NOT NULL,
    PRIMARY KEY (task, number)
);

CREATE TABLE ~tag (
    key   TEXT COLLATE "C" NOT NULL,
    value TEXT COLLATE "C" NOT NULL,
    task  BIGINT NOT NULL,
    PRIMARY KEY (key, value, task)
);

-- Definitions as they were stored. Immutable.
CREATE TABLE ~workflow (
    name       TEXT COLLATE "C" NOT NULL,
    version    BIGINT NOT NULL,
    text       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    generation BIGINT NOT NULL,
    PRIMARY KEY (name, version)
);

CREATE INDEX workflow_generation ON ~workflow (generation);

-- How often definitions ('workflow') and tokens ('token') were changed: so nodes notice what others
-- stored. Who changes one of them takes its row first, so the numbers become visible in their order.
CREATE TABLE ~generation (
    name   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL
);

-- The nodes: how often each was started, and what it said of itself at its last start. Whether it
-- lives is told by its lease.
CREATE TABLE ~node (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    boot       BIGINT NOT NULL,
    url        TEXT,
    schedules  BOOLEAN NOT NULL DEFAULT false,
    supervises BOOLEAN NOT NULL DEFAULT false,
    version    TEXT NOT NULL DEFAULT '',
    started_at BIGINT,
    draining   BOOLEAN NOT NULL DEFAULT false
);

-- Who may do what is done by one at a time; the epoch fences those who only think they still may.
CREATE TABLE ~lease (
    name   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    holder TEXT COLLATE "C" NOT NULL,
    epoch  BIGINT NOT NULL,
    until  BIGINT NOT NULL
);

CREATE TABLE ~token (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    hash       BYTEA NOT NULL UNIQUE,
    roles      TEXT NOT NULL,
    admin      BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT
);

CREATE TABLE ~audit (
    seq    BIGSERIAL PRIMARY KEY,
    at     BIGINT NOT NULL,
    actor  TEXT NOT NULL,
    verb   TEXT NOT NULL,
    task   TEXT COLLATE "C",
    step   TEXT,
    reason TEXT
);

CREATE INDEX audit_task ON ~audit (task, seq) WHERE task IS NOT NULL;

-- For people: the tasks with readable times and the values of their documents.
CREATE VIEW ~task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    to_timestamp(t.complete_by / 1000.0) AS complete_by,
    to_timestamp(t.wake_at / 1000.0) AS wake_at,
    to_timestamp(t.not_before / 1000.0) AS not_before,
    t.waiting_for, t.request, t.failure_count,
    to_timestamp(t.submitted_at / 1000.0) AS submitted_at,
    to_timestamp(t.started_at / 1000.0) AS started_at,
    to_timestamp(t.ended_at / 1000.0) AS ended_at,
    t.reply_to, t.tags,
    coalesce(d.doc -> 'input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (d.doc ->> 'input_payload')::bigint)) AS input,
    coalesce(d.doc -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (d.doc ->> 'output_payload')::bigint)) AS output,
    d.doc -> 'error' ->> 'code' AS error_code,
    d.doc -> 'error' ->> 'message' AS error_message
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;

-- The steps of all tasks.
CREATE VIEW ~task_step AS
SELECT t.id AS task, s.position - 1 AS position, s.value ->> 'name' AS name,
    s.value ->> 'state' AS state,
    coalesce(s.value ->> 'direction', 'forward') AS direction,
    coalesce((s.value ->> 'attempt')::bigint, 0) AS attempt,
    coalesce((s.value ->> 'failure_count')::bigint, 0) AS failure_count,
    coalesce((s.value ->> 'in_doubt')::boolean, false) AS in_doubt,
    to_timestamp((s.value ->> 'wait_until')::bigint / 1000.0) AS wait_until,
    coalesce(s.value -> 'input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (s.value ->> 'input_payload')::bigint)) AS input,
    coalesce(s.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (s.value ->> 'output_payload')::bigint)) AS output,
    coalesce(s.value -> 'undo_input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (s.value ->> 'undo_input_payload')::bigint))
        AS undo_input,
    s.value -> 'error' ->> 'code' AS error_code,
    s.value -> 'error' ->> 'message' AS error_message,
    coalesce((s.value -> 'dropped' ->> 'count')::bigint, 0) AS attempts_dropped
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps')
    WITH ORDINALITY AS s(value, position);

-- The attempts of all steps, as far as they are kept.
CREATE VIEW ~task_attempt AS
SELECT t.id AS task, s.value ->> 'name' AS step, (a.value ->> 'attempt')::bigint AS attempt,
    coalesce(a.value ->> 'direction', 'forward') AS direction,
    a.value ->> 'outcome' AS outcome,
    coalesce(a.value ->> 'effect', 'none') AS effect,
    a.value ->> 'instance' AS instance,
    to_timestamp((a.value ->> 'started_at')::bigint / 1000.0) AS started_at,
    to_timestamp((a.value ->> 'ended_at')::bigint / 1000.0) AS ended_at,
    to_timestamp((a.value ->> 'complete_by')::bigint / 1000.0) AS complete_by,
    coalesce(a.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (a.value ->> 'output_payload')::bigint)) AS output,
    a.value -> 'error' ->> 'code' AS error_code,
    a.value -> 'error' ->> 'message' AS error_message
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps') AS s(value)
    CROSS JOIN LATERAL json_array_elements(s.value -> 'attempts') AS a(value);

CREATE VIEW ~audit_view AS
SELECT seq, to_timestamp(at / 1000.0) AS at, actor, verb, task, step, reason FROM ~audit;
