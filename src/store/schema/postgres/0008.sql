-- A task of which several agents could go on is found by each of them. A program of the version
-- before does not find it, and does not start once this number is there.
-- To change it: write the next file, never this one.

-- The tasks that wait for several: one row for each agent, or "time", and each line of its ranks.
CREATE TABLE ~wait (
    agent TEXT COLLATE "C" NOT NULL,
    rank  BIGINT NOT NULL,
    task  BIGINT NOT NULL -- task.seq
);
CREATE INDEX wait_claim ON ~wait (agent, rank, task);
CREATE INDEX wait_task ON ~wait (task);

-- What waits for one of several agents by now, or for that of a step that is not wanted, is looked
-- at anew. Steps can be ready at the same time only where a definition says `after`.
UPDATE ~task AS t SET waiting_for = 'time', rank = t.submitted_at
WHERE t.state = 'pending' AND t.locked_by IS NULL AND t.waiting_for <> 'time'
    AND EXISTS (SELECT 1 FROM ~workflow AS w WHERE w.name = t.workflow
        AND w.version = t.version AND (position('after' IN w.text) > 0 OR position('if' IN w.text) > 0));

-- waiting_for: several with commas between them.
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
    d.doc ->> 'closed_reason' AS closed_reason
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;
