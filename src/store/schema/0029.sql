-- The view of items reads the items at work of a step once, not once for each item at rest: it took seconds for a list
-- of 10 000 items with 100 at work.
-- To change it: write the next file, never this one.

-- All items that have begun, at rest or at work, as documents. An item that was at rest and is at work again still has
-- a row, of how it was before. numbers: of those at work, between commas.
DROP VIEW item_document;
CREATE VIEW item_document AS
SELECT s.task, s.seq, s.value ->> '$.name' AS step, coalesce(s.value ->> '$.key_generation', 1) - 1 AS generation,
    coalesce(i.value ->> '$.item', 0) AS number, 1 AS at_work, i.value
FROM step_document AS s, json_each(s.value, '$.items.at_work') AS i
UNION ALL
SELECT w.task, i.task, i.step, i.generation, i.number, 0, i.doc
FROM (SELECT s.task, s.seq, s.value ->> '$.name' AS step, coalesce(s.value ->> '$.key_generation', 1) - 1 AS generation,
        ',' || coalesce(group_concat(iif(j.value IS NULL, NULL, coalesce(j.value ->> '$.item', 0))), '') || ','
            AS numbers
    FROM step_document AS s LEFT JOIN json_each(s.value, '$.items.at_work') AS j
    GROUP BY s.task, s.seq, s.position) AS w
    CROSS JOIN item AS i ON i.task = w.seq AND i.step = w.step
WHERE i.generation <> w.generation OR instr(w.numbers, ',' || i.number || ',') = 0;
