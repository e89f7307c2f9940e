/* An agent's settings, from intact_agent_new until it starts (see <intact/agent.h>): copies what
 * it is given, and remembers the first mistake, which is reported at the start. agent.c runs the
 * agent. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libintact/agent.h"

enum { CONCURRENCY_MAX = 1000, INSTANCE_MAX = 150 };

static char *copy_of(const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        abort();
    return copy;
}

static void replace(char **where, const char *text)
{
    char *copy = text ? copy_of(text) : NULL;

    free(*where);
    *where = copy;
}

static char *default_instance(void)
{
    char host[100] = "";
    char text[INSTANCE_MAX];

    (void)gethostname(host, sizeof(host) - 1); /* empty on failure */
    (void)snprintf(text, sizeof(text), "%s-%ld", host, (long)getpid());
    return copy_of(text);
}

static void mistake(struct intact_agent *a, const char *fmt, ...) PRINTF(2, 3);
static void mistake(struct intact_agent *a, const char *fmt, ...)
{
    va_list args;

    if (a->options.mistake[0])
        return;
    va_start(args, fmt);
    (void)vsnprintf(a->options.mistake, sizeof(a->options.mistake), fmt, args);
    va_end(args);
}

/* False: it runs, or has ended. */
static bool may_set(const struct intact_agent *a, const char *setting)
{
    if (a->phase == AGENT_NEW)
        return true;
    agent_log(a, LOG_WARN, "event=setting_ignored setting=%s error=\"the agent has started\"",
              setting);
    return false;
}

struct intact_agent *intact_agent_new(const char *name)
{
    struct intact_agent *a = calloc(1, sizeof(*a));

    if (!a)
        abort();
    a->options.name = copy_of(name ? name : "");
    a->options.instance = default_instance();
    a->options.concurrency = 1;
    a->options.discovery = true;
    a->options.retry = (struct retry_rule){0, 100, 5000};
    a->options.wait_ms = 30000;
    a->options.stop_wait_ms = 10000;
    list_init(&a->backlog);
    a->share_at = INT64_MAX;
    a->outbox = outbox_new();
    a->reactor.fd = -1;
    a->outcome = INTACT_AGENT_FAILED;
    if (!a->options.name[0])
        mistake(a, "an agent needs a name: intact_agent_new");
    agent_enlist(a);
    return a;
}

void intact_agent_free(struct intact_agent *a)
{
    if (!a)
        return;
    agent_break_off(a);
    reactor_close(&a->reactor);
    agent_delist(a);
    outbox_unuse(a->outbox);
    for (size_t i = 0; i < a->options.handler_count; i++)
        free(a->options.handlers[i].action);
    free(a->options.handlers);
    free(a->options.name);
    free(a->options.instance);
    free(a->options.server);
    free(a->options.token);
    free(a->options.ca);
    free(a->options.installation);
    installation_fini(&a->installation);
    free(a);
}

static bool is_direction(enum intact_direction d)
{
    return d == INTACT_FORWARD || d == INTACT_UNDO || d == INTACT_ANY;
}

static bool is_taken(const struct agent_options *o, const char *action, enum intact_direction d)
{
    bool taken = false;

    for (size_t i = 0; i < o->handler_count; i++) {
        const struct agent_handler *h = &o->handlers[i];
        bool meet = h->direction == d || h->direction == INTACT_ANY || d == INTACT_ANY;
        taken = taken || (meet && strcmp(h->action, action) == 0);
    }
    return taken;
}

void intact_agent_on(struct intact_agent *a, const char *action, enum intact_direction direction,
                     intact_handler *run, void *arg)
{
    struct agent_options *o = &a->options;

    if (!may_set(a, "handler"))
        return;
    if (!action || !action[0] || !run || !is_direction(direction)) {
        mistake(a, "a handler needs an action, a direction and a function: intact_agent_on");
        return;
    }
    if (is_taken(o, action, direction)) {
        mistake(a, "action %.60s has two handlers for one direction", action);
        return;
    }
    struct agent_handler *more =
        realloc(o->handlers, (o->handler_count + 1) * sizeof(*o->handlers));
    if (!more)
        abort();
    o->handlers = more;
    o->handlers[o->handler_count++] = (struct agent_handler){copy_of(action), direction, run, arg};
}

