/*
 * Connections that were given up because no answer came. They may still be at work on the server: a
 * commit that waits for a standby waits on, whether or not a client listens, and a new connection
 * would queue behind it. So they are kept until they end or break, and per host only a few: one
 * more every few seconds would use up all connections of the server.
 */
#include "store/postgres/body.h"

enum { ABANDONED_OF_A_HOST_MAX = 3, ABANDONED_OF_READING_MAX = 1 };

/* Has it answered all that it was asked, or will it never? */
static bool is_through(PGconn *c)
{
    unsigned nothing = 0;

    (void)PQflush(c);
    if (!PQconsumeInput(c) || PQstatus(c) != CONNECTION_OK)
        return true;
    while (!PQisBusy(c) && nothing < 2) {
        PGresult *r = PQgetResult(c);
        bool is_end = r && PQresultStatus(r) == PGRES_PIPELINE_SYNC;
        nothing = r ? 0 : nothing + 1;
        PQclear(r);
        if (is_end)
            return true;
    }
    return nothing == 2;
}

void pg_abandoned_tidy(struct postgres_store *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->abandoned_count; i++)
        if (is_through(s->abandoned[i].conn))
            PQfinish(s->abandoned[i].conn);
        else
            s->abandoned[kept++] = s->abandoned[i];
    s->abandoned_count = kept;
}

bool pg_abandoned_has_room(struct postgres_store *s)
{
    size_t count = 0;

    pg_abandoned_tidy(s);
    for (size_t i = 0; i < s->abandoned_count; i++)
        count += s->abandoned[i].host == s->host_at;
    return count < (s->of ? ABANDONED_OF_READING_MAX : ABANDONED_OF_A_HOST_MAX);
}

void pg_abandoned_put(struct postgres_store *s, PGconn *c)
{
    if (s->abandoned_count == COUNT_OF(s->abandoned))
        PQfinish(c);
    else
        s->abandoned[s->abandoned_count++] = (struct pg_abandoned){c, s->host_at};
}

void pg_abandoned_free(struct postgres_store *s)
{
    for (size_t i = 0; i < s->abandoned_count; i++)
        PQfinish(s->abandoned[i].conn);
}
