-- A task belongs to the token that it was submitted with. A program of the version before does not
-- know of that, and does not start once this number is there.
-- To change it: write the next file, never this one.

-- previous_hash: of the text that a rotation replaced; it is good until previous_until.
-- limits: what the token may use, as JSON; NULL: what the server allows by default.
ALTER TABLE ~token ADD COLUMN previous_hash BYTEA;
ALTER TABLE ~token ADD COLUMN previous_until BIGINT;
ALTER TABLE ~token ADD COLUMN limits TEXT;

-- grammar: the number of the newest words of definitions that the node knows; NULL: those of the
-- versions before this one.
ALTER TABLE ~node ADD COLUMN grammar BIGINT;

-- owner: the name of the token that the task was submitted with; NULL: of none.
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
    d.doc -> 'cause' ->> 'message' AS cause_message,
    d.doc ->> 'owner' AS owner
FROM ~task AS t CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d;
