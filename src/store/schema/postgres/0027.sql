-- Items: a step with for_each does the same for each item of a list. A program of the version before does not know
-- such definitions: the number of this version prevents it from starting. Nodes of that version that still run go on.
-- To change it: write the next file, never this one.

-- Items at rest: those that have ended. Items at work lie in the document of their task, in the step's `items`.
-- task: the task's seq. generation: of the step; one that starts anew has a new list. number: in the list, from 0.
-- needs_undo: it took effect, or is in doubt, and would have to be undone. doc: the item, as a step of a document.
CREATE TABLE ~item (
    task       bigint NOT NULL,
    step       text COLLATE "C" NOT NULL,
    generation bigint NOT NULL,
    number     bigint NOT NULL,
    state      text NOT NULL,
    in_doubt   boolean NOT NULL,
    needs_undo boolean NOT NULL,
    doc        text NOT NULL,
    PRIMARY KEY (task, step, generation, number)
);
CREATE INDEX item_undo ON ~item (task, step, generation, number) WHERE needs_undo;

-- All items that have begun, at rest or at work, as documents. An item that was brought back to be undone still has a
-- row, of how it was before.
CREATE VIEW ~item_document AS
SELECT s.task, s.seq, s.value ->> 'name' AS step, coalesce((s.value ->> 'key_generation')::bigint, 1) - 1 AS generation,
    coalesce((i.value ->> 'item')::bigint, 0) AS number, true AS at_work, i.value
FROM ~step_document AS s
    CROSS JOIN LATERAL json_array_elements(s.value -> 'items' -> 'at_work') AS i(value)
UNION ALL
SELECT t.id, i.task, i.step, i.generation, i.number, false, i.doc::json
FROM ~item AS i JOIN ~task AS t ON t.seq = i.task
WHERE NOT EXISTS (SELECT 1 FROM ~step_document AS s
    CROSS JOIN LATERAL json_array_elements(s.value -> 'items' -> 'at_work') AS w(value)
    WHERE s.task = t.id AND s.value ->> 'name' = i.step
        AND coalesce((s.value ->> 'key_generation')::bigint, 1) - 1 = i.generation
        AND coalesce((w.value ->> 'item')::bigint, 0) = i.number);

-- For people: the items of steps with for_each that have begun. number: in its list, from 0. key_generation: of the
-- step, as in task_step; earlier lists are those of steps that an operator had start anew. at_work: the item is in the
-- document of its task; if not, it is at rest.
CREATE VIEW ~task_item AS
SELECT i.task, i.step, i.generation + 1 AS key_generation, i.number, i.at_work, i.value ->> 'state' AS state,
    coalesce(i.value ->> 'direction', 'forward') AS direction,
    coalesce((i.value ->> 'attempt')::bigint, 0) AS attempt,
    coalesce((i.value ->> 'failure_count')::bigint, 0) AS failure_count,
    coalesce((i.value ->> 'in_doubt')::boolean, false) AS in_doubt,
    to_timestamp((i.value ->> 'wait_until')::bigint / 1000.0) AS wait_until,
    coalesce(i.value -> 'input', CASE (i.value ->> 'input_payload')::bigint
        WHEN 0 THEN (SELECT t.doc::json -> 'input' FROM ~task AS t WHERE t.seq = i.seq)
        ELSE (SELECT p.json::json FROM ~payload AS p
            WHERE p.task = i.seq AND p.number = (i.value ->> 'input_payload')::bigint) END) AS input,
    coalesce(i.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = i.seq AND p.number = (i.value ->> 'output_payload')::bigint)) AS output,
    coalesce(i.value -> 'undo_input', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = i.seq AND p.number = (i.value ->> 'undo_input_payload')::bigint)) AS undo_input,
    i.value -> 'error' ->> 'code' AS error_code,
    i.value -> 'error' ->> 'message' AS error_message,
    coalesce((i.value -> 'dropped' ->> 'count')::bigint, 0)
        + coalesce(json_array_length(i.value -> 'attempts'), 0) AS attempts,
    (i.value -> 'child' ->> 'number')::bigint AS child_number,
    i.value -> 'child' ->> 'state' AS child_state
FROM ~item_document AS i;

-- items: how many the list has. items_begun to items_undone: how many have begun, and are at rest in that state.
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
    s.value -> 'child' ->> 'wish' AS child_wish,
    (s.value -> 'items' ->> 'count')::bigint AS items,
    CASE WHEN (s.value -> 'items' ->> 'count')::bigint > 0
        THEN coalesce((s.value -> 'items' ->> 'begun')::bigint, 0) END AS items_begun,
    CASE WHEN (s.value -> 'items' ->> 'count')::bigint > 0
        THEN coalesce((s.value -> 'items' ->> 'completed')::bigint, 0) END AS items_completed,
    CASE WHEN (s.value -> 'items' ->> 'count')::bigint > 0
        THEN coalesce((s.value -> 'items' ->> 'failed')::bigint, 0) END AS items_failed,
    CASE WHEN (s.value -> 'items' ->> 'count')::bigint > 0
        THEN coalesce((s.value -> 'items' ->> 'skipped')::bigint, 0) END AS items_skipped,
    CASE WHEN (s.value -> 'items' ->> 'count')::bigint > 0
        THEN coalesce((s.value -> 'items' ->> 'undone')::bigint, 0) END AS items_undone
FROM ~step_document AS s;
