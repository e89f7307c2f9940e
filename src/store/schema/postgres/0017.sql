-- Whose submission a deleted task was is kept with its id: others are not told of it. Nodes of the
-- version before that still run go on: what they delete is nobody's.
-- To change it: write the next file, never this one.

-- owner: as in task_view, behind the text of the column content, for which the same holds as for
-- sha256. NULL: nobody's, or the task was deleted under a version before.
ALTER TABLE ~reserved ADD COLUMN owner TEXT;
