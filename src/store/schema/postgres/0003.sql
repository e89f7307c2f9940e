-- For people: what steps leave for their next attempt, and more of each attempt. The views keep what
-- was granted. To change them: write the next file, never this one.

-- The steps of all tasks.
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
    s.value -> 'resume' AS resume
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps')
    WITH ORDINALITY AS s(value, position);

-- The attempts of all steps, as far as they are kept.
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
    coalesce((a.value ->> 'spared')::boolean, false) AS spared
FROM ~task AS t
    CROSS JOIN LATERAL json_array_elements(t.doc::json -> 'steps') AS s(value)
    CROSS JOIN LATERAL json_array_elements(s.value -> 'attempts') AS a(value);
