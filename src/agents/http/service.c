/* One service: its agent, its connections, its jobs (http_job.c). Never blocks; http_agent.c has
 * the loop. */

#include "agents/http/service.h"

#include <stdlib.h>
#include <unistd.h>

#include "agents/http/http_job.h"
#include "base/clock.h"
#include "libintact/wire.h"
#include "net/watchdog.h"

enum { LOOK_MS = 200, EXPRESSIONS_MAX = 500 };

static bool set_connections(CURLM *multi, const struct service_config *c)
{
    long most = (long)c->connections;

    return curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, most) == CURLM_OK
           && curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS, most) == CURLM_OK
           && curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, most) == CURLM_OK
           && curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, 1000L) == CURLM_OK;
}

bool service_open(struct service *s, const struct service_config *config,
                  struct secrets *const *secrets, struct intact_agent *agent)
{
    *s = (struct service){.config = config, .secrets = secrets, .agent = agent};
    s->prng.state = clock_seed() ^ ((uint64_t)getpid() << 32);
    list_init(&s->idle);
    list_init(&s->jobs);
    if (!reactor_open(&s->reactor) || !set_connections(s->reactor.multi, config))
        return false;
    intact_agent_set_inline(agent, true);
    intact_agent_set_heartbeats(agent, true); /* a call has a timeout, so the agent does not hang */
    intact_agent_set_concurrency(agent, config->places);
    intact_agent_on(agent, "*", INTACT_ANY, job_begin, s);
    return true;
}

static void forget_expressions(struct service *s)
{
    if (s->expressions_arena)
        arena_fini(s->expressions_arena);
    free(s->expressions_arena);
    s->expressions_arena = NULL;
    map_fini(&s->expressions);
    s->expressions = (struct map){0};
}

void service_close(struct service *s)
{
    LIST_FOREACH (l, after, &s->jobs) {
        job_give_up(CONTAINER_OF(l, struct job, link));
    }
    LIST_FOREACH (l, after, &s->idle) {
        transfer_free(CONTAINER_OF(l, struct transfer, link));
    }
    intact_agent_free(s->agent);
    reactor_close(&s->reactor);
    heap_fini(&s->waits);
    forget_expressions(s);
}

/* ---- what jobs use ---- */

struct transfer *service_transfer(struct service *s)
{
    struct link *l = list_first(&s->idle);

    if (!l)
        return transfer_new(&s->config->net);
    link_remove(l);
    return CONTAINER_OF(l, struct transfer, link);
}

void service_rest(struct service *s, struct transfer *t)
{
    transfer_clear(t);
    list_push_front(&s->idle, &t->link); /* the most recently used one, for its warm memory */
}

const struct expression *service_expression(struct service *s, struct slice text, struct arena *a,
                                            struct error *e)
{
    struct expression *x = map_get(&s->expressions, text);
    size_t column = 0;

    if (x)
        return x;
    if (s->expressions.len >= EXPRESSIONS_MAX && s->job_count <= 1)
        forget_expressions(s); /* no other job uses one; workflows come and go */
    if (s->expressions.len >= EXPRESSIONS_MAX)
        return expression_compile(text, a, &x, &column, e) == ERR_OK ? x : NULL;
    if (!s->expressions_arena) {
        s->expressions_arena = calloc(1, sizeof *s->expressions_arena);
        ASSERT(s->expressions_arena);
    }
    struct slice kept = arena_copy(s->expressions_arena, text);
    if (expression_compile(kept, s->expressions_arena, &x, &column, e) != ERR_OK)
        return NULL;
    map_put(&s->expressions, kept, x);
    return x;
}

/* ---- turns ---- */

static bool take_answers(struct service *s)
{
    bool any = false;
    int left = 0;

    for (CURLMsg *m = curl_multi_info_read(s->reactor.multi, &left); m;
         m = curl_multi_info_read(s->reactor.multi, &left)) {
        char *private = NULL;
        if (m->msg != CURLMSG_DONE)
            continue;
        CURLcode code = m->data.result; /* m is invalid once its handle is removed */
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private); /* set by its maker */
        struct transfer *t = (struct transfer *)(void *)private;
        job_done(t->owner, code);
        any = true;
    }
    return any;
}

static void go_on(struct service *s, int64_t now)
{
    for (struct heap_node *n = heap_min(&s->waits); n && n->key <= now; n = heap_min(&s->waits)) {
        heap_remove(&s->waits, n);
        job_go_on(CONTAINER_OF(n, struct job, wait));
    }
}

static void look(struct service *s, int64_t now)
{
    if (now < s->look_at)
        return;
    s->look_at = now + LOOK_MS;
    LIST_FOREACH (l, after, &s->jobs) {
        job_stop_if_asked(CONTAINER_OF(l, struct job, link));
    }
}

void service_turn(struct service *s)
{
    if (s->is_over)
        return;
    watchdog_begin(&s->config->net);
    reactor_turn(&s->reactor);
    do {
        go_on(s, clock_boot_ms());
        look(s, clock_boot_ms());
        reactor_due(&s->reactor);
    } while (take_answers(s));
    s->is_over = !intact_agent_drive(s->agent);
    if (!s->is_over) {
        reactor_due(&s->reactor);
        (void)take_answers(s); /* the rest is for the next turn */
    }
    watchdog_end();
}

int64_t service_wake_at(struct service *s)
{
    int64_t now = clock_boot_ms();
    const struct heap_node *n = heap_min(&s->waits);

    if (s->is_over)
        return INT64_MAX;
    int64_t at = now + intact_agent_timeout_ms(s->agent);
    at = min_i64(at, s->reactor.timer_at);
    if (s->job_count > 0)
        at = min_i64(at, s->look_at);
    return n ? min_i64(at, n->key) : at;
}

void service_stop(struct service *s)
{
    s->is_stopping = true;
    LIST_FOREACH (l, after, &s->jobs) {
        struct job *j = CONTAINER_OF(l, struct job, link);
        if (j->phase == JOB_WAITS)
            job_give_up(j);
    }
}
