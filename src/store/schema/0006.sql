-- Submissions, messages, alerts, operations: what comes from applications, and what they and the
-- people who look after them are told. Times are milliseconds since 1970 UTC, NULL is "none".

-- Tasks: what a person did to the whole of it. paused_at: nothing of it starts, and its clocks stand
-- still. closed_at: it stopped in error, and is to stay so. detail: what was there before, and after.
ALTER TABLE task ADD COLUMN paused_at INTEGER;
ALTER TABLE task ADD COLUMN closed_at INTEGER;
ALTER TABLE audit ADD COLUMN detail TEXT;
-- What somebody has to see to: all that stopped in error and was not closed.
CREATE INDEX task_open_error ON task (seq) WHERE state = 'error' AND closed_at IS NULL;

DROP VIEW task_view;
CREATE VIEW task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.complete_by / 1000.0, 'unixepoch') AS complete_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.wake_at / 1000.0, 'unixepoch') AS wake_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.not_before / 1000.0, 'unixepoch') AS not_before,
    t.waiting_for, t.request, t.failure_count,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.submitted_at / 1000.0, 'unixepoch') AS submitted_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.ended_at / 1000.0, 'unixepoch') AS ended_at,
    t.reply_to, t.tags,
    coalesce(t.doc -> '$.input', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (t.doc ->> '$.input_payload'))) AS input,
    coalesce(t.doc -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (t.doc ->> '$.output_payload'))) AS output,
    t.doc ->> '$.error.code' AS error_code,
    t.doc ->> '$.error.message' AS error_message,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.paused_at / 1000.0, 'unixepoch') AS paused_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.closed_at / 1000.0, 'unixepoch') AS closed_at,
    t.doc ->> '$.closed_reason' AS closed_reason
FROM task AS t;

DROP VIEW task_step;
CREATE VIEW task_step AS
SELECT t.id AS task, s.key AS position, s.value ->> '$.name' AS name,
    s.value ->> '$.state' AS state,
    coalesce(s.value ->> '$.direction', 'forward') AS direction,
    coalesce(s.value ->> '$.attempt', 0) AS attempt,
    coalesce(s.value ->> '$.failure_count', 0) AS failure_count,
    coalesce(s.value ->> '$.in_doubt', 0) AS in_doubt,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.wait_until') / 1000.0, 'unixepoch')
        AS wait_until,
    coalesce(s.value -> '$.input', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (s.value ->> '$.input_payload'))) AS input,
    coalesce(s.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (s.value ->> '$.output_payload'))) AS output,
    coalesce(s.value -> '$.undo_input', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (s.value ->> '$.undo_input_payload'))) AS undo_input,
    s.value ->> '$.error.code' AS error_code,
    s.value ->> '$.error.message' AS error_message,
    coalesce(s.value ->> '$.dropped.count', 0) AS attempts_dropped,
    s.value -> '$.resume' AS resume,
    coalesce(s.value ->> '$.key_generation', 1) AS key_generation,
    coalesce(s.value ->> '$.supplied', 0) AS supplied
FROM task AS t, json_each(t.doc, '$.steps') AS s;

DROP VIEW task_attempt;
CREATE VIEW task_attempt AS
SELECT t.id AS task, s.value ->> '$.name' AS step, a.value ->> '$.attempt' AS attempt,
    coalesce(a.value ->> '$.direction', 'forward') AS direction,
    a.value ->> '$.outcome' AS outcome,
    coalesce(a.value ->> '$.effect', 'none') AS effect,
    a.value ->> '$.instance' AS instance,
    strftime('%Y-%m-%dT%H:%M:%fZ', (a.value ->> '$.started_at') / 1000.0, 'unixepoch')
        AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (a.value ->> '$.ended_at') / 1000.0, 'unixepoch') AS ended_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (a.value ->> '$.complete_by') / 1000.0, 'unixepoch')
        AS complete_by,
    coalesce(a.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (a.value ->> '$.output_payload'))) AS output,
    a.value ->> '$.error.code' AS error_code,
    a.value ->> '$.error.message' AS error_message,
    coalesce(a.value ->> '$.resent', 0) AS resent,
    coalesce(a.value ->> '$.tries', 0) AS tries,
    coalesce(a.value ->> '$.elsewhere', 0) AS elsewhere,
    coalesce(a.value ->> '$.spared', 0) AS spared,
    coalesce(a.value ->> '$.key_generation', 1) AS key_generation
FROM task AS t, json_each(t.doc, '$.steps') AS s, json_each(s.value, '$.attempts') AS a;

DROP VIEW audit_view;
CREATE VIEW audit_view AS
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch') AS at, actor, verb, task, step,
    reason, detail
FROM audit;

-- Submissions: what applications put in here becomes tasks.

-- Outbox: what is to be told of tasks.

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
CREATE INDEX task_stopped ON task (ended_at) WHERE state = 'error' AND closed_at IS NULL;

-- Reserved: ids of tasks that were deleted.
