/* The bank of the order example: charges cards and refunds them. The card "declined" has no
 * money. order.c runs the agent, and makes sure that each of these effects happens once. */

#include "order.h"

#include <stdio.h>

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS entry(id INTEGER PRIMARY KEY, idempotency_key TEXT UNIQUE NOT NULL,"
    " task TEXT NOT NULL, card TEXT NOT NULL, amount INTEGER NOT NULL);";

static bool charge(struct work *w)
{
    int charged = work_run(w, "INSERT INTO entry(idempotency_key, task, card, amount)"
                              " SELECT :key, :task, :input ->> '$.card', :input ->> '$.amount'"
                              " WHERE :input ->> '$.card' <> 'declined'");

    if (charged < 0)
        return false;
    if (charged == 0)
        return work_refuse(w, "card_declined", "the bank does not want to pay for this card");
    snprintf(w->output, sizeof(w->output), "{\"receipt\": %lld}",
             (long long)sqlite3_last_insert_rowid(w->db));
    return true;
}

static bool refund(struct work *w)
{
    snprintf(w->output, sizeof(w->output), "null");
    return work_run(w, "INSERT INTO entry(idempotency_key, task, card, amount)"
                       " SELECT :key, task, card, -amount FROM entry"
                       " WHERE idempotency_key = :forward_key")
           == 1;
}

int main(int argc, char **argv)
{
    static const struct effect effects[] = {
        {"charge", INTACT_FORWARD, charge},
        {"refund", INTACT_UNDO, refund},
    };

    return order_main(argc, argv, "payment", schema, effects, 2);
}
