/* One target: its chains, batches, pauses and retries. Called by courier.c; shared structures are
 * in internal.h. */
#include "outbox/internal.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ID_USUAL = 48,     /* most task ids are shorter */
    SPARES_MAX = 1024, /* chains, for each target */
};

/* A batch under way. */
struct batch_out {
    struct link link; /* in the courier's list */
    struct courier *outbox;
    struct target *target; /* NULL: this node has lost the leadership */
    size_t count;
    struct delivery *list[];
};

/* ---- chains ---- */

/* There are as many as tasks, and most live for milliseconds: their memory is reused. */
static struct chain *chain_memory(struct target *t, size_t id_len)
{
    struct link *spare = id_len <= ID_USUAL ? list_first(&t->spares) : NULL;

    if (spare) {
        link_remove(spare);
        t->spare_count--;
        return CONTAINER_OF(spare, struct chain, ready);
    }
    struct chain *c = malloc(sizeof *c + (id_len > ID_USUAL ? id_len : ID_USUAL));
    ASSERT(c);
    return c;
}

static void chain_free(struct chain *c)
{
    struct target *t = c->target;

    if (c->task.len > ID_USUAL || t->spare_count == SPARES_MAX) {
        free(c);
        return;
    }
    t->spare_count++;
    list_push_front(&t->spares, &c->ready);
}

/* Requires that there is none. */
static struct chain *chain_new(struct target *t, struct slice task)
{
    struct chain *c = chain_memory(t, task.len);

    memcpy(c + 1, task.ptr, task.len);
    *c = (struct chain){.task = {(const char *)(c + 1), task.len}, .target = t};
    list_init(&c->ready);
    list_init(&c->items);
    map_put(&t->chains, c->task, c);
    return c;
}

static struct chain *chain_get(struct target *t, struct slice task)
{
    struct chain *c = map_get(&t->chains, task);

    return c ? c : chain_new(t, task);
}

/* Unblocks it, and frees what is not needed. */
static void chain_let_go(struct chain *c)
{
    struct target *t = c->target;

    t->blocked -= c->due_at != 0;
    c->due_at = 0;
    if (!list_empty(&c->items) || c->asides > 0)
        return;
    link_remove(&c->ready);
    (void)map_remove(&t->chains, c->task);
    chain_free(c);
}

static void chain_add(struct chain *c, struct item *it)
{
    it->chain = c;
    list_push(&c->items, &it->link);
    c->target->queued++;
    if (c->under_way == 0 && !link_is_in(&c->ready))
        list_push(&c->target->ready, &c->ready);
}

/* The item leaves its chain for good: `sent` if it was under way. */
static void chain_take(struct item *it, bool sent)
{
    struct chain *c = it->chain;

    link_remove(&it->link);
    if (sent)
        c->under_way--;
    else
        c->target->queued--;
    it->chain = NULL;
}

static void chain_block(struct chain *c, int64_t due_at, int64_t head_seq)
{
    ASSERT(c->due_at == 0);
    link_remove(&c->ready);
    c->due_at = due_at;
    c->head_seq = head_seq;
    c->target->blocked++;
}

/* ---- targets ---- */

struct target *target_get(struct courier *o, struct slice name)
{
    struct target *t = map_get(&o->targets, name);

    if (t)
        return t;
    t = calloc(1, sizeof *t + name.len);
    ASSERT(t);
    memcpy(t + 1, name.ptr, name.len);
    t->name = (struct slice){(const char *)(t + 1), name.len};
    t->outbox = o;
    list_init(&t->ready);
    list_init(&t->spares);
    list_init(&t->hungry);
    map_put(&o->targets, t->name, t);
    return t;
}

void target_free(struct target *t)
{
    for (size_t i = 0; i < t->chains.cap; i++) {
        struct chain *c = t->chains.entries[i].value;
        if (!c)
            continue;
        LIST_FOREACH (link, after, &c->items)
            item_free(CONTAINER_OF(link, struct item, link));
        free(c);
    }
    map_fini(&t->chains);
    while (t->spare_count > 0)
        free(chain_memory(t, 0));
    shelf_close(t);
    link_remove(&t->hungry);
    heap_remove(&t->outbox->timers, &t->timer);
    (void)map_remove(&t->outbox->targets, t->name);
    free(t);
}

