/* Agents and instances by name: parked calls, places, connections, and forgetting unused names.
 * Lanes, limits and health: lanes.c. */

#include "dispatch/dispatch.h"

#include <stdlib.h>

enum {
    FORGOTTEN_MS = 600000,
    FORGOTTEN_SOON_MS = 30000, /* while there are very many names */
    NAMES_MAX = 10000,         /* default */
    SWEEP_MAX = 64,            /* forgotten at a time; the rest is left to the next sweep */
};

struct work *work_new(void)
{
    struct arena a = {0};
    struct work *w = arena_alloc(&a, sizeof *w);

    w->arena = a;
    list_init(&w->turn);
    list_init(&w->assigned);
    return w;
}

void work_free(struct work *w)
{
    ASSERT(!link_is_in(&w->turn));
    ASSERT(list_empty(&w->assigned));
    ASSERT(w->timer.pos == 0);
    struct arena a = w->arena; /* w lies in it */
    arena_fini(&a);
}

const char *result_status_text(enum result_status s)
{
    static const char *const texts[] = {
#define X(name, text) text,
        RESULT_STATUSES(X)
#undef X
    };
    return texts[s];
}

static struct slice name_copy(struct slice name)
{
    char *copy = malloc(name.len + 1);

    ASSERT(copy);
    memcpy(copy, name.ptr, name.len);
    copy[name.len] = 0;
    return (struct slice){copy, name.len};
}

static void name_free(struct slice name)
{
    union {
        const char *in;
        void *out;
    } ptr = {name.ptr}; /* allocated by name_copy */

    free(ptr.out);
}

static void count_out(struct instance *i)
{
    if (!i->counted)
        return;
    ASSERT(i->agent->places >= i->places);
    i->agent->places -= i->places;
    i->counted = false;
    link_remove(&i->leaving);
}

static struct slice token_key(const uint64_t *token)
{
    return (struct slice){(const char *)token, sizeof *token};
}

/* What calls of that token have added; made if missing. NULL: no token. */
static struct adder *adder_of(struct dispatch *d, uint64_t token)
{
    struct adder *a = token ? map_get(&d->adders, token_key(&token)) : NULL;

    if (a || token == 0)
        return a;
    a = calloc(1, sizeof *a);
    ASSERT(a);
    a->token = token;
    map_put(&d->adders, token_key(&a->token), a);
    return a;
}

static void adder_drop(struct dispatch *d, struct adder *a)
{
    if (!a || a->agents > 0 || a->instances > 0)
        return;
    (void)map_remove(&d->adders, token_key(&a->token));
    free(a);
}

static void instance_free(struct dispatch *d, struct instance *i)
{
    ASSERT(list_empty(&i->sent));
    count_out(i);
    if (i->added_by) {
        ASSERT(i->added_by->instances > 0);
        i->added_by->instances--;
        adder_drop(d, i->added_by);
    }
    if (i->agent->mover == i)
        i->agent->mover = NULL;
    name_free(i->name);
    free(i);
}

static void lane_free(struct dispatch *d, struct lane *l)
{
    heap_remove(&d->lane_wakes, &l->wake);
    heap_remove(&l->agent->ready, &l->turn);
    heap_fini(&l->queue);
    free(l);
}

static void agent_free(struct dispatch *d, struct agent *a)
{
    struct instance *in = NULL;
    struct lane *l = NULL;

    for (size_t k = 0; (in = map_next(&a->instances, &k));)
        instance_free(d, in);
    if (a->added_by) {
        ASSERT(a->added_by->agents > 0);
        a->added_by->agents--;
        adder_drop(d, a->added_by);
    }
    ASSERT(!a->by_call || d->called > 0);
    d->called -= a->by_call;
    for (size_t k = 0; (l = map_next(&a->lanes, &k));)
        lane_free(d, l);
    map_fini(&a->instances);
    map_fini(&a->lanes);
    heap_fini(&a->ready);
    heap_remove(&d->wakes, &a->wake);
    link_remove(&a->busy);
    free(a->lines);
    arena_fini(&a->settings_arena);
    arena_fini(&a->breaker_arena);
    link_remove(&a->shut);
    link_remove(&a->unsaved);
    free(a->recent.list);
    name_free(a->name);
    free(a);
}

void dispatch_init(struct dispatch *d, struct share share, int64_t now)
{
    *d = (struct dispatch){.share = share,
                           .since = now,
                           .instances_max = NAMES_MAX,
                           .agents_max = NAMES_MAX};
    list_init(&d->busy);
}

