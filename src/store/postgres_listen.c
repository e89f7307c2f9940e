#include "store/postgres_body.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"

/*
 * Hears of submissions as soon as they are committed: a connection of its own, on a thread of its
 * own, that listens. All that it does is to wake who waits for its descriptor; without it a survey
 * tells of them, once a second. It is made again whenever it is lost. Through a pooler that shares
 * connections among clients nobody can listen: then it gives up for good.
 */

enum { PAUSE_FIRST_MS = 500, PAUSE_MAX_MS = 30000, OPTIONS_MAX = 64 };

struct pg_listener {
    pthread_t thread;
    int heard, stop; /* of eventfd */
    char channel[80];
    char hosts[1024], addresses[1024], ports[256];
    const char *names[OPTIONS_MAX], *values[OPTIONS_MAX];
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

/* The server's process is another one than we were told when we connected. */
static bool is_pooled(PGconn *c)
{
    PGresult *r = PQexec(c, "SELECT pg_backend_pid()");
    bool pooled = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1
                  && atoi(PQgetvalue(r, 0, 0)) != PQbackendPID(c);

    PQclear(r);
    return pooled;
}

/* True: it is to end. */
static bool listen_on(struct pg_listener *l, PGconn *c)
{
    wake(l->heard); /* of what came before we listened */
    while (PQstatus(c) == CONNECTION_OK) {
        bool any = false;
        if (wait_for(l, c, -1))
            return true;
        if (!PQconsumeInput(c))
            return false;
        for (PGnotify *n = NULL; (n = PQnotifies(c));) {
            any = true;
            PQfreemem(n);
        }
        if (any)
            wake(l->heard);
    }
    return false;
}

static void *body(void *arg)
{
    struct pg_listener *l = arg;
    char sql[100];
    int pause = PAUSE_FIRST_MS;
    bool end = false;

    (void)snprintf(sql, sizeof sql, "LISTEN \"%s\"", l->channel);
    while (!end) {
        PGconn *c = PQconnectdbParams(l->names, l->values, 0);
        bool good = c && PQstatus(c) == CONNECTION_OK;
        if (good && is_pooled(c)) {
            log_line(LOG_INFO, "event=submissions_not_heard reason=\"there is a pooler in between; "
                               "they are looked for once a second\"");
            PQfinish(c);
            return NULL;
        }
        if (good && run(c, sql)) {
            pause = PAUSE_FIRST_MS;
            end = listen_on(l, c);
        }
        PQfinish(c);
        end = end || wait_for(l, NULL, pause);
        pause = pause * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause * 2;
    }
    return NULL;
}

/* ---- where the database is ---- */

static void join(char *to, size_t size, const struct postgres_store *s, int which)
{
    size_t len = 0;

    for (size_t i = 0; i < s->host_count && len < size; i++) {
        const struct pg_host *h = &s->hosts[i];
        const char *v = which == 0 ? h->host : which == 1 ? h->address : h->port;
        int n = snprintf(to + len, size - len, "%s%s", i ? "," : "", v ? v : "");
        len += n > 0 ? (size_t)n : 0;
    }
}

static bool any_of(const char *list)
{
    return strspn(list, ",") < strlen(list);
}

static const char *word(const struct pg_listener *l, const char *name, const char *given)
{
    if (strcmp(name, "host") == 0)
        return any_of(l->hosts) ? l->hosts : NULL;
    if (strcmp(name, "hostaddr") == 0)
        return any_of(l->addresses) ? l->addresses : NULL;
    if (strcmp(name, "port") == 0)
        return any_of(l->ports) ? l->ports : NULL;
    if (strcmp(name, "target_session_attrs") == 0)
        return "read-write";
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

/* The words point into the store's options, which live as long as it. */
static void words(struct pg_listener *l, const struct postgres_store *s)
{
    size_t count = 0;

    join(l->hosts, sizeof l->hosts, s, 0);
    join(l->addresses, sizeof l->addresses, s, 1);
    join(l->ports, sizeof l->ports, s, 2);
    for (const PQconninfoOption *o = s->options; o->keyword; o++) {
        const char *value = word(l, o->keyword, o->val);
        if (!value || count + 1 >= OPTIONS_MAX)
            continue;
        l->names[count] = o->keyword;
        l->values[count++] = value;
    }
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
    (void)snprintf(l->channel, sizeof l->channel, "intact.%s", s->schema);
    words(l, s);
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

/* It may be connecting, which takes a while if nobody answers. */
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