void target_forget_if_idle(struct target *t)
{
    if (t->chains.len == 0 && t->batches == 0 && !t->paused && !t->behind && t->asides == 0
        && !link_is_in(&t->hungry))
        target_free(t);
}

/* A target may take a quarter of the free memory; with nothing under way, always one message. */
size_t target_room(const struct target *t)
{
    const struct courier *o = t->outbox;
    size_t used = o->item_count;
    size_t free_items = used < o->config.items_max ? o->config.items_max - used : 0;
    size_t most = free_items / 4 < QUEUED_MAX ? free_items / 4 : QUEUED_MAX;

    if (o->bytes > BYTES_MAX || most == 0)
        most = t->batches == 0;
    return most > t->queued ? most - t->queued : 0;
}

void target_hunger(struct target *t)
{
    bool wants = t->paused ? t->probing && t->queued == 0 && t->batches == 0
                           : t->behind && target_room(t) > t->queued;

    if (wants && !link_is_in(&t->hungry))
        list_push(&t->outbox->hungry, &t->hungry);
}

/* The earliest due time of the blocked chains; 0: none. */
static int64_t first_due(const struct target *t)
{
    int64_t first = 0;
    const struct chain *c = NULL;

    if (t->blocked == 0)
        return 0;
    for (size_t i = 0; (c = map_next(&t->chains, &i));)
        if (c->due_at != 0 && (first == 0 || c->due_at < first))
            first = c->due_at;
    return first;
}

static void set_timer(struct target *t, int64_t at)
{
    heap_remove(&t->outbox->timers, &t->timer);
    if (at != 0)
        heap_push(&t->outbox->timers, &t->timer, at);
}

static int64_t backoff(struct courier *o, unsigned failures, int64_t wished_ms)
{
    int64_t ms = o->config.backoff_ms;

    for (unsigned i = 1; i < failures && ms < o->config.backoff_max_ms; i++)
        ms *= 2;
    ms = min_i64(ms, o->config.backoff_max_ms);
    ms = ms * (int64_t)(80 + prng_below(&o->random, 41)) / 100;
    return max_i64(ms, min_i64(wished_ms, RETRY_AFTER_MAX_MS));
}

/* ---- setting aside ---- */

static void set_aside(struct target *t, struct item *it, int64_t retry_at, const char *story)
{
    struct chain *c = chain_get(t, it->d.subject);

    c->aside_first = c->asides++ ? min_i64(c->aside_first, it->seq) : it->seq;
    t->asides++;
    item_settle(it, SETTLE_ASIDE, retry_at, story);
}

/* Sets aside what is not under way. Returns the first number, or 0. */
static int64_t chain_set_aside(struct chain *c)
{
    int64_t first = 0;
    size_t n = 0;

    LIST_FOREACH (link, after, &c->items) {
        struct item *it = CONTAINER_OF(link, struct item, link);
        if (n++ < c->under_way)
            continue;
        if (first == 0)
            first = it->seq;
        chain_take(it, false);
        set_aside(c->target, it, 0, NULL);
    }
    link_remove(&c->ready);
    return first;
}

/* Sets aside everything that is not under way; blocked chains are in the store, too. */
static void empty_target(struct target *t)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct chain **list = arena_alloc(&a, (t->chains.len + 1) * sizeof(struct chain *));
    size_t count = 0;
    struct chain *c = NULL;

    for (size_t i = 0; (c = map_next(&t->chains, &i));)
        list[count++] = c;
    for (size_t i = 0; i < count; i++) {
        (void)chain_set_aside(list[i]);
        chain_let_go(list[i]);
    }
}

static void target_fails(struct target *t, int64_t pause_ms)
{
    struct courier *o = t->outbox;
    int64_t now = courier_now(o);

    if (!t->paused) {
        t->failing_since = now;
        if (o->outside.target)
            o->outside.target(o->outside.arg, t->name, t->story);
    }
    t->paused = t->behind = true;
    t->probing = false;
    t->failures++;
    empty_target(t);
    set_timer(t, now + pause_ms);
}

static void target_works(struct target *t)
{
    struct courier *o = t->outbox;

    t->failures = 0;
    if (!t->paused)
        return;
    t->paused = t->probing = false;
    t->behind = true;
    t->cursor = 0;
    set_timer(t, first_due(t));
    if (o->outside.target)
        o->outside.target(o->outside.arg, t->name, NULL);
}