void dispatch_fini(struct dispatch *d)
{
    struct agent *a = NULL;

    for (size_t i = 0; (a = map_next(&d->agents, &i));)
        agent_free(d, a);
    map_fini(&d->agents);
    ASSERT(d->adders.len == 0);
    map_fini(&d->adders);
    heap_fini(&d->wakes);
    heap_fini(&d->lane_wakes);
}

static struct agent *agent_new(struct dispatch *d, struct slice name)
{
    struct agent *a = calloc(1, sizeof *a);

    ASSERT(a);
    a->name = name_copy(name);
    a->backlog = BACKLOG_UNKNOWN;
    a->settings = settings_default();
    list_init(&a->calls);
    list_init(&a->leaving);
    list_init(&a->shut);
    list_init(&a->unsaved);
    map_put(&d->agents, a->name, a);
    return a;
}

struct agent *dispatch_agent(struct dispatch *d, struct slice name)
{
    struct agent *a = map_get(&d->agents, name);

    return a ? a : agent_new(d, name);
}

static struct instance *instance_new(struct agent *a, struct slice name)
{
    struct instance *i = calloc(1, sizeof *i);

    ASSERT(i);
    i->name = name_copy(name);
    i->agent = a;
    list_init(&i->sent);
    list_init(&i->leaving);
    map_put(&a->instances, i->name, i);
    return i;
}

struct instance *dispatch_instance(struct agent *a, struct slice name)
{
    struct instance *i = map_get(&a->instances, name);

    return i ? i : instance_new(a, name);
}

/* The instance called: it is connected while a call is parked, and for a while afterwards. */
static void is_there(struct instance *i, int64_t now)
{
    i->seen_at = i->agent->seen_at = now;
    if (!i->counted)
        i->agent->places += i->places;
    i->counted = true;
    link_remove(&i->leaving);
    if (i->parked == 0)
        list_push(&i->agent->leaving, &i->leaving);
}

static void announces(struct instance *i, uint32_t places)
{
    ASSERT(!i->counted || i->agent->places >= i->places);
    if (i->counted)
        i->agent->places += (uint64_t)places - i->places;
    i->places = places;
}

/* Has the token added so few of `all` names, of agents or of instances, that others find room? */
static bool leaves_to_others(const struct dispatch *d, uint64_t token, size_t left, size_t all,
                             bool instances)
{
    if (token == 0 || left > all / 8)
        return true;
    const struct adder *a = map_get(&d->adders, token_key(&token));
    size_t added = !a ? 0 : instances ? a->instances : a->agents;
    return added < 7 * left;
}

enum dispatch_room dispatch_room(const struct dispatch *d, const struct work *w)
{
    const struct agent *a = map_get(&d->agents, w->agent_name);
    size_t agents_left = d->called < d->agents_max ? d->agents_max - d->called : 0;

    if (!a && (agents_left == 0 || !leaves_to_others(d, w->by, agents_left, d->agents_max, false)))
        return NO_ROOM_FOR_AGENT;
    if (a && map_get(&a->instances, w->instance_name))
        return ROOM_FOR_IT;
    size_t all = 4 * d->instances_max;
    size_t left = d->instances_about < all ? all - d->instances_about : 0;
    if (!leaves_to_others(d, w->by, left, all, true))
        return NO_ROOM_FOR_INSTANCE;
    /* An agent may have as many as are left, so that a few agents with many instances leave names
     * to the others. */
    if (left == 0 || (a && (a->instances.len >= d->instances_max || a->instances.len >= left)))
        return NO_ROOM_FOR_INSTANCE;
    return ROOM_FOR_IT;
}

void dispatch_park(struct dispatch *d, struct work *w, int64_t now)
{
    ASSERT(!w->agent && !w->instance);
    w->agent = map_get(&d->agents, w->agent_name);
    if (!w->agent) {
        w->agent = agent_new(d, w->agent_name);
        w->agent->by_call = true;
        d->called++;
        w->agent->added_by = adder_of(d, w->by);
        if (w->agent->added_by)
            w->agent->added_by->agents++;
    }
    w->instance = map_get(&w->agent->instances, w->instance_name);
    if (!w->instance) {
        d->instances_about++;
        w->instance = instance_new(w->agent, w->instance_name);
        w->instance->added_by = adder_of(d, w->by);
        if (w->instance->added_by)
            w->instance->added_by->instances++;
    }
    w->arrived_at = now;
    if (w->instance->calls++ == 0 && w->instance->open == 0)
        health_moved(&w->instance->health, now); /* it was idle */
    if (w->max > 0) {
        announces(w->instance, w->max);
        w->parked = true;
        w->agent->parked++;
        w->instance->parked++;
    }
    is_there(w->instance, now);
    if (w->parked)
        list_push(&w->agent->calls, &w->turn);
}

void dispatch_close(struct work *w)
{
    w->closed = true;
    link_remove(&w->turn);
}

