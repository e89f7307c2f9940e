-- Families: a step may start a task of its own. A program of the version before does not know such definitions: the
-- number of this version prevents it from starting.
-- To change it: write the next file, never this one.

-- Of a child: the task that started it, and the task at the root of the family; ids.
ALTER TABLE task ADD COLUMN parent TEXT;
ALTER TABLE task ADD COLUMN root TEXT;
CREATE INDEX task_parent ON task (parent) WHERE parent IS NOT NULL;
CREATE INDEX task_root ON task (root) WHERE root IS NOT NULL;

-- child: whose child it is that waits to become a task, a JSON object.
ALTER TABLE submission ADD COLUMN child TEXT;

-- Roots of families that were deleted, and whose children are still there. Until they are gone, too, its id is
-- reserved beyond all times; then until `until`. archive: 1: the root was archived, and so are they.
CREATE TABLE orphaned (
    root    TEXT PRIMARY KEY,
    until   INTEGER NOT NULL,
    archive INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

DROP VIEW IF EXISTS task_view;
CREATE VIEW task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.complete_by / 1000.0, 'unixepoch') AS complete_by,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.wake_at / 1000.0, 'unixepoch') AS wake_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.not_before / 1000.0, 'unixepoch') AS not_before,
    ltrim(t.waiting_for, ',') AS waiting_for, t.request, t.failure_count,
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
    t.doc ->> '$.closed_reason' AS closed_reason,
    t.doc ->> '$.cause.step' AS cause_step,
    t.doc ->> '$.cause.code' AS cause_code,
    t.doc ->> '$.cause.message' AS cause_message,
    t.doc ->> '$.owner' AS owner, t.lock,
    strftime('%Y-%m-%dT%H:%M:%fZ', t.lock_since / 1000.0, 'unixepoch') AS lock_since,
    t.parent, t.root, t.doc ->> '$.parent.step' AS parent_step, t.doc ->> '$.parent.number' AS parent_number
FROM task AS t;

-- child_number: how many children the step has started. child_state: what the parent knows of the present one.
-- child_wish: what it was last told.
DROP VIEW task_step;
CREATE VIEW task_step AS
SELECT s.task, s.position, s.value ->> '$.name' AS name,
    s.value ->> '$.state' AS state,
    coalesce(s.value ->> '$.direction', 'forward') AS direction,
    coalesce(s.value ->> '$.attempt', 0) AS attempt,
    coalesce(s.value ->> '$.failure_count', 0) AS failure_count,
    coalesce(s.value ->> '$.in_doubt', 0) AS in_doubt,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.wait_until') / 1000.0, 'unixepoch')
        AS wait_until,
    coalesce(s.value -> '$.input', CASE s.value ->> '$.input_payload'
        WHEN 0 THEN (SELECT t.doc -> '$.input' FROM task AS t WHERE t.seq = s.seq)
        ELSE (SELECT p.json FROM payload AS p
            WHERE p.key = s.seq * 1048576 + (s.value ->> '$.input_payload')) END) AS input,
    coalesce(s.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = s.seq * 1048576 + (s.value ->> '$.output_payload'))) AS output,
    coalesce(s.value -> '$.undo_input', (SELECT p.json FROM payload AS p
        WHERE p.key = s.seq * 1048576 + (s.value ->> '$.undo_input_payload'))) AS undo_input,
    s.value ->> '$.error.code' AS error_code,
    s.value ->> '$.error.message' AS error_message,
    coalesce(s.value ->> '$.dropped.count', 0) AS attempts_dropped,
    s.value -> '$.resume' AS resume,
    coalesce(s.value ->> '$.key_generation', 1) AS key_generation,
    coalesce(s.value ->> '$.supplied', 0) AS supplied,
    coalesce(s.value ->> '$.resolved', 0) AS resolved,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.begun_at') / 1000.0, 'unixepoch')
        AS begun_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.complete_by') / 1000.0, 'unixepoch')
        AS complete_by,
    s.value ->> '$.round' AS round,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.round_at') / 1000.0, 'unixepoch')
        AS round_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.repeat_until') / 1000.0, 'unixepoch')
        AS repeat_until,
    s.value ->> '$.child.number' AS child_number,
    s.value ->> '$.child.state' AS child_state,
    s.value ->> '$.child.wish' AS child_wish
FROM step_document AS s;