void target_fresh(struct target *t, const struct message *m)
{
    struct chain *c = map_get(&t->chains, m->task);
    bool blocked = c && c->due_at != 0;
    struct item *it = item_new(t, m);

    if (!t->paused && !t->behind && !blocked && target_room(t) > 0) {
        chain_add(c ? c : chain_new(t, m->task), it);
        return;
    }
    if (!blocked || t->paused)
        t->behind = true;
    set_aside(t, it, 0, NULL);
}

/* A message of that age is not tried at a target that has been failing for long. */
static bool is_too_old(const struct target *t, const struct message *m)
{
    const struct courier *o = t->outbox;
    int64_t now = courier_now(o);

    return t->paused && now - m->since >= o->config.give_up_ms
           && now - t->failing_since >= min_i64(o->config.give_up_ms, RETRY_AFTER_MAX_MS);
}

/* Takes a message that was set aside. False: there is no room. */
static bool take_aside(struct target *t, const struct message *m)
{
    struct courier *o = t->outbox;
    struct chain *c = map_get(&t->chains, m->task);
    if ((c && c->due_at != 0) || item_of(o, m->seq))
        return true;
    if (c && c->asides > 0 && m->seq > c->aside_first) { /* it waits for the one before it */
        if (c->skipped_first == 0)
            c->skipped_first = m->seq;
        return true;
    }
    if (m->retry_at > courier_now(o) && (!c || list_empty(&c->items))) {
        chain_block(chain_get(t, m->task), m->retry_at, m->seq);
        return true;
    }
    if (is_too_old(t, m)) {
        item_settle(item_new(t, m), SETTLE_DEAD, 0, t->story);
        return true;
    }
    if (t->paused ? t->queued > 0 : target_room(t) == 0)
        return false;
    chain_add(chain_get(t, m->task), item_new(t, m));
    return true;
}

/* The last page was read, and nothing is left to try. */
static void page_was_last(struct target *t)
{
    int64_t due = first_due(t);

    if (t->asides == 0)
        t->behind = false;
    if (!t->paused) {
        set_timer(t, due);
        return;
    }
    if (t->queued + t->batches > 0)
        return;
    if (due == 0 && t->asides == 0) {
        target_works(t); /* no message is left that could tell otherwise */
        return;
    }
    t->probing = false; /* nothing to read until then */
    set_timer(t, due ? due : courier_now(t->outbox) + TROUBLE_MS);
}

void target_page(struct target *t, int64_t from, const struct message *list, size_t count,
                 bool more)
{
    bool last = false;
    size_t n = 0;

    if (t->paused && !t->probing)
        return;
    if (t->cursor != from) { /* an earlier message was set aside meanwhile, and comes first */
        if (!t->paused)
            set_timer(t, first_due(t));
        target_hunger(t);
        return;
    }
    while (n < count && take_aside(t, &list[n]))
        n++;
    if (n > 0)
        t->cursor = list[n - 1].seq;
    last = n == count && !more;
    if (last)
        page_was_last(t);
    else if (!t->paused)
        set_timer(t, first_due(t));
    target_send(t);
    if (!last || t->asides == 0) /* items being set aside trigger the reading themselves */
        target_hunger(t);
    target_forget_if_idle(t);
}

void target_settled(struct target *t, const struct item *it)
{
    if (it->end.kind != SETTLE_ASIDE)
        return;
    struct chain *c = map_get(&t->chains, it->d.subject);
    ASSERT(c && c->asides > 0 && t->asides > 0);
    t->asides--;
    c->asides--;
    if (it->seq <= t->cursor)
        t->cursor = it->seq - 1;
    if (c->asides == 0 && c->skipped_first != 0)
        t->cursor = min_i64(t->cursor, c->skipped_first - 1);
    if (c->asides == 0)
        c->skipped_first = 0;
    if (c->due_at == 0)
        chain_let_go(c);
    target_hunger(t);
    target_forget_if_idle(t);
}

void target_due(struct target *t)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct chain **list = arena_alloc(&a, (t->chains.len + 1) * sizeof(struct chain *));
    int64_t now = courier_now(t->outbox);
    size_t count = 0;
    struct chain *c = NULL;

    for (size_t i = 0; (c = map_next(&t->chains, &i));)
        if (c->due_at != 0 && c->due_at <= now)
            list[count++] = c;
    for (size_t i = 0; i < count; i++) {
        t->cursor = min_i64(t->cursor, list[i]->head_seq - 1);
        t->behind = true;
        chain_let_go(list[i]);
    }
    if (t->paused) {
        t->probing = true;
        t->cursor = 0;
        set_timer(t, now + TROUBLE_MS * 4); /* in case nothing else triggers it */
    } else {
        set_timer(t, first_due(t));
    }
    target_hunger(t);
}

