-- Steps that wait for signals. A program of the version before does not know such definitions: the number of
-- this version prevents it from starting.
-- To change it: write the next file, never this one.

-- complete_by: until when a step waits for a signal; NULL: without limit, or it does not.
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
        AS complete_by
FROM step_document AS s;

-- The signals that tasks were sent, in the order of their arrival. step: which took it; NULL: none did, or the
-- signal had the task undone.
CREATE VIEW IF NOT EXISTS task_signal AS
SELECT t.id AS task, s.key AS position, s.value ->> '$.key' AS key, s.value ->> '$.name' AS name,
    s.value ->> '$.state' AS state, s.value ->> '$.step' AS step,
    strftime('%Y-%m-%dT%H:%M:%fZ', (s.value ->> '$.at') / 1000.0, 'unixepoch') AS at,
    coalesce(s.value -> '$.data', (SELECT p.json FROM payload AS p
        WHERE p.key = t.seq * 1048576 + (s.value ->> '$.data_payload'))) AS data
FROM task AS t, json_each(t.doc, '$.signals') AS s;
