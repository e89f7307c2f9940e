/* The warehouse of the order example: reserves goods for a task, and releases them. order.c runs
 * the agent, and makes sure that each of these effects happens once. */

#include "order.h"

#include <stdio.h>

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS stock(sku TEXT PRIMARY KEY, initial INTEGER NOT NULL,"
    " on_hand INTEGER NOT NULL CHECK (on_hand >= 0));"
    "CREATE TABLE IF NOT EXISTS reservation(idempotency_key TEXT PRIMARY KEY, task TEXT NOT NULL,"
    " sku TEXT NOT NULL, quantity INTEGER NOT NULL CHECK (quantity > 0),"
    " released INTEGER NOT NULL DEFAULT 0);"
    "INSERT OR IGNORE INTO stock VALUES"
    " ('widget', 1000000, 1000000), ('gadget', 1000, 1000), ('rarity', 10, 10);";

static bool reserve(struct work *w)
{
    int taken = work_run(w, "UPDATE stock SET on_hand = on_hand - (:input ->> '$.quantity')"
                            " WHERE sku = :input ->> '$.sku'"
                            " AND on_hand >= (:input ->> '$.quantity')");

    if (taken < 0)
        return false;
    if (taken == 0)
        return work_refuse(w, "out_of_stock", "there is not as much of it on the shelf");
    snprintf(w->output, sizeof(w->output), "{\"shelf\": \"A-1\"}");
    return work_run(w, "INSERT INTO reservation(idempotency_key, task, sku, quantity)"
                       " VALUES (:key, :task, :input ->> '$.sku', :input ->> '$.quantity')")
           == 1;
}

static bool release(struct work *w)
{
    snprintf(w->output, sizeof(w->output), "null");
    return work_run(w, "UPDATE stock SET on_hand = on_hand + r.quantity FROM reservation AS r"
                       " WHERE r.idempotency_key = :forward_key AND stock.sku = r.sku")
               == 1
           && work_run(w, "UPDATE reservation SET released = 1"
                          " WHERE idempotency_key = :forward_key AND NOT released")
                  == 1;
}

int main(int argc, char **argv)
{
    static const struct effect effects[] = {
        {"reserve", INTACT_FORWARD, reserve},
        {"release", INTACT_UNDO, release},
    };

    return order_main(argc, argv, "stock", schema, effects, 2);
}
