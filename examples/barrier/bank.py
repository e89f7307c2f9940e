"""The barrier in Python by its statements alone, in the transaction of the effect. docs/barrier.md runs it."""

import sqlite3

db = sqlite3.connect("bank.db", timeout=10, isolation_level=None)
db.execute("CREATE TABLE IF NOT EXISTS entry(key TEXT, amount INTEGER)")


def barrier(key, undo):
    """The verdict, and the output that goes with it. `key`: of the request going forward."""
    def changed(sql):
        db.execute(sql, (key,))
        return db.execute("SELECT changes()").fetchone()[0] == 1  # rowcount is wrong in a Turkish locale

    if undo:
        if changed("INSERT INTO intact_barrier(forward_key, outcome) VALUES (?, 'barred') ON CONFLICT DO NOTHING"):
            return "nothing", None
        if changed("UPDATE intact_barrier SET outcome = 'undone', at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"
                   " WHERE forward_key = ? AND outcome = 'done'"):
            return "do", db.execute("SELECT output FROM intact_barrier WHERE forward_key = ?", (key,)).fetchone()[0]
        return db.execute("SELECT CASE outcome WHEN 'undone' THEN 'repeat' ELSE 'nothing' END, undo_output"
                          " FROM intact_barrier WHERE forward_key = ?", (key,)).fetchone()
    if changed("INSERT INTO intact_barrier(forward_key) VALUES (?) ON CONFLICT DO NOTHING"):
        return "do", None
    return db.execute("SELECT CASE outcome WHEN 'done' THEN 'repeat' ELSE 'undone' END,"
                      " CASE outcome WHEN 'done' THEN output END FROM intact_barrier WHERE forward_key = ?", (key,)).fetchone()


def take(key, undo, amount, output):
    db.execute("BEGIN IMMEDIATE")
    try:
        verdict, recorded = barrier(key, undo)
        if verdict == "do":
            db.execute("INSERT INTO entry VALUES (?, ?)", (key, -amount if undo else amount))
            column = "undo_output" if undo else "output"
            db.execute(f"UPDATE intact_barrier SET {column} = ? WHERE forward_key = ?", (output, key))
            recorded = output
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    return verdict, recorded  # and now answer


print("charge:      ", *take("o-1/charge", False, 100, '{"receipt": 1}'))
print("once more:   ", *take("o-1/charge", False, 100, '{"receipt": 2}'))
print("undo:        ", *take("o-1/charge", True, 100, "null"))
print("late charge: ", *take("o-1/charge", False, 100, '{"receipt": 3}'))
print("undo first:  ", *take("o-2/charge", True, 100, "null"))
print("then charge: ", *take("o-2/charge", False, 100, '{"receipt": 4}'))
