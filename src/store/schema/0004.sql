-- Agents: what a user has set of them, and how their breakers stand.

-- Both are JSON; NULL: nothing was said. A row stays once it is there.
CREATE TABLE agent (
    name     TEXT NOT NULL PRIMARY KEY,
    settings TEXT,
    breaker  TEXT
) STRICT;
