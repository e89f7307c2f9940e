-- Items: a step with for_each does the same for each item of a list. A program of the version before does not know
-- such definitions: the number of this version prevents it from starting.
-- To change it: write the next file, never this one.

-- Items at rest: those that have ended. Items at work lie in the document of their task, in the step's `items`.
-- task: the task's seq. generation: of the step; one that starts anew has a new list. number: in the list, from 0.
-- needs_undo: 1: it took effect, or is in doubt, and would have to be undone. doc: the item, as a step of a document.
CREATE TABLE item (
    task       INTEGER NOT NULL,
    step       TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    state      TEXT    NOT NULL,
    in_doubt   INTEGER NOT NULL,
    needs_undo INTEGER NOT NULL,
    doc        TEXT    NOT NULL,
    PRIMARY KEY (task, step, generation, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX item_undo ON item (task, step, generation, number) WHERE needs_undo = 1;

-- All items that have begun, at rest or at work, as documents. An item that was brought back to be undone still has a
-- row, of how it was before.
CREATE VIEW item_document AS
SELECT s.task, s.seq, s.value ->> '$.name' AS step, coalesce(s.value ->> '$.key_generation', 1) - 1 AS generation,
    coalesce(i.value ->> '$.item', 0) AS number, 1 AS at_work, i.value
FROM step_document AS s, json_each(s.value, '$.items.at_work') AS i
UNION ALL
SELECT t.id, i.task, i.step, i.generation, i.number, 0, i.doc
FROM item AS i CROSS JOIN task AS t ON t.seq = i.task
WHERE NOT EXISTS (SELECT 1 FROM step_document AS s, json_each(s.value, '$.items.at_work') AS w
    WHERE s.task = t.id AND s.value ->> '$.name' = i.step
        AND coalesce(s.value ->> '$.key_generation', 1) - 1 = i.generation
        AND coalesce(w.value ->> '$.item', 0) = i.number);

-- For people: the items of steps with for_each that have begun. number: in its list, from 0. key_generation: of the
-- step, as in task_step; earlier lists are those of steps that an operator had start anew. at_work: 1: the item is in
-- the document of its task; 0: it is at rest.
CREATE VIEW task_item AS
SELECT i.task, i.step, i.generation + 1 AS key_generation, i.number, i.at_work, i.value ->> '$.state' AS state,
    coalesce(i.value ->> '$.direction', 'forward') AS direction,
    coalesce(i.value ->> '$.attempt', 0) AS attempt,
    coalesce(i.value ->> '$.failure_count', 0) AS failure_count,
    coalesce(i.value ->> '$.in_doubt', 0) AS in_doubt,
    strftime('%Y-%m-%dT%H:%M:%fZ', (i.value ->> '$.wait_until') / 1000.0, 'unixepoch')
        AS wait_until,
    coalesce(i.value -> '$.input', CASE i.value ->> '$.input_payload'
        WHEN 0 THEN (SELECT t.doc -> '$.input' FROM task AS t WHERE t.seq = i.seq)
        ELSE (SELECT p.json FROM payload AS p
            WHERE p.key = i.seq * 1048576 + (i.value ->> '$.input_payload')) END) AS input,
    coalesce(i.value -> '$.output', (SELECT p.json FROM payload AS p
        WHERE p.key = i.seq * 1048576 + (i.value ->> '$.output_payload'))) AS output,
    coalesce(i.value -> '$.undo_input', (SELECT p.json FROM payload AS p
        WHERE p.key = i.seq * 1048576 + (i.value ->> '$.undo_input_payload'))) AS undo_input,
    i.value ->> '$.error.code' AS error_code,
    i.value ->> '$.error.message' AS error_message,
    coalesce(i.value ->> '$.dropped.count', 0)
        + coalesce(json_array_length(i.value, '$.attempts'), 0) AS attempts,
    i.value ->> '$.child.number' AS child_number,
    i.value ->> '$.child.state' AS child_state
FROM item_document AS i;

-- items: how many the list has. items_begun to items_undone: how many have begun, and are at rest in that state.
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
    s.value ->> '$.child.wish' AS child_wish,
    s.value ->> '$.items.count' AS items,
    iif(s.value ->> '$.items.count' > 0, coalesce(s.value ->> '$.items.begun', 0), NULL) AS items_begun,
    iif(s.value ->> '$.items.count' > 0, coalesce(s.value ->> '$.items.completed', 0), NULL) AS items_completed,
    iif(s.value ->> '$.items.count' > 0, coalesce(s.value ->> '$.items.failed', 0), NULL) AS items_failed,
    iif(s.value ->> '$.items.count' > 0, coalesce(s.value ->> '$.items.skipped', 0), NULL) AS items_skipped,
    iif(s.value ->> '$.items.count' > 0, coalesce(s.value ->> '$.items.undone', 0), NULL) AS items_undone
FROM step_document AS s;
