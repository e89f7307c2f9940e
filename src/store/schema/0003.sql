-- Which file this is: a copy of it has another inode, and is not used by mistake.

-- One row. `inode` is that of intact.db; `born_ns` the moment at which that file was made, in
-- nanoseconds since 1970, or NULL where the file system does not tell.
CREATE TABLE file (
    one     INTEGER PRIMARY KEY CHECK (one = 1),
    inode   INTEGER NOT NULL,
    born_ns INTEGER
) STRICT;
