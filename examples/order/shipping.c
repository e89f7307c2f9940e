/* The carrier of the order example: takes parcels, and takes them back if a shipment is
 * cancelled. order.c runs the agent, and makes sure that each of these effects happens once. */

#include "order.h"

#include <stdio.h>

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS parcel(id INTEGER PRIMARY KEY, idempotency_key TEXT UNIQUE NOT "
    "NULL,"
    " task TEXT NOT NULL, address TEXT NOT NULL, cancelled INTEGER NOT NULL DEFAULT 0);";

static bool ship(struct work *w)
{
    if (work_run(w, "INSERT INTO parcel(idempotency_key, task, address)"
                    " VALUES (:key, :task, :input ->> '$.address')")
        != 1)
        return false;
    snprintf(w->output, sizeof(w->output), "{\"parcel\": %lld}",
             (long long)sqlite3_last_insert_rowid(w->db));
    return true;
}

static bool cancel(struct work *w)
{
    snprintf(w->output, sizeof(w->output), "null");
    return work_run(w, "UPDATE parcel SET cancelled = 1"
                       " WHERE idempotency_key = :forward_key AND NOT cancelled")
           == 1;
}

int main(int argc, char **argv)
{
    static const struct effect effects[] = {
        {"ship", INTACT_FORWARD, ship},
        {"cancel", INTACT_UNDO, cancel},
    };

    return order_main(argc, argv, "shipping", schema, effects, 2);
}