void target_look_again(struct target *t)
{
    t->paused = t->probing = false; /* its state is unknown */
    t->failures = 0;
    empty_target(t);
    t->behind = true;
    t->cursor = 0;
    set_timer(t, 0);
    target_hunger(t);
}

/* ---- results of a batch ---- */

struct verdict {
    bool lives; /* the receiver accepted or refused something */
    bool fails;
    bool away; /* and not because of a message */
    int64_t wished_ms;
    int64_t pause_ms; /* of the target, if it fails; 0: unknown yet */
};

static int64_t pause_of(const struct target *t, struct verdict *v)
{
    if (v->pause_ms == 0)
        v->pause_ms = backoff(t->outbox, t->failures + 1, v->wished_ms);
    return v->pause_ms;
}

/* The first of its chain that was not delivered: the chain waits or, if the message is dead, goes
 * on with the next a little later. */
static void item_failed(struct item *it, struct verdict *v)
{
    struct chain *c = it->chain;
    struct target *t = c->target;
    struct courier *o = t->outbox;
    int64_t now = courier_now(o);
    bool dead = now - it->since >= o->config.give_up_ms;
    int64_t due = now + backoff(o, it->d.tries + 1, it->d.retry_after_ms);

    o->stats.failed++;
    v->fails = true;
    v->wished_ms = max_i64(v->wished_ms, it->d.retry_after_ms);
    if (t->paused) /* another one is tried first, in case this one is the cause */
        due = max_i64(due, now + pause_of(t, v) + TROUBLE_MS);
    (void)snprintf(t->story, sizeof t->story, "%s", it->d.story);
    it->d.tries++;
    chain_take(it, true);
    if (dead)
        item_settle(it, SETTLE_DEAD, 0, it->d.story);
    else
        set_aside(t, it, due, it->d.story);
    chain_block(c, due, it->seq);
}

/* It is sent when the target is, as if it had never been tried. */
static void item_was_away(struct item *it, struct verdict *v)
{
    struct target *t = it->chain->target;

    t->outbox->stats.failed++;
    v->fails = v->away = true;
    v->wished_ms = max_i64(v->wished_ms, it->d.retry_after_ms);
    (void)snprintf(t->story, sizeof t->story, "%s", it->d.story);
    chain_take(it, true);
    set_aside(t, it, 0, it->d.story);
}

/* Whether it failed only because of an earlier one. */
static bool is_behind_one_that_failed(const struct item *it)
{
    const struct chain *c = it->chain;

    return c->due_at != 0 || (c->asides > 0 && c->aside_first < it->seq);
}

static void item_ended(struct item *it, struct verdict *v)
{
    struct chain *c = it->chain;

    if (it->d.end == DELIVERED || (it->d.end == DELIVERY_REFUSED && c->due_at == 0)) {
        v->lives = true;
        it->outbox->stats.delivered += it->d.end == DELIVERED;
        it->outbox->stats.failed += it->d.end != DELIVERED;
        it->d.tries += it->d.end != DELIVERED;
        chain_take(it, true);
        item_settle(it, it->d.end == DELIVERED ? SETTLE_DELETE : SETTLE_DEAD, 0,
                    it->d.end == DELIVERED ? NULL : it->d.story);
    } else if (is_behind_one_that_failed(it)) {
        chain_take(it, true);
        set_aside(c->target, it, 0, NULL);
    } else if (it->d.end == DELIVERY_AWAY) {
        item_was_away(it, v);
    } else {
        item_failed(it, v);
    }
}

/* Continues the chains of a batch, or sets them aside. */
static void chain_after(struct chain *c)
{
    if (c->under_way > 0)
        return;
    if (c->due_at != 0 || c->target->paused)
        (void)chain_set_aside(c);
    if (c->due_at != 0)
        return;
    if (list_empty(&c->items))
        chain_let_go(c);
    else if (!link_is_in(&c->ready))
        list_push(&c->target->ready, &c->ready);
}

