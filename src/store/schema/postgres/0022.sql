-- Locks: of the tasks with the same lock at most so many are between their first step and their end. A program
-- of the version before does not know such definitions: the number of this version prevents it from starting.
-- To change it: write the next file, never this one.

-- lock: 'NAME/KEY'; NULL: it needs none. lock_max: how many may hold it together with this task.
-- lock_since: ms UTC; NULL: it does not hold it.
ALTER TABLE ~task ADD COLUMN lock text COLLATE "C";
ALTER TABLE ~task ADD COLUMN lock_max bigint NOT NULL DEFAULT 0;
ALTER TABLE ~task ADD COLUMN lock_since bigint;

-- held: the number of its holders. look: somebody may wait for it while there is room, if it is -1; a
-- transaction that looks has its number there.
CREATE TABLE ~lock_key (
    lock text COLLATE "C" PRIMARY KEY,
    held bigint NOT NULL CHECK (held >= 0),
    look bigint
);
CREATE INDEX lock_key_look ON ~lock_key (look, lock) WHERE look IS NOT NULL;

-- Who holds locks: a task takes one, once. task: its seq.
CREATE TABLE ~lock_holder (
    task bigint PRIMARY KEY,
    lock text COLLATE "C" NOT NULL,
    since bigint NOT NULL
);
CREATE INDEX lock_holder_lock ON ~lock_holder (lock, task);
