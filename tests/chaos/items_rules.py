"""Rules for the items of a task (:id) whose step with for_each is called pack, in the SQL of SQLite and of PostgreSQL. Each gives one
value, which is true at any time."""

# The document's sums are those of the rows, and each item that has begun is in one place.
SUMS = """SELECT NOT EXISTS (SELECT 1 FROM task_step AS s WHERE s.task = :id AND s.items > 0 AND NOT (
    s.items_begun = (SELECT count(*) FROM task_item AS i WHERE i.task = s.task AND i.step = s.name)
    AND s.items_begun = (SELECT count(DISTINCT i.number) FROM task_item AS i WHERE i.task = s.task AND i.step = s.name
        AND i.number >= 0 AND i.number < s.items_begun)
    AND s.items_begun = s.items_completed + s.items_failed + s.items_skipped + s.items_undone
        + (SELECT count(*) FROM task_item AS i WHERE i.task = s.task AND i.step = s.name AND i.at_work)
    AND s.items_completed = (SELECT count(*) FROM task_item AS i WHERE i.task = s.task AND NOT i.at_work AND i.state = 'completed')
    AND s.items_failed = (SELECT count(*) FROM task_item AS i WHERE i.task = s.task AND NOT i.at_work AND i.state = 'failed')
    AND s.items_undone = (SELECT count(*) FROM task_item AS i WHERE i.task = s.task AND NOT i.at_work AND i.state = 'undone')))"""
# What is to be undone is known to the document; what was brought back is at work, or needs no undo any more.
BELOW = "CAST(coalesce(d.value -> 'items' ->> 'undo_below', '0') AS int)"
TO_UNDO = f"""SELECT NOT EXISTS (SELECT 1 FROM step_document AS d WHERE d.task = :id AND d.value ->> 'name' = 'pack' AND (
    CAST(coalesce(d.value -> 'items' ->> 'to_undo', '0') AS int)
        <> (SELECT count(*) FROM item AS i JOIN task AS t ON t.seq = i.task WHERE t.id = d.task AND i.needs_undo AND i.number < {BELOW})
    OR EXISTS (SELECT 1 FROM item AS i JOIN task AS t ON t.seq = i.task WHERE t.id = :id AND i.needs_undo AND i.number >= {BELOW}
        AND i.number NOT IN (SELECT v.number FROM task_item AS v WHERE v.task = :id AND v.at_work))))"""
WHOLE = """SELECT NOT EXISTS (SELECT 1 FROM task_item WHERE task = :id
        AND (input IS NULL AND state <> 'waiting' OR output IS NULL AND state = 'completed'))
    AND NOT EXISTS (SELECT 1 FROM item WHERE task NOT IN (SELECT seq FROM task))"""
ENDED = """SELECT NOT EXISTS (SELECT 1 FROM task WHERE id = :id AND state IN ('processed', 'compensated'))
    OR NOT EXISTS (SELECT 1 FROM task_item WHERE task = :id AND at_work)"""

ALL = (SUMS, TO_UNDO, WHOLE, ENDED)
