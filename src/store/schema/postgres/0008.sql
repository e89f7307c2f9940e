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
