-- Agents: what a user has set of them, and how their breakers stand. To change it: write the next
-- file, never this one.

-- Both are JSON; NULL: nothing was said. A row stays once it is there. `generation` is the number of
-- 'agent' in ~generation when it was last changed, by which nodes read what is new to them.
CREATE TABLE ~agent (
    name       TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    settings   TEXT,
    breaker    TEXT,
    generation BIGINT NOT NULL
);

CREATE INDEX agent_generation ON ~agent (generation);
