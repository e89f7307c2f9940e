/* Receivers of messages, with faults, and the rules for what they must receive, derived from rows
 * as they become durable (receivers.h). Shares no code with outbox/, which it judges. Draws from
 * a random source of its own. */

#include "sim/receivers.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/world.h"

enum { RECEIVERS = 4, TELL_MAX = 300, ODDS = 500, BATCH_MAX = 5 };

enum happening {
    RECEIVED,
    STARTED,
    COMPENSATING,
    PROCESSED,
    COMPENSATED,
    STOPPED,
    RESUMED,
    PAUSED,
    CLOSED,
    HAPPENINGS
};

static const char *const words[] = {"received",  "started",     "compensating",
                                    "processed", "compensated", "error",
                                    "resumed",   "paused",      "closed"};

struct to_tell {
    uint32_t receiver, count, heard;
    bool hears_pauses;                 /* requested */
    uint64_t stopped_from, stopped_to; /* revisions at which it stopped, or had stopped before */
    bool started;
    struct {
        enum happening what;
        uint64_t from, to;  /* revisions that its id may have */
        uint64_t id, words; /* of the received message */
    } list[TELL_MAX];
};

struct receiver {
    int64_t down_until, slow_until;
    bool refuses; /* while it is down, connections to it fail */
};

static struct {
    struct prng prng;
    bool on, calm;
    struct receiver list[RECEIVERS];
} receivers;

static uint32_t draw(uint32_t bound)
{
    return prng_below(&receivers.prng, bound);
}

static bool odds(uint32_t per_mille)
{
    return draw(1000) < per_mille;
}

void receivers_begin(void)
{
    memset(&receivers, 0, sizeof receivers);
    receivers.prng.state = world.seed ^ UINT64_C(0x6f7574626f78);
    receivers.on = odds(ODDS);
    for (uint32_t i = 0; i < subjects.count && receivers.on; i++) {
        if (odds(200))
            continue;
        struct to_tell *tt = arena_alloc(&world.arena, sizeof *tt);
        tt->receiver = draw(RECEIVERS);
        tt->hears_pauses = odds(500);
        subjects.list[i].to_tell = tt;
    }
}

void receivers_calm(void)
{
    receivers.calm = true;
    for (uint32_t i = 0; i < RECEIVERS; i++)
        receivers.list[i] = (struct receiver){0};
}

bool receivers_are_on(void)
{
    return receivers.on;
}

struct slice receivers_reply_to(const struct subject *t)
{
    if (!t->to_tell)
        return SLICE_NONE;
    if (t->to_tell->hears_pauses)
        return text_of("{\"to\": \"r%u\", \"events\": [\"received\", \"started\", "
                       "\"compensating\", \"processed\", \"compensated\", \"error\", "
                       "\"paused\", \"resumed\", \"closed\"]}",
                       t->to_tell->receiver);
    return text_of("r%u", t->to_tell->receiver);
}

/* ---- expected messages ---- */

static void must(const struct subject *t, bool ok, const char *rule, struct slice what)
{
    if (ok)
        return;
    if (t)
        describe(t);
    broken(rule, "%s: %.*s", t ? t->id : "?", SLICE_ARG(what));
}

static void will_hear(struct to_tell *tt, enum happening what, const struct seen *old,
                      const struct seen *new)
{
    ASSERT(tt->count < TELL_MAX);
    tt->list[tt->count].what = what;
    tt->list[tt->count].from = old->revision + 1; /* a claim may follow in the same transaction */
    tt->list[tt->count++].to = new->revision;
}

/* A step that was skipped or supplied, and restarts in the same change, has another key: the row
 * says that it had begun, so a reader assumes that this was reported. */
static bool has_begun(const struct seen *s)
{
    for (uint32_t i = 0; i < s->step_count; i++)
        if (s->steps[i].state != STEP_WAITING || s->steps[i].begun_at != 0
            || s->steps[i].attempt_count > 0 || s->steps[i].generation > 1)
            return true;
    return s->failure_count > 0;
}

static void hands_row(struct to_tell *tt, const struct seen *old, const struct seen *new)
{
    bool at_work = !task_state_is_end(new->state) && new->state != TASK_ERROR;

    if (tt->hears_pauses && old->paused_at && !new->paused_at &&at_work)
        will_hear(tt, RESUMED, old, new);
    if (tt->hears_pauses && !old->paused_at && new->paused_at)
        will_hear(tt, PAUSED, old, new);
    if (!old->closed_at && new->closed_at)
        will_hear(tt, CLOSED, old, new);
    for (enum happening h = RESUMED; h <= CLOSED; h++)
        for (uint32_t i = tt->count; i-- > 0 && tt->list[i].to == new->revision;)
            if (tt->list[i].what == h)
                covered(COVER_MESSAGE_OF_HANDS);
}

