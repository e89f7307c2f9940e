#ifndef ORDER_ORDER_H
#define ORDER_ORDER_H

/*
 * What the three agents of the order example have in common: flags, a ledger, and the ways in
 * which they can be told to misbehave. Each agent is a table of effects.
 */

#include <intact/ledger.h>
#include <sqlite3.h>

/* One effect being written. The ledger's transaction is open; it commits if the effect says so. */
struct work {
    sqlite3 *db;
    struct intact_request *request;
    char output[200]; /* JSON, if it took effect */
    struct {          /* if it did not */
        const char *code, *message;
        unsigned flags;
    } error;
};

struct effect {
    const char *action;
    enum intact_direction direction;
    bool (*write)(struct work *w); /* false: refused, `error` says why */
};

/* Runs one statement with :key, :task, :input, :forward (JSON) and :forward_key bound to what the
 * request says. The number of rows changed; -1: it failed, and `error` says why. */
int work_run(struct work *w, const char *sql);

/* A business refusal: permanent, and nothing happened. Returns false. */
bool work_refuse(struct work *w, const char *code, const char *message);

/* All of an agent's main(). `schema` creates its tables if they are not there. */
int order_main(int argc, char **argv, const char *agent, const char *schema,
               const struct effect *effects, size_t effect_count);

#endif
