"""Places orders, each together with its task. Usage: order_sqlite.py INTACT.DB ID TOTAL"""

import json
import sqlite3
import sys

path, order, total = sys.argv[1], sys.argv[2], float(sys.argv[3])
connection = sqlite3.connect(path, timeout=30, isolation_level=None)  # others write, too: they are waited for
connection.execute("CREATE TABLE IF NOT EXISTS shop_order (id TEXT PRIMARY KEY, total NUMERIC NOT NULL)")
with connection:  # one transaction: both rows, or none; in a Turkish locale sqlite3 would not begin it
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO shop_order (id, total) VALUES (?, ?)", (order, total))
    connection.execute(
        "INSERT INTO submit (workflow, id, input) VALUES ('shop', ?, ?)",
        (order, json.dumps({"total": total})),
    )
connection.close()
print(f"order {order} is placed")