void receivers_row(struct subject *t, const struct seen *old, const struct seen *new)
{
    struct to_tell *tt = t->to_tell;

    if (!tt)
        return;
    if (old->revision == 0)
        will_hear(tt, RECEIVED, old, new);
    if (!tt->started && has_begun(new))
        will_hear(tt, STARTED, old, new);
    tt->started |= has_begun(new);
    if (new->direction == DIRECTION_UNDO && old->direction == DIRECTION_FORWARD)
        will_hear(tt, COMPENSATING, old, new);
    if (new->state == TASK_PROCESSED && old->state != TASK_PROCESSED)
        will_hear(tt, PROCESSED, old, new);
    if (new->state == TASK_COMPENSATED && old->state != TASK_COMPENSATED)
        will_hear(tt, COMPENSATED, old, new);
    if (new->state == TASK_ERROR && old->state != TASK_ERROR)
        will_hear(tt, STOPPED, old, new);
    if (new->state == TASK_ERROR && old->state == TASK_ERROR) {
        tt->stopped_from = tt->stopped_from ? tt->stopped_from : new->revision;
        tt->stopped_to = new->revision;
    }
    hands_row(tt, old, new);
}

/* "t3/12/processed" */
static bool id_read(struct slice id, uint64_t *ret_revision, struct slice *ret_word)
{
    const char *slash = memchr(id.ptr, '/', id.len);
    char *end = NULL;

    if (!slash)
        return false;
    *ret_revision = strtoull(slash + 1, &end, 10);
    *ret_word = (struct slice){end + 1, id.len - (size_t)(end + 1 - id.ptr)};
    return *end == '/';
}

/* "needs_operator", or "needs_operator/s1" for a step. */
static bool is_word(struct slice text, const char *word)
{
    size_t len = strlen(word);

    return text.len >= len && memcmp(text.ptr, word, len) == 0
           && (text.len == len || text.ptr[len] == '/');
}

/* Was it received before? Then in the same words. */
static bool was_heard(const struct subject *t, struct slice id, struct slice body)
{
    const struct to_tell *tt = t->to_tell;
    uint64_t hash = hash_stable(id.ptr, id.len);

    for (uint32_t i = 0; i < tt->heard; i++)
        if (tt->list[i].id == hash) {
            must(t, tt->list[i].words == hash_stable(body.ptr, body.len),
                 "the same id is the same message", id);
            return true;
        }
    return false;
}

static void hears(const struct subject *t, struct slice id, struct slice body)
{
    struct to_tell *tt = t->to_tell;
    struct slice word = {0};
    uint64_t revision = 0;

    must(t, tt && id_read(id, &revision, &word), "messages have ids", id);
    must(t, revision <= t->seen.revision, "nothing is told that is not durable", id);
    if (is_word(word, "needs_operator") || was_heard(t, id, body))
        return;
    bool expected = tt->heard < tt->count && revision >= tt->list[tt->heard].from
                    && revision <= tt->list[tt->heard].to
                    && slice_is(word, words[tt->list[tt->heard].what]);
    if (!expected && slice_is(word, "error") && revision <= tt->stopped_to
        && revision >= tt->stopped_from)
        return; /* an operator changed it, and it stopped again in the same change */
    must(t, tt->heard < tt->count, "what is told has happened", id);
    uint32_t i = tt->heard++;
    must(t, slice_is(word, words[tt->list[i].what]), "each task is told of in order",
         text_of("%.*s, expected %s of %" PRIu64, SLICE_ARG(id), words[tt->list[i].what],
                 tt->list[i].to));
    must(t, revision >= tt->list[i].from && revision <= tt->list[i].to,
         "what is told has happened then", id);
    tt->list[i].id = hash_stable(id.ptr, id.len);
    tt->list[i].words = hash_stable(body.ptr, body.len);
}

bool receivers_are_content(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct to_tell *tt = subjects.list[i].to_tell;
        if (tt && tt->heard < tt->count)
            return false;
    }
    return true;
}

void check_all_received(void)
{
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        const struct to_tell *tt = t->to_tell;
        must(t, !tt || tt->heard == tt->count, "every event gets to its receiver",
             slice_of(tt && tt->heard < tt->count ? words[tt->list[tt->heard].what] : ""));
    }
}

/* ---- delivery ---- */

struct way {
    struct channel channel; /* must be first */
    struct node *node;
    bool closed; /* its process is gone */
};

struct parcel {
    struct slice id, subject, body;
    enum delivery_end end;
};

struct post {
    struct way *way;
    struct receiver *to;
    struct delivery **list;
    delivery_done_fn *done;
    void *arg;
    size_t count;
    struct parcel parcels[BATCH_MAX];
};

/* A failed delivery holds back later ones of the same task. */
static bool is_held_up(const struct post *p, size_t nth)
{
    for (size_t i = 0; i < nth; i++)
        if (p->parcels[i].end != DELIVERED
            && slice_eq(p->parcels[i].subject, p->parcels[nth].subject))
            return true;
    return false;
}

