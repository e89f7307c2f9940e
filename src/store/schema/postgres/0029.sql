-- The view of items reads the items at work of a step once, not once for each item at rest: it took seconds for a list
-- of 10 000 items with 100 at work.
-- To change it: write the next file, never this one.

-- All items that have begun, at rest or at work, as documents. An item that was at rest and is at work again still has
-- a row, of how it was before. numbers: of those at work. OFFSET 0: these are found once for each step.
CREATE OR REPLACE VIEW ~item_document AS
SELECT s.task, s.seq, s.value ->> 'name' AS step, coalesce((s.value ->> 'key_generation')::bigint, 1) - 1 AS generation,
    coalesce((i.value ->> 'item')::bigint, 0) AS number, true AS at_work, i.value
FROM ~step_document AS s
    CROSS JOIN LATERAL json_array_elements(s.value -> 'items' -> 'at_work') AS i(value)
UNION ALL
SELECT s.task, i.task, i.step, i.generation, i.number, false, i.doc::json
FROM ~step_document AS s
    CROSS JOIN LATERAL (SELECT s.value ->> 'name' AS step,
        coalesce((s.value ->> 'key_generation')::bigint, 1) - 1 AS generation,
        ARRAY(SELECT coalesce((j.value ->> 'item')::bigint, 0)
            FROM json_array_elements(s.value -> 'items' -> 'at_work') AS j(value)) AS numbers
        OFFSET 0) AS w
    JOIN ~item AS i ON i.task = s.seq AND i.step = w.step
WHERE i.generation <> w.generation OR i.number <> ALL (w.numbers);