static void batch_ended(struct target *t, struct delivery **list, size_t count)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct chain **chains = arena_alloc(&a, (count + 1) * sizeof(struct chain *));
    struct verdict v = {0};
    size_t chain_count = 0;

    for (size_t i = 0; i < count; i++) {
        struct item *it = CONTAINER_OF(list[i], struct item, d);
        struct chain *c = it->chain;
        item_ended(it, &v);
        if (c->under_way == 0)
            chains[chain_count++] = c;
    }
    for (size_t i = 0; i < chain_count; i++)
        chain_after(chains[i]);
    if (v.lives)
        target_works(t);
    if (v.away || (v.fails && (!v.lives || t->blocked > BLOCKED_MAX)))
        target_fails(t, pause_of(t, &v));
    else if (v.fails)
        set_timer(t, first_due(t));
    target_send(t);
    target_hunger(t);
    target_forget_if_idle(t);
}

static void batch_done(void *arg, struct delivery **list, size_t count)
{
    struct batch_out *b = arg;
    struct target *t = b->target;
    struct courier *o = b->outbox;
    (void)count; /* all of it */

    link_remove(&b->link);
    o->under_way--;
    if (t) {
        t->batches--;
        batch_ended(t, list, b->count);
    } else {
        for (size_t i = 0; i < b->count; i++)
            item_free(CONTAINER_OF(b->list[i], struct item, d));
    }
    free(b);
}

void target_orphan_all(struct courier *o)
{
    LIST_FOREACH (link, after, &o->batches) {
        struct batch_out *b = CONTAINER_OF(link, struct batch_out, link);
        b->target = NULL;
        for (size_t i = 0; i < b->count; i++) {
            struct item *it = CONTAINER_OF(b->list[i], struct item, d);
            if (it->chain)
                link_remove(&it->link);
            it->chain = NULL;
            item_forget(it);
        }
    }
}

void target_drop_batches(struct courier *o)
{
    target_orphan_all(o);
    LIST_FOREACH (link, after, &o->batches) {
        struct batch_out *b = CONTAINER_OF(link, struct batch_out, link);
        for (size_t i = 0; i < b->count; i++)
            item_free(CONTAINER_OF(b->list[i], struct item, d));
        link_remove(&b->link);
        free(b);
    }
}

/* ---- sending ---- */

static void chain_send(struct chain *c, struct batch_out *b, size_t max)
{
    LIST_FOREACH (link, after, &c->items) {
        if (b->count == max)
            break;
        struct item *it = CONTAINER_OF(link, struct item, link);
        b->list[b->count++] = &it->d;
        c->under_way++;
        c->target->queued--;
    }
    link_remove(&c->ready);
}

static struct batch_out *batch_make(struct target *t, size_t max)
{
    struct batch_out *b = calloc(1, sizeof *b + max * sizeof b->list[0]);

    ASSERT(b);
    b->outbox = t->outbox;
    b->target = t;
    while (b->count < max && !list_empty(&t->ready))
        chain_send(CONTAINER_OF(list_first(&t->ready), struct chain, ready), b, max);
    list_push(&t->outbox->batches, &b->link);
    t->outbox->under_way++;
    t->batches++;
    return b;
}

/* For a target without a channel. */
static void nobody_takes(struct target *t, const struct error *e)
{
    struct batch_out *b = batch_make(t, 1);

    b->list[0]->end = DELIVERY_AWAY;
    b->list[0]->retry_after_ms = 0;
    (void)snprintf(b->list[0]->story, sizeof b->list[0]->story, "%.199s", e->text);
    link_remove(&b->link);
    t->outbox->under_way--;
    t->batches--;
    struct delivery *one = b->list[0];
    free(b);
    batch_ended(t, &one, 1);
}

void target_send(struct target *t)
{
    struct courier *o = t->outbox;
    struct error e = {0};

    while (!o->stopped && !list_empty(&t->ready)
           && t->batches < (t->paused ? 1 : (size_t)BATCHES_MAX)) {
        struct channel *c = o->outside.channel(o->outside.arg, t->name, &e);
        if (!c) {
            nobody_takes(t, &e); /* it is handled here, and *t may be freed */
            return;
        }
        size_t max = t->paused ? 1 : c->ops->batch_max(c, t->name);
        struct batch_out *b = batch_make(t, max);
        c->ops->send(c, b->list, b->count, batch_done, b);
    }
}