void intact_agent_set_server(struct intact_agent *a, const char *urls)
{
    if (may_set(a, "server"))
        replace(&a->options.server, urls);
}

void intact_agent_set_discovery(struct intact_agent *a, bool is_on)
{
    if (may_set(a, "discovery"))
        a->options.discovery = is_on;
}

void intact_agent_set_token(struct intact_agent *a, const char *token)
{
    if (may_set(a, "token"))
        replace(&a->options.token, token);
}

void intact_agent_set_ca(struct intact_agent *a, const char *path)
{
    if (may_set(a, "ca"))
        replace(&a->options.ca, path);
}

void intact_agent_set_installation(struct intact_agent *a, const char *id)
{
    if (may_set(a, "installation"))
        replace(&a->options.installation, id);
}

void intact_agent_set_instance(struct intact_agent *a, const char *instance)
{
    if (!may_set(a, "instance"))
        return;
    if (instance && (!instance[0] || strlen(instance) > INSTANCE_MAX)) {
        mistake(a, "an instance's name has 1 to %d bytes", INSTANCE_MAX);
        return;
    }
    free(a->options.instance);
    a->options.instance = instance ? copy_of(instance) : default_instance();
}

void intact_agent_set_concurrency(struct intact_agent *a, unsigned places)
{
    if (!may_set(a, "concurrency"))
        return;
    if (places < 1 || places > CONCURRENCY_MAX)
        mistake(a, "concurrency is %u, expected 1 to %d", places, CONCURRENCY_MAX);
    a->options.concurrency = places;
}

void intact_agent_set_inline(struct intact_agent *a, bool is_inline)
{
    if (may_set(a, "inline"))
        a->options.inline_handlers = is_inline;
}

static void set_ms(struct intact_agent *a, const char *setting, int64_t *where, int64_t ms)
{
    const int64_t most = INT64_C(24) * 3600 * 1000;

    if (!may_set(a, setting))
        return;
    if (ms < 1 || ms > most)
        mistake(a, "%s is %" PRId64 ", expected 1 to %" PRId64, setting, ms, most);
    *where = ms;
}

void intact_agent_set_heartbeats(struct intact_agent *a, bool are_automatic)
{
    if (may_set(a, "heartbeats"))
        a->options.automatic_beats = are_automatic;
}

void intact_agent_set_retry(struct intact_agent *a, unsigned tries_max, int64_t wait_ms,
                            int64_t max_wait_ms)
{
    struct retry_rule *rule = &a->options.retry;

    set_ms(a, "retry wait_ms", &rule->wait_ms, wait_ms);
    set_ms(a, "retry max_wait_ms", &rule->max_wait_ms, max_wait_ms);
    if (a->phase == AGENT_NEW)
        rule->tries_max = tries_max;
}

void intact_agent_set_wait_ms(struct intact_agent *a, int64_t ms)
{
    set_ms(a, "wait_ms", &a->options.wait_ms, ms);
}

void intact_agent_set_stop_wait_ms(struct intact_agent *a, int64_t ms)
{
    set_ms(a, "stop_wait_ms", &a->options.stop_wait_ms, ms);
}

void intact_agent_set_log(struct intact_agent *a, intact_logger *log, void *arg)
{
    if (!may_set(a, "log"))
        return;
    a->options.log = log;
    a->options.log_arg = arg;
}

void agent_set_door(struct intact_agent *a, int door)
{
    ASSERT(a->phase == AGENT_NEW);
    ASSERT(door > 0);
    a->options.door = door;
    replace(&a->options.server, "http://localhost");
    replace(&a->options.installation, "any"); /* ignores the setting for clients of this machine */
    a->options.discovery = false;             /* other nodes have their own agents */
}