static void answered(void *arg, uint64_t n)
{
    struct post *p = arg;

    if (p->way->closed || p->way->node->dead || node_sleeps(p->way->node, answered, arg, n))
        return;
    for (size_t i = 0; i < p->count; i++) {
        p->list[i]->end = p->parcels[i].end;
        p->list[i]->retry_after_ms = odds(100) ? 500 : 0;
        (void)snprintf(p->list[i]->story, sizeof p->list[i]->story, "simulated");
    }
    p->done(p->arg, p->list, p->count);
    node_turn_quietly(p->way->node);
}

/* Some channels detect and report it; the receiver may be down again by then. */
static void is_back(void *arg, uint64_t n)
{
    struct way *w = arg;

    if (w->closed || w->node->dead || node_sleeps(w->node, is_back, arg, n))
        return;
    covered(COVER_RECEIVER_BACK);
    courier_back(w->node->courier, &w->channel);
    node_turn_quietly(w->node);
}

/* A receiver's faults begin when a message arrives. */
static void befall(struct way *w, struct receiver *r)
{
    if (receivers.calm)
        return;
    if (r->down_until <= world.now && odds(20)) {
        r->down_until = world.now + 1 + draw(odds(200) ? 120000 : 5000);
        r->refuses = odds(500);
        if (r->refuses && odds(500))
            later(r->down_until - world.now, is_back, w, 0);
    }
    if (r->slow_until <= world.now && odds(10))
        r->slow_until = world.now + 1 + draw(60000);
}

static void arrives(void *arg, uint64_t n)
{
    struct post *p = arg;
    bool down = p->to->down_until > world.now;
    int64_t late = p->to->slow_until > world.now ? draw(20000) : draw(20);
    (void)n;

    for (size_t i = 0; i < p->count; i++) {
        struct parcel *one = &p->parcels[i];
        const struct subject *t = subject_find(one->subject);
        one->end = (down && p->to->refuses) || odds(10) ? DELIVERY_AWAY : DELIVERY_RETRY;
        if (down || is_held_up(p, i) || (!receivers.calm && odds(30)))
            continue;
        remark("heard: %.*s", SLICE_ARG(one->id));
        hears(t, one->id, one->body);
        if (receivers.calm || !odds(30))
            one->end = DELIVERED;
        else
            covered(COVER_MESSAGE_TWICE);
    }
    for (size_t i = 0; i < p->count; i++)
        if (p->parcels[i].end == DELIVERY_AWAY)
            covered(COVER_RECEIVER_AWAY);
    later(late, answered, p, 0);
}

static bool takes(struct channel *c, struct slice target, struct error *e)
{
    (void)c;
    (void)e;
    return target.ptr != NULL;
}

static size_t batch_max(struct channel *c, struct slice target)
{
    (void)c;
    return 1 + (size_t)(target.ptr[1] - '0') % BATCH_MAX;
}

static void send(struct channel *c, struct delivery **list, size_t count, delivery_done_fn *done,
                 void *arg)
{
    struct post *p = arena_alloc(&world.arena, sizeof *p);

    ASSERT(count > 0 && count <= BATCH_MAX);
    *p = (struct post){.way = CONTAINER_OF(c, struct way, channel),
                       .to = &receivers.list[list[0]->target.ptr[1] - '0'],
                       .list = list,
                       .done = done,
                       .arg = arg,
                       .count = count};
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_fini) struct buf body = {0};
        delivery_write(list[i], &body);
        p->parcels[i] = (struct parcel){.id = arena_copy(&world.arena, list[i]->id),
                                        .subject = arena_copy(&world.arena, list[i]->subject),
                                        .body = arena_copy(&world.arena, buf_view(&body))};
    }
    befall(p->way, p->to);
    if (p->to->down_until > world.now)
        covered(COVER_RECEIVER_DOWN);
    later(draw(10), arrives, p, 0);
}

static void close_way(struct channel *c)
{
    CONTAINER_OF(c, struct way, channel)->closed = true;
}

struct channel *receivers_channel(struct node *n)
{
    static const struct channel_ops ops = {takes, batch_max, send, close_way};
    struct way *w = arena_alloc(&world.arena, sizeof *w);

    *w = (struct way){.channel = {.ops = &ops}, .node = n};
    return &w->channel;
}

/* Some have little memory: then messages are set aside. None is given up. */
struct courier_config receivers_config(bool shared)
{
    uint32_t items_max = odds(300) ? 1 + draw(8) : 0;
    uint64_t seed = prng_next(&receivers.prng);

    return (struct courier_config){.shared = shared,
                                   .give_up_ms = INT64_MAX / 4,
                                   .backoff_ms = 200,
                                   .backoff_max_ms = 10000,
                                   .items_max = items_max,
                                   .seed = seed};
}
