/*
 * Receives notifications of submissions as soon as they are committed: a connection of its own that
 * listens, on a thread of its own. It only wakes the thread that waits for its descriptor; without
 * it a survey finds submissions once a second. A lost connection is made again. Through a pooler
 * that shares connections LISTEN does not work, so there it gives up for good.
 */
#include "store/postgres/body.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"

enum { PAUSE_FIRST_MS = 500, PAUSE_MAX_MS = 30000, OPTIONS_MAX = 64 };

struct pg_listener {
    pthread_t thread;
    const struct postgres_store *store; /* its options and hosts, which stay as they are */
    int heard, stop;                    /* of eventfd */
    int pause;
    char sql[100];
};

static void wake(int fd)
{
    const uint64_t one = 1;

    (void)!write(fd, &one, sizeof one); /* it fails only when it is awake already */
}

/* True: it is to end. Also returns when the connection has something to read; `c` may be NULL. */
static bool wait_for(const struct pg_listener *l, const PGconn *c, int ms)
{
    struct pollfd p[2] = {{.fd = l->stop, .events = POLLIN},
                          {.fd = c ? PQsocket(c) : -1, .events = POLLIN}};

    (void)poll(p, COUNT_OF(p), ms);
    return p[0].revents != 0;
}

static bool run(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    bool good = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;

    PQclear(r);
    return good;
}

/* The server's process is another one than was reported when we connected. */
static bool is_pooled(PGconn *c)
{
    PGresult *r = PQexec(c, "SELECT pg_backend_pid()");
    bool pooled = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1
                  && atoi(PQgetvalue(r, 0, 0)) != PQbackendPID(c);

    PQclear(r);
    return pooled;
}

/* ---- one host ---- */

static const char *word(const char *name, const char *given, const struct pg_host *h)
{
    if (strcmp(name, "host") == 0)
        return h->host;
    if (strcmp(name, "hostaddr") == 0)
        return h->address;
    if (strcmp(name, "port") == 0)
        return h->port;
    if (strcmp(name, "target_session_attrs") == 0)
        return "any"; /* a standby refuses LISTEN */
    if (given)
        return given;
    if (strcmp(name, "application_name") == 0)
        return "intact listens";
    if (strcmp(name, "connect_timeout") == 0)
        return "10";
    if (strcmp(name, "keepalives_idle") == 0 || strcmp(name, "keepalives_interval") == 0)
        return "5";
    return NULL;
}

/* NULL: it was not reached. */
static PGconn *connect_to(const struct postgres_store *s, const struct pg_host *h)
{
    const char *names[OPTIONS_MAX];
    const char *values[OPTIONS_MAX];
    size_t count = 0;

    for (const PQconninfoOption *o = s->options; o->keyword; o++) {
        const char *value = word(o->keyword, o->val, h);
        if (!value || count + 1 >= OPTIONS_MAX)
            continue;
        names[count] = o->keyword;
        values[count++] = value;
    }
    names[count] = NULL;
    values[count] = NULL;
    PGconn *c = PQconnectdbParams(names, values, 0);
    if (c && PQstatus(c) == CONNECTION_OK)
        return c;
    PQfinish(c);
    return NULL;
}

enum ending { LOST, ASKED_TO_STOP, POOLED };

static enum ending listen_on(struct pg_listener *l, PGconn *c)
{
    if (is_pooled(c)) {
        log_line(LOG_INFO, "event=submissions_not_heard reason=\"a connection pooler is in "
                           "between; submissions are polled once a second\"");
        return POOLED;
    }
    if (!run(c, l->sql))
        return LOST;
    l->pause = PAUSE_FIRST_MS;
    wake(l->heard); /* of what came before we listened */
    while (PQstatus(c) == CONNECTION_OK) {
        bool any = false;
        if (wait_for(l, c, -1))
            return ASKED_TO_STOP;
        if (!PQconsumeInput(c))
            return LOST;
        for (PGnotify *n = NULL; (n = PQnotifies(c));) {
            any = true;
            PQfreemem(n);
        }
        if (any)
            wake(l->heard);
    }
    return LOST;
}

/* ---- all of them ---- */

static enum ending listen_round(struct pg_listener *l)
{
    const struct postgres_store *s = l->store;
    enum ending end = LOST;

    for (size_t i = 0; i < s->host_count && end == LOST; i++) {
        PGconn *c = connect_to(s, &s->hosts[i]);
        if (c)
            end = listen_on(l, c);
        PQfinish(c);
        if (end == LOST && wait_for(l, NULL, 0))
            end = ASKED_TO_STOP;
    }
    return end;
}

static void *body(void *arg)
{
    struct pg_listener *l = arg;

    while (listen_round(l) == LOST && !wait_for(l, NULL, l->pause))
        l->pause = l->pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : l->pause * 2;
    return NULL;
}

int pg_watch(struct store *base)
{
    struct postgres_store *s = postgres_store_of(base);

    if (s->listener)
        return s->listener->heard;
    struct pg_listener *l = calloc(1, sizeof *l);
    ASSERT(l);
    l->heard = fault() ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->stop = fault() ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->store = s;
    l->pause = PAUSE_FIRST_MS;
    (void)snprintf(l->sql, sizeof l->sql, "LISTEN \"intact.%s\"", s->schema);
    if (l->heard >= 0 && l->stop >= 0 && !fault()
        && pthread_create(&l->thread, NULL, body, l) == 0) {
        s->listener = l;
        return l->heard;
    }
    if (l->heard >= 0)
        (void)close(l->heard);
    if (l->stop >= 0)
        (void)close(l->stop);
    free(l);
    return -1;
}

/* It may be connecting, which takes a while if there is no answer. */
void pg_unwatch(struct postgres_store *s)
{
    struct pg_listener *l = s->listener;

    if (!l)
        return;
    wake(l->stop);
    (void)pthread_join(l->thread, NULL);
    (void)close(l->heard);
    (void)close(l->stop);
    free(l);
    s->listener = NULL;
}
