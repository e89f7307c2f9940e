-- Rounds of repeated steps in the views. The tables are those of the version before.
-- To change it: write the next file, never this one.

-- round: of a repeated step, from 1; NULL: none began, or it does not repeat. round_at: when that round began.
-- repeat_until: a round that begins then or later is the last.
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
    to_timestamp((s.value ->> 'repeat_until')::bigint / 1000.0) AS repeat_until
FROM ~step_document AS s;

-- round: of a repeated step, as above.
CREATE OR REPLACE VIEW ~task_attempt AS
SELECT s.task, s.value ->> 'name' AS step, (a.value ->> 'attempt')::bigint AS attempt,
    coalesce(a.value ->> 'direction', 'forward') AS direction,
    a.value ->> 'outcome' AS outcome,
    coalesce(a.value ->> 'effect', 'none') AS effect,
    a.value ->> 'instance' AS instance,
    to_timestamp((a.value ->> 'started_at')::bigint / 1000.0) AS started_at,
    to_timestamp((a.value ->> 'ended_at')::bigint / 1000.0) AS ended_at,
    to_timestamp((a.value ->> 'complete_by')::bigint / 1000.0) AS complete_by,
    coalesce(a.value -> 'output', (SELECT p.json::json FROM ~payload AS p
        WHERE p.task = s.seq AND p.number = (a.value ->> 'output_payload')::bigint)) AS output,
    a.value -> 'error' ->> 'code' AS error_code,
    a.value -> 'error' ->> 'message' AS error_message,
    coalesce((a.value ->> 'resent')::bigint, 0) AS resent,
    coalesce((a.value ->> 'tries')::bigint, 0) AS tries,
    coalesce((a.value ->> 'elsewhere')::boolean, false) AS elsewhere,
    coalesce((a.value ->> 'spared')::boolean, false) AS spared,
    coalesce((a.value ->> 'key_generation')::bigint, 1) AS key_generation,
    (a.value ->> 'round')::bigint AS round
FROM ~step_document AS s
    CROSS JOIN LATERAL json_array_elements(s.value -> 'attempts') AS a(value);
