-- Locks: of the tasks with the same lock at most so many are between their first step and their end. A program
-- of the version before does not know such definitions: the number of this version prevents it from starting.
-- To change it: write the next file, never this one.

-- lock: 'NAME/KEY'; NULL: it needs none. lock_max: how many may hold it together with this task.
-- lock_since: ms UTC; NULL: it does not hold it.
ALTER TABLE task ADD COLUMN lock TEXT;
ALTER TABLE task ADD COLUMN lock_max INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN lock_since INTEGER;

-- held: the number of its holders. look: somebody may wait for it while there is room.
CREATE TABLE lock_key (
    lock TEXT PRIMARY KEY,
    held INTEGER NOT NULL CHECK (held >= 0),
    look INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX lock_key_look ON lock_key (lock) WHERE look <> 0;

-- Who holds locks: a task takes one, once. task: its seq.
CREATE TABLE lock_holder (
    task INTEGER PRIMARY KEY,
    lock TEXT NOT NULL,
    since INTEGER NOT NULL
) STRICT;
CREATE INDEX lock_holder_lock ON lock_holder (lock, task);
