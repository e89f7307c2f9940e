-- Items that need an undo are found by their key: nearly all of a list need one, or none does, and each item at rest
-- paid for an entry in an index of its own, twice.
-- To change it: write the next file, never this one.

DROP INDEX item_undo;
