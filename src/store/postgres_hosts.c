#include "store/postgres_body.h"

#include <stdlib.h>

/*
 * Where to connect, and what became of connections that were given up.
 *
 * A connection string may name several hosts. libpq tries one after the other, but the first that
 * takes a connection and says nothing (a machine that stands still) would have all the time there
 * is. So each is tried by itself, for its share of the time, beginning with the one that was good
 * last.
 *
 * What was given up because no answer came may still be at work on the server: a commit that waits
 * for a standby waits until it is back, whether or not somebody listens. Another connection would
 * come to stand behind it, and one more each few seconds would use up all that the server gives
 * out. So such connections are kept until they are through or broken, and of one host there are
 * only so many.
 */

enum { ASIDE_OF_A_HOST_MAX = 3 };

static char *value_of(const PQconninfoOption *options, const char *keyword)
{
    for (const PQconninfoOption *o = options; o && o->keyword; o++)
        if (o->val && strcmp(o->keyword, keyword) == 0)
            return o->val;
    return NULL;
}

/* The parts between commas; the last one has none behind it. */
static size_t count_parts(const char *list)
{
    size_t count = 1;

    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

/* To be freed; NULL: it is empty, or there is no such part. */
static char *part(const char *list, size_t at)
{
    for (; list && at > 0; at--) {
        list = strchr(list, ',');
        list = list ? list + 1 : NULL;
    }
    size_t len = list ? strcspn(list, ",") : 0;
    char *copy = len ? strndup(list, len) : NULL;
    ASSERT(copy || !len);
    return copy;
}

static void host_fill(struct pg_host *h, const PQconninfoOption *options, size_t at)
{
    const char *port = value_of(options, "port");

    h->host = part(value_of(options, "host"), at);
    h->hostaddr = part(value_of(options, "hostaddr"), at);
    h->port = part(port, count_parts(port) > 1 ? at : 0);
    if (!h->port && count_parts(port) > 1)
        h->port = strdup("5432");
}

/* A list that we do not understand is left to libpq, which knows what is wrong with it. */
void pg_hosts_init(struct pg_hosts *hosts, const char *conninfo)
{
    PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    const char *names = value_of(options, "host");
    const char *addresses = value_of(options, "hostaddr");
    size_t ports = count_parts(value_of(options, "port"));
    size_t count = count_parts(names ? names : addresses);

    *hosts = (struct pg_hosts){.count = 1};
    if (count > 1 && count <= PG_HOSTS_MAX && (ports == 1 || ports == count)
        && (!names || !addresses || count_parts(addresses) == count)) {
        hosts->count = count;
        for (size_t i = 0; i < count; i++)
            host_fill(&hosts->hosts[i], options, i);
    }
    PQconninfoFree(options);
}

void pg_hosts_fini(struct pg_hosts *hosts)
{
    for (size_t i = 0; i < hosts->aside_count; i++)
        PQfinish(hosts->aside[i].conn);
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->hosts[i].host);
        free(hosts->hosts[i].hostaddr);
        free(hosts->hosts[i].port);
    }
    *hosts = (struct pg_hosts){0};
}

void pg_hosts_next(struct pg_hosts *hosts)
{
    hosts->at = (hosts->at + 1) % hosts->count;
}

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

void pg_hosts_tidy(struct pg_hosts *hosts)
{
    size_t kept = 0;

    for (size_t i = 0; i < hosts->aside_count; i++)
        if (is_through(hosts->aside[i].conn))
            PQfinish(hosts->aside[i].conn);
        else
            hosts->aside[kept++] = hosts->aside[i];
    hosts->aside_count = kept;
}

bool pg_hosts_may_connect(struct pg_hosts *hosts)
{
    size_t count = 0;

    pg_hosts_tidy(hosts);
    for (size_t i = 0; i < hosts->aside_count; i++)
        count += hosts->aside[i].host == hosts->at;
    return count < ASIDE_OF_A_HOST_MAX;
}

void pg_hosts_set_aside(struct pg_hosts *hosts, PGconn *c)
{
    if (hosts->aside_count == COUNT_OF(hosts->aside))
        PQfinish(c);
    else
        hosts->aside[hosts->aside_count++] = (struct pg_aside){c, hosts->at};
}
