-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. To change it: write the next file, never this one.

-- Tasks: what a person did to the whole of it. paused_at: nothing of it starts, and its clocks stand
-- still. closed_at: it stopped in error, and is to stay so. detail: what was there before, and after.
ALTER TABLE ~task ADD COLUMN paused_at BIGINT;
ALTER TABLE ~task ADD COLUMN closed_at BIGINT;
ALTER TABLE ~audit ADD COLUMN detail TEXT;
-- What somebody has to see to: all that stopped in error and was not closed.
CREATE INDEX task_open_error ON ~task (seq) WHERE state = 'error' AND closed_at IS NULL;

CREATE OR REPLACE VIEW ~task_view AS
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
    d.doc -> 'error' ->> 'message' AS error_message,
    to_timestamp(t.paused_at / 1000.0) AS paused_at,
    to_timestamp(t.closed_at / 1000.0) AS closed_at,
    d.doc ->> 'closed_reason' AS closed_reason
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;

CREATE OR REPLACE VIEW ~task_step AS
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
    coalesce((s.value -> 'dropped' ->> 'count')::bigint, 0) AS attempts_dropped,
    s.value -> 'resume' AS resume,
    coalesce((s.value ->> 'key_generation')::bigint, 1) AS key_generation,
    coalesce((s.value ->> 'supplied')::boolean, false) AS supplied
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps')
    WITH ORDINALITY AS s(value, position);

CREATE OR REPLACE VIEW ~task_attempt AS
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
    a.value -> 'error' ->> 'message' AS error_message,
    coalesce((a.value ->> 'resent')::bigint, 0) AS resent,
    coalesce((a.value ->> 'tries')::bigint, 0) AS tries,
    coalesce((a.value ->> 'elsewhere')::boolean, false) AS elsewhere,
    coalesce((a.value ->> 'spared')::boolean, false) AS spared,
    coalesce((a.value ->> 'key_generation')::bigint, 1) AS key_generation
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps') AS s(value)
    CROSS JOIN LATERAL json_array_elements(s.value -> 'attempts') AS a(value);

CREATE OR REPLACE VIEW ~audit_view AS
SELECT seq, to_timestamp(at / 1000.0) AS at, actor, verb, task, step, reason, detail FROM ~audit;

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks.

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
CREATE INDEX task_stopped ON ~task (ended_at, seq) WHERE state = 'error' AND closed_at IS NULL;

-- Reserved: ids of tasks that were deleted.
