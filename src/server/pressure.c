#include "server/internal.h"

/*
 * While the store is slow, or stands still, clients give up and come again, and what they asked for
 * the first time still waits: without a bound memory would grow for as long as that lasts.
 */

enum {
    ASKS_MAX = 16384,          /* some 4 KiB each */
    ASKS_BYTES_MAX = 64 << 20, /* of bodies; all in all a few times as much */
    READS_MAX = 8192,
};

static bool answer_overloaded(struct http_request *r, const char *what)
{
    http_problem(r, 503, "overloaded", "too many %s wait for the store; try again", what);
    return false;
}

/* One body alone always fits, however large bodies may be. */
bool asks_have_room(struct server *sv, struct http_request *r, size_t bytes)
{
    bool fits = sv->asks_bytes == 0 || sv->asks_bytes + bytes <= ASKS_BYTES_MAX;

    return (fits && asks_may_grow(sv)) || answer_overloaded(r, "changes");
}

bool asks_may_grow(const struct server *sv)
{
    return sv->asks_open < ASKS_MAX;
}

size_t asks_left(const struct server *sv)
{
    return sv->asks_open < ASKS_MAX ? ASKS_MAX - sv->asks_open : 0;
}

bool reads_have_room(struct server *sv, struct http_request *r)
{
    return sv->reads_open < READS_MAX || answer_overloaded(r, "readings");
}

void server_ask(struct server *sv, struct ask *a)
{
    sv->asks_open++;
    scheduler_ask(sv->scheduler, a);
}
