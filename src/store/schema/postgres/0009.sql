-- The first failure of a task, for which it stopped or turned back, stays when its error changes. A
-- program of the version before would drop it, and evaluate .task.error to null: by the number of
-- this version it is kept out. To change it: write the next file, never this one.

-- waiting_for: several with commas between them.
-- cause_step: whose failure it was; NULL: of none, but the task's as a whole, or there was none.
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
    d.doc -> 'cause' ->> 'message' AS cause_message
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;
