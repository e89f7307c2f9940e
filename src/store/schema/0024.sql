-- Steps in which people decide. A program of the version before does not know such definitions: the number of
-- this version prevents it from starting.
-- To change it: write the next file, never this one.

-- person: whose token it is; NULL: a person of the token's name. groups: of that person, a JSON array.
ALTER TABLE token ADD COLUMN person TEXT;
ALTER TABLE token ADD COLUMN groups TEXT;

-- The person who is taken for the submitter of what a schedule submits: its author, as "VERSION PERSON". Of
-- another version, which a node that knows no persons has stored, it says nothing.
ALTER TABLE schedule ADD COLUMN person TEXT;
ALTER TABLE submission ADD COLUMN submitter TEXT;

-- asked: groups of persons who are asked by steps of the task, such as ",cfo,finance,"; NULL: nobody is.
ALTER TABLE task ADD COLUMN asked TEXT;
CREATE INDEX task_asked ON task (seq) WHERE asked IS NOT NULL;

-- What persons said to the present questions of a task, in the order of their arrival.
CREATE VIEW IF NOT EXISTS task_vote AS
SELECT t.id AS task, v.key AS position, v.value ->> '$.step' AS step, v.value ->> '$.person' AS person,
    coalesce(v.value ->> '$.agrees', 0) AS agrees, v.value ->> '$.comment' AS comment,
    strftime('%Y-%m-%dT%H:%M:%fZ', (v.value ->> '$.at') / 1000.0, 'unixepoch') AS at
FROM task AS t, json_each(t.doc, '$.votes') AS v;
