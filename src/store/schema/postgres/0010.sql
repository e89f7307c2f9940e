-- A node says which agents are connected to it, so that the others can tell of a task that waits.
-- To change it: write the next file, never this one.

-- A JSON array of names; NULL: it does not say.
ALTER TABLE ~node ADD COLUMN agents TEXT;
