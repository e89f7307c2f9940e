-- Steps that wait for signals. A program of the version before does not know such definitions: the number of
-- this version prevents it from starting. Nodes of that version that still run go on.
-- To change it: write the next file, never this one.

-- complete_by: until when a step waits for a signal; NULL: without limit, or it does not.
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
    to_timestamp((s.value ->> 'complete_by')::bigint / 1000.0) AS complete_by
FROM ~step_document AS s;

-- The signals that tasks were sent, in the order of their arrival. step: which took it; NULL: none did, or the
-- signal had the task undone.
CREATE OR REPLACE VIEW ~task_signal AS
SELECT t.id AS task, s.position - 1 AS position, s.value ->> 'key' AS key, s.value ->> 'name' AS name,
    s.value ->> 'state' AS state, s.value ->> 'step' AS step,
    to_timestamp((s.value ->> 'at')::bigint / 1000.0) AS at,
    coalesce(s.value -> 'data', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = t.seq AND p.number = (s.value ->> 'data_payload')::bigint)) AS data
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'signals') WITH ORDINALITY AS s(value, position);
