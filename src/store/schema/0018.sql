-- Whose submission a deleted task was is kept with its id: others are not told of it.
-- To change it: write the next file, never this one.

-- owner: as in task_view; NULL: nobody's, or the task was deleted under a version before.
ALTER TABLE reserved ADD COLUMN owner TEXT;
