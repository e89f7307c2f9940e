"""Places orders, each together with its task. Usage: order_postgres.py CONNECTION ID TOTAL"""

import json
import sys

import psycopg2

conninfo, order, total = sys.argv[1], sys.argv[2], float(sys.argv[3])
connection = psycopg2.connect(conninfo)
with connection, connection.cursor() as cursor:  # one transaction: both rows, or none
    cursor.execute("CREATE TABLE IF NOT EXISTS shop_order (id text PRIMARY KEY, total numeric NOT NULL)")
    cursor.execute("INSERT INTO shop_order (id, total) VALUES (%s, %s)", (order, total))
    cursor.execute(
        "SELECT intact.submit(workflow => 'shop', id => %s, input => %s)",
        (order, json.dumps({"total": total})),
    )
connection.close()
print(f"order {order} is placed")
