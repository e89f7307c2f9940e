-- A task of which several agents could go on is found by each of them. A program of the version
-- before would not find it, and leave its waits behind: by the number of this version it is kept
-- out. To change it: write the next file, never this one.

-- The tasks that wait for several: one row for each agent, or "time", and each line of its ranks.
CREATE TABLE wait (
    agent TEXT NOT NULL,
    rank  INTEGER NOT NULL,
    task  INTEGER NOT NULL, -- task.seq
    PRIMARY KEY (agent, rank, task)
) WITHOUT ROWID;
CREATE INDEX wait_task ON wait (task);

-- What waits for one of several agents by now, or for that of a step that is not wanted, is looked
-- at anew. Steps can be ready at the same time only where a definition says `after`.
UPDATE task SET waiting_for = 'time', rank = submitted_at
WHERE state = 'pending' AND locked_by IS NULL AND waiting_for IS NOT NULL AND waiting_for <> 'time'
    AND EXISTS (SELECT 1 FROM workflow AS w WHERE w.name = task.workflow
        AND w.version = task.version AND (instr(w.text, 'after') > 0 OR instr(w.text, 'if') > 0));