void dispatch_leave(struct work *w, int64_t now)
{
    dispatch_close(w);
    if (!w->parked)
        return;
    w->parked = false;
    ASSERT(w->agent->parked > 0);
    ASSERT(w->instance->parked > 0);
    w->agent->parked--;
    w->instance->parked--;
    is_there(w->instance, now);
}

void dispatch_unpark(struct work *w, int64_t now)
{
    dispatch_leave(w, now);
    ASSERT(w->instance->calls > 0);
    w->instance->calls--;
}

bool dispatch_is_connected(const struct agent *a, int64_t now)
{
    return a->parked > 0 || now - a->seen_at < AGENT_ABSENT_MS;
}

bool instance_is_connected(const struct instance *i, int64_t now)
{
    return i->parked > 0 || now - i->seen_at < AGENT_ABSENT_MS;
}

bool dispatch_may_start(const struct agent *a, int64_t now)
{
    return dispatch_is_connected(a, now)
           && (a->breaker.state != BREAKER_OPEN || now - a->breaker.since < AGENT_ABSENT_MS);
}

uint32_t dispatch_places(struct agent *a, int64_t now)
{
    for (struct link *first = NULL; (first = list_first(&a->leaving));) {
        struct instance *i = CONTAINER_OF(first, struct instance, leaving);
        if (instance_is_connected(i, now))
            break;
        count_out(i);
    }
    if (!dispatch_is_connected(a, now))
        return 0;
    return a->places > 100000 ? 100000 : (uint32_t)a->places;
}

/* Drops lanes without use: actions come and go with definitions. */
static void sweep_lanes(struct dispatch *d, struct agent *a)
{
    struct lane *forgotten[SWEEP_MAX];
    struct lane *l = NULL;
    size_t count = 0;

    if (a->lanes.len <= SWEEP_MAX)
        return;
    for (size_t k = 0; count < SWEEP_MAX && (l = map_next(&a->lanes, &k));)
        if (l->queue.len == 0 && l->limiter.open == 0 && !l->limited)
            forgotten[count++] = l;
    for (size_t n = 0; n < count; n++) {
        (void)map_remove(&a->lanes, forgotten[n]->action);
        lane_free(d, forgotten[n]);
    }
}

static bool is_crowded(const struct dispatch *d, const struct agent *a)
{
    return a->instances.len > d->instances_max / 2 || d->instances_about > 2 * d->instances_max
           || d->called > d->agents_max / 2;
}

/* The latest sign of the instance. One that got its attempts from another node may never have
 * called here: the ends of those attempts tell its health, and are kept as long. */
static int64_t heard_at(const struct instance *i)
{
    return max_i64(i->health.moved_at, max_i64(i->seen_at, i->heartbeat_at));
}

static void sweep_agent(struct dispatch *d, struct agent *a, int64_t now)
{
    int64_t old = is_crowded(d, a) ? FORGOTTEN_SOON_MS : FORGOTTEN_MS;
    struct instance *forgotten[SWEEP_MAX];
    struct instance *i = NULL;
    size_t count = 0;

    for (size_t k = 0; count < SWEEP_MAX && (i = map_next(&a->instances, &k));)
        if (i->calls == 0 && list_empty(&i->sent) && now - heard_at(i) > old)
            forgotten[count++] = i;
    for (size_t n = 0; n < count; n++) {
        (void)map_remove(&a->instances, forgotten[n]->name);
        instance_free(d, forgotten[n]);
    }
}

static bool is_of_no_use(const struct dispatch *d, const struct agent *a, int64_t now)
{
    int64_t old = is_crowded(d, a) ? FORGOTTEN_SOON_MS : FORGOTTEN_MS;

    return a->instances.len == 0 && a->waiting == 0 && a->parked == 0 && !a->limited
           && a->limiter.open == 0 && now - a->seen_at > old && !a->settings_text.ptr
           && !a->breaker_text.ptr && !link_is_in(&a->shut) && !link_is_in(&a->unsaved);
}

void dispatch_sweep(struct dispatch *d, int64_t now)
{
    struct agent *forgotten[SWEEP_MAX];
    struct agent *a = NULL;
    size_t instances = 0;
    size_t count = 0;

    for (size_t i = 0; (a = map_next(&d->agents, &i));) {
        sweep_agent(d, a, now);
        instances += a->instances.len;
        sweep_lanes(d, a);
        if (count < SWEEP_MAX && is_of_no_use(d, a, now))
            forgotten[count++] = a;
    }
    d->instances_about = instances;
    for (size_t n = 0; n < count; n++) {
        (void)map_remove(&d->agents, forgotten[n]->name);
        agent_free(d, forgotten[n]);
    }
}
