-- Families: a step may start a task of its own. A program of the version before does not know such definitions: the
-- number of this version prevents it from starting. Nodes of that version that still run go on.
-- To change it: write the next file, never this one.

-- Of a child: the task that started it, and the task at the root of the family; ids.
ALTER TABLE ~task ADD COLUMN parent text COLLATE "C";
ALTER TABLE ~task ADD COLUMN root text COLLATE "C";
CREATE INDEX task_parent ON ~task (parent, seq) WHERE parent IS NOT NULL;
CREATE INDEX task_root ON ~task (root, seq) WHERE root IS NOT NULL;

-- child: whose child it is that waits to become a task, a JSON object.
ALTER TABLE ~submission ADD COLUMN child TEXT;

-- Roots of families that were deleted, and whose children are still there. Until they are gone, too, its id is
-- reserved beyond all times; then until `until`. archive: 1: the root was archived, and so are they.
CREATE TABLE ~orphaned (
    root    text COLLATE "C" PRIMARY KEY,
    until   bigint NOT NULL,
    archive bigint NOT NULL
);

CREATE OR REPLACE VIEW ~task_view AS
SELECT t.id, t.workflow, t.version, t.revision, t.state, t.direction, t.priority, t.locked_by,
    to_timestamp(t.complete_by / 1000.0) AS complete_by,
    to_timestamp(t.wake_at / 1000.0) AS wake_at,
    to_timestamp(t.not_before / 1000.0) AS not_before,
    ltrim(t.waiting_for, ',') AS waiting_for, t.request, t.failure_count,
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
    d.doc ->> 'closed_reason' AS closed_reason,
    d.doc -> 'cause' ->> 'step' AS cause_step,
    d.doc -> 'cause' ->> 'code' AS cause_code,
    d.doc -> 'cause' ->> 'message' AS cause_message,
    d.doc ->> 'owner' AS owner, t.lock,
    to_timestamp(t.lock_since / 1000.0) AS lock_since,
    t.parent, t.root, d.doc -> 'parent' ->> 'step' AS parent_step,
    (d.doc -> 'parent' ->> 'number')::bigint AS parent_number
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;

-- child_number: how many children the step has started. child_state: what the parent knows of the present one.
-- child_wish: what it was last told.
CREATE OR REPLACE VIEW ~task_step AS
SELECT s.task, s.position, s.value ->> 'name' AS name,
    s.value ->> 'state' AS state,
    coalesce(s.value ->> 'direction', 'forward') AS direction,
    coalesce((s.value ->> 'attempt')::bigint, 0) AS attempt,
    coalesce((s.value ->> 'failure_count')::bigint, 0) AS failure_count,
    coalesce((s.value ->> 'in_doubt')::boolean, false) AS in_doubt,
    to_timestamp((s.value ->> 'wait_until')::bigint / 1000.0) AS wait_until,
    coalesce(s.value -> 'input', CASE (s.value ->> 'input_payload')::bigint
        WHEN 0 THEN (SELECT t.doc::json -> 'input' FROM ~task AS t WHERE t.seq = s.seq)
        ELSE (SELECT p.json::json FROM ~payload AS p
            WHERE p.task = s.seq AND p.number = (s.value ->> 'input_payload')::bigint) END) AS input,
    coalesce(s.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = s.seq AND p.number = (s.value ->> 'output_payload')::bigint)) AS output,
    coalesce(s.value -> 'undo_input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = s.seq AND p.number = (s.value ->> 'undo_input_payload')::bigint))
        AS undo_input,
    s.value -> 'error' ->> 'code' AS error_code,
    s.value -> 'error' ->> 'message' AS error_message,
    coalesce((s.value -> 'dropped' ->> 'count')::bigint, 0) AS attempts_dropped,
    s.value -> 'resume' AS resume,
    coalesce((s.value ->> 'key_generation')::bigint, 1) AS key_generation,
    coalesce((s.value ->> 'supplied')::boolean, false) AS supplied,
    coalesce((s.value ->> 'resolved')::bigint, 0) AS resolved,
    to_timestamp((s.value ->> 'begun_at')::bigint / 1000.0) AS begun_at,
    to_timestamp((s.value ->> 'complete_by')::bigint / 1000.0) AS complete_by,
    (s.value ->> 'round')::bigint AS round,
    to_timestamp((s.value ->> 'round_at')::bigint / 1000.0) AS round_at,
    to_timestamp((s.value ->> 'repeat_until')::bigint / 1000.0) AS repeat_until,
    (s.value -> 'child' ->> 'number')::bigint AS child_number,
    s.value -> 'child' ->> 'state' AS child_state,
    s.value -> 'child' ->> 'wish' AS child_wish
FROM ~step_document AS s;
