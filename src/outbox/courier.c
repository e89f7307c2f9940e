/* The courier (courier.h): reads messages from the store while this node leads, and stores what
 * became of them. The chains, pauses and retries of each target are in target.c. */
#include "outbox/internal.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/codec/envelope.h"

struct settle_job {
    struct store_job job;
    struct courier *outbox;
    struct settlement *list;
    struct item **items; /* of some of them */
    size_t count, item_count;
    int64_t *delivered; /* and the numbers of the others */
    size_t delivered_count;
    struct fence fence;
    struct arena arena;
    enum err err;
    struct error error;
};

enum read_kind { READ_FRESH, READ_TARGET, READ_TARGETS };

struct read_job {
    struct store_job job;
    struct courier *outbox;
    enum read_kind kind;
    struct fence fence; /* of the lease, at the time of the request */
    struct outbox_read read;
    struct slice after;
    struct outbox_target *targets;
    size_t target_count;
    struct arena arena;
    enum err err;
    struct error error;
};

int64_t courier_now(const struct courier *o)
{
    return o->outside.now(o->outside.arg);
}

struct courier *courier_new(const struct courier_config *c, struct store_queue *store,
                            const struct courier_outside *outside)
{
    struct courier *o = calloc(1, sizeof *o);

    ASSERT(o);
    o->config = *c;
    o->config.give_up_ms = c->give_up_ms ? c->give_up_ms : GIVE_UP_MS;
    o->config.backoff_ms = c->backoff_ms ? c->backoff_ms : BACKOFF_MS;
    o->config.backoff_max_ms = c->backoff_max_ms ? c->backoff_max_ms : BACKOFF_MAX_MS;
    o->config.items_max = c->items_max ? c->items_max : ENTRIES_MAX;
    o->store = store;
    o->outside = *outside;
    o->random.state = c->seed;
    list_init(&o->hungry);
    list_init(&o->settling);
    list_init(&o->batches);
    return o;
}

/* ---- messages in memory ---- */

static struct slice keep(char **at, struct slice s)
{
    if (!s.ptr)
        return SLICE_NONE;
    struct slice kept = {*at, s.len};
    memcpy(*at, s.ptr, s.len);
    *at += s.len;
    return kept;
}

static void list_it(struct item *it)
{
    if (!it->listed)
        map_put(&it->outbox->by_seq, it->key, it);
    it->listed = true;
}

void shelf_close(struct target *t)
{
    struct shelf *s = t->shelf;

    t->shelf = NULL;
    if (!s)
        return;
    s->open = false;
    if (s->items > 0)
        return;
    t->outbox->bytes -= s->size;
    free(s);
}

/* Blocks double in size, so a target with few messages uses little memory. */
static struct shelf *shelf_for(struct target *t, size_t bytes)
{
    struct shelf *s = t->shelf;

    if (s && bytes <= s->size - s->used)
        return s;
    size_t size = s ? s->size * 2 : SHELF_FIRST;
    size = size < SHELF_MAX ? size : SHELF_MAX;
    size = size < sizeof *s + bytes ? sizeof *s + bytes : size;
    shelf_close(t);
    s = malloc(size);
    ASSERT(s);
    *s = (struct shelf){.used = sizeof *s, .size = size, .open = true};
    t->outbox->bytes += size;
    t->shelf = s;
    return s;
}

static struct item *shelf_take(struct target *t, size_t bytes)
{
    const size_t align = _Alignof(max_align_t);
    size_t size = (bytes + align - 1) / align * align;
    struct shelf *s = shelf_for(t, size);
    struct item *it = (void *)((char *)s + s->used);

    s->used += size;
    s->items++;
    memset(it, 0, sizeof *it);
    it->shelf = s;
    return it;
}

static void shelf_return(struct courier *o, struct shelf *s)
{
    if (--s->items > 0)
        return;
    if (s->open) {
        s->used = sizeof *s; /* it is in the processor's cache */
        return;
    }
    o->bytes -= s->size;
    free(s);
}

/* Runs on the channel's thread, to save time on the loop. */
static void write_event(const struct delivery *d, struct buf *ret)
{
    const struct item *it = (const void *)d;
    size_t name = d->subject.len + 1; /* the id is TASK/NAME */
    const struct message m = {
        .task = d->subject,
        .name = {d->id.ptr + name, d->id.len - name},
        .source = it->source,
        .data = it->data,
        .sequence = it->sequence,
        .created_at = d->created_at,
    };

    envelope_write(ret, &m);
}

struct item *item_new(struct target *t, const struct message *m)
{
    static const struct slice type = {"intact.task.", 12};
    struct courier *o = t->outbox;
    struct slice event = envelope_event(m->name);
    struct item *it =
        shelf_take(t, sizeof *it + m->task.len + 1 + m->name.len + type.len + event.len
                          + m->target.len + m->body.len + m->source.len + m->data.len);
    char *at = (char *)(it + 1);

    it->outbox = o;
    it->seq = m->seq;
    it->since = m->since;
    it->aside = m->aside;
    it->key = (struct slice){(const char *)&it->seq, sizeof it->seq};
    it->d.subject = it->d.id = keep(&at, m->task);
    (void)keep(&at, SLICE("/"));
    (void)keep(&at, m->name);
    it->d.id.len = (size_t)(at - it->d.id.ptr);
    it->d.type = keep(&at, type);
    (void)keep(&at, event);
    it->d.type.len += event.len;
    it->d.target = keep(&at, m->target);
    if (m->body.ptr) {
        it->d.body = keep(&at, m->body);
    } else {
        ASSERT(!m->trace.ptr);
        it->source = keep(&at, m->source);
        it->data = keep(&at, m->data);
        it->sequence = m->sequence;
        it->d.write = write_event;
        it->d.size = envelope_size(m);
    }
    it->d.created_at = m->created_at;
    it->d.tries = m->tries;
    o->item_count++;
    /* without other writers, a message that was never set aside is read only once */
    if (o->config.shared || it->aside)
        list_it(it);
    return it;
}

struct item *item_of(const struct courier *o, int64_t seq)
{
    return map_get(&o->by_seq, (struct slice){(const char *)&seq, sizeof seq});
}

void item_forget(struct item *it)
{
    if (!it->forgotten && it->listed)
        (void)map_remove(&it->outbox->by_seq, it->key);
    it->forgotten = true;
}

void item_free(struct item *it)
{
    struct courier *o = it->outbox;

    item_forget(it);
    o->item_count--;
    shelf_return(o, it->shelf);
}

/* Most messages are delivered: only the number is needed, and the memory is reused at once. */
static void note_delivered(struct courier *o, int64_t seq)
{
    if (o->delivered_count == o->delivered_cap) {
        o->delivered_cap = o->delivered_cap ? o->delivered_cap * 2 : 256;
        o->delivered = reallocarray(o->delivered, o->delivered_cap, sizeof *o->delivered);
        ASSERT(o->delivered);
    }
    o->delivered[o->delivered_count++] = seq;
    if (o->settle_at == 0)
        o->settle_at = courier_now(o) + SETTLE_MS;
}

void item_settle(struct item *it, enum settle_kind kind, int64_t retry_at, const char *story)
{
    struct courier *o = it->outbox;

    ASSERT(!it->chain);
    if (kind == SETTLE_DELETE && !it->listed) {
        note_delivered(o, it->seq);
        item_free(it);
        return;
    }
    list_it(it);
    if (story && story != it->d.story)
        (void)snprintf(it->d.story, sizeof it->d.story, "%s", story);
    it->end = (struct settlement){.seq = it->seq,
                                  .aside = it->aside,
                                  .kind = kind,
                                  .tries = it->d.tries,
                                  .retry_at = retry_at,
                                  .story = story ? slice_of(it->d.story) : SLICE_NONE};
    o->stats.dead += kind == SETTLE_DEAD;
    o->stats.set_aside += kind == SETTLE_ASIDE && !it->aside;
    if (kind == SETTLE_DEAD && o->outside.dead)
        o->outside.dead(o->outside.arg, &it->d);
    list_push(&o->settling, &it->link);
    o->settling_count++;
    if (o->settle_at == 0)
        o->settle_at = courier_now(o) + SETTLE_MS;
}

/* ---- leadership ---- */

/* A new leader starts from the store. */
static void forget_all(struct courier *o)
{
    target_orphan_all(o);
    for (struct link *first = NULL; (first = list_pop(&o->settling));)
        item_free(CONTAINER_OF(first, struct item, link));
    o->settling_count = o->delivered_count = 0;
    o->settle_at = 0;
    void **all = map_sorted(&o->targets);
    for (size_t i = 0; all[i]; i++)
        target_free(all[i]);
    free(all);
    arena_fini(&o->load_arena);
    o->loaded = SLICE_NONE;
    o->loading = o->news = o->catching_up = false;
    o->seen_seq = 0;
}

static void load(struct courier *o)
{
    arena_fini(&o->load_arena);
    o->loaded = SLICE_NONE;
    o->loading = true;
}

static void look_who_leads(struct courier *o)
{
    struct fence fence = {0};
    bool leads = o->outside.leads(o->outside.arg, &fence);

    if (o->leading && (!leads || fence.epoch != o->fence.epoch)) {
        if (o->settle_job || o->read_job)
            return; /* their contents are needed until the jobs complete */
        forget_all(o);
        o->leading = false;
    }
    if (o->leading || !leads || o->stopped || o->read_job || o->settle_job)
        return;
    o->leading = true;
    (void)snprintf(o->lease, sizeof o->lease, "%.*s", SLICE_ARG(fence.lease));
    o->fence = (struct fence){slice_of(o->lease), fence.epoch};
    o->news = o->catching_up = true;
    o->news_at = 0;
    load(o);
}

/* False if the store or this node knows that another node leads. */
static bool leads_still(const struct courier *o)
{
    struct fence fence = {0};

    return o->leading && o->outside.leads(o->outside.arg, &fence) && fence.epoch == o->fence.epoch;
}

/* ---- settling ---- */

static int seq_order(const void *a, const void *b)
{
    const struct settlement *x = a;
    const struct settlement *y = b;

    return (x->seq > y->seq) - (x->seq < y->seq);
}

static void settle_run(struct store_job *sj, struct store *store)
{
    struct settle_job *j = CONTAINER_OF(sj, struct settle_job, job);

    j->err = store->ops->outbox->settle(store, j->list, j->count, &j->fence, &j->error);
}

/* After a failure they are settled again, in the original order. */
static void settle_again(struct settle_job *j)
{
    struct courier *o = j->outbox;

    for (size_t i = j->item_count; i-- > 0;)
        list_push_front(&o->settling, &j->items[i]->link);
    o->settling_count += j->item_count;
    for (size_t i = 0; i < j->delivered_count; i++)
        note_delivered(o, j->delivered[i]);
    o->retry_at = o->settle_at = courier_now(o) + TROUBLE_MS;
}

static void settle_done(struct store_job *sj)
{
    struct settle_job *j = CONTAINER_OF(sj, struct settle_job, job);
    struct courier *o = j->outbox;
    struct arena a = j->arena; /* moved out: *j is in it */

    o->settle_job = NULL;
    if (j->err != ERR_OK) {
        settle_again(j);
    } else {
        for (size_t i = 0; i < j->item_count; i++) {
            struct item *it = j->items[i];
            struct target *t = map_get(&o->targets, it->d.target);
            if (t)
                target_settled(t, it);
            item_free(it);
        }
    }
    arena_fini(&a);
}

static void fill_items(struct courier *o, struct settle_job *j, struct arena *a)
{
    size_t most = o->settling_count < SETTLE_MAX ? o->settling_count : SETTLE_MAX;

    j->items = arena_alloc(a, (most + 1) * sizeof(struct item *));
    while (j->item_count < most) {
        struct link *first = list_first(&o->settling);
        ASSERT(first);
        struct item *it = CONTAINER_OF(first, struct item, link);
        link_remove(&it->link);
        j->items[j->item_count++] = it;
        j->list[j->count++] = it->end;
    }
    o->settling_count -= most;
}

static void fill_delivered(struct courier *o, struct settle_job *j, struct arena *a)
{
    size_t count = o->delivered_count;

    j->delivered = arena_alloc(a, (count + 1) * sizeof *j->delivered);
    for (size_t i = 0; i < count; i++) {
        j->delivered[i] = o->delivered[i];
        j->list[j->count++] = (struct settlement){.seq = o->delivered[i], .kind = SETTLE_DELETE};
    }
    j->delivered_count = count;
    o->delivered_count = 0;
}

/* While more messages follow, results are written together. */
static int64_t settle_due(const struct courier *o)
{
    bool more = o->item_count > o->settling_count || o->news || o->read_job;

    return more ? o->settle_at : min_i64(o->settle_at, o->told_at + SETTLE_IDLE_MS);
}

static void settle(struct courier *o, int64_t now)
{
    size_t count = o->settling_count + o->delivered_count;
    struct arena a = {0};

    if (o->settle_job || count == 0 || now < o->retry_at
        || (count < SETTLE_AT && now < settle_due(o) && !o->stopped))
        return;
    struct settle_job *j = arena_alloc(&a, sizeof *j);
    j->list = arena_alloc(&a, count * sizeof *j->list);
    fill_items(o, j, &a);
    fill_delivered(o, j, &a);
    o->settle_at = o->settling_count ? now : 0;
    qsort(j->list, j->count, sizeof *j->list, seq_order);
    j->outbox = o;
    j->fence = o->fence;
    j->arena = a;
    j->job = (struct store_job){.run = settle_run, .done = settle_done};
    o->settle_job = j;
    o->store->submit(o->store, &j->job);
}

/* ---- reading ---- */

static void read_run(struct store_job *sj, struct store *store)
{
    struct read_job *j = CONTAINER_OF(sj, struct read_job, job);
    struct target_query q = {.after = j->after, .limit = TARGETS_PAGE, .most = 1};

    if (j->kind == READ_TARGETS)
        j->err = store->ops->outbox->targets(store, &q, &j->arena, &j->targets, &j->target_count,
                                             &j->error);
    else
        j->err = store->ops->outbox->read(store, &j->read, &j->arena, &j->error);
}

static void land_targets(struct courier *o, const struct read_job *j)
{
    for (size_t i = 0; i < j->target_count; i++) {
        struct target *t = target_get(o, j->targets[i].target);
        t->behind = true;
        t->cursor = 0;
        target_hunger(t);
    }
    o->loading = j->target_count == TARGETS_PAGE;
    arena_fini(&o->load_arena);
    o->loaded = o->loading ? arena_copy(&o->load_arena, j->targets[j->target_count - 1].target)
                           : SLICE_NONE;
}

/* All messages of a page are added before any is sent, so that they are batched. */
static void send_all(struct courier *o, const struct message *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && slice_eq(list[i].target, list[i - 1].target))
            continue;
        struct target *t = map_get(&o->targets, list[i].target);
        if (t)
            target_send(t);
    }
}

static void land_fresh(struct courier *o, const struct read_job *j)
{
    o->news |= j->read.more;
    o->catching_up &= j->read.more;
    for (size_t i = 0; i < j->read.count; i++) {
        const struct message *m = &j->read.messages[i];
        o->seen_seq = max_i64(o->seen_seq, m->seq);
        o->told_at = courier_now(o);
        if (!item_of(o, m->seq))
            target_fresh(target_get(o, m->target), m);
    }
    send_all(o, j->read.messages, j->read.count);
}

static void land(struct courier *o, const struct read_job *j)
{
    if (j->kind == READ_TARGETS) {
        land_targets(o, j);
    } else if (j->kind == READ_FRESH) {
        land_fresh(o, j);
    } else {
        struct target *t = map_get(&o->targets, j->read.target);
        if (t)
            target_page(t, j->read.after_seq, j->read.messages, j->read.count, j->read.more);
    }
}

static void read_failed(struct courier *o, const struct read_job *j)
{
    struct target *t = j->kind == READ_TARGET ? map_get(&o->targets, j->read.target) : NULL;

    o->retry_at = courier_now(o) + TROUBLE_MS;
    o->news |= j->kind == READ_FRESH; /* and it still catches up, if it did */
    if (t)
        target_hunger(t);
}

static void read_done(struct store_job *sj)
{
    struct read_job *j = CONTAINER_OF(sj, struct read_job, job);
    struct courier *o = j->outbox;
    struct arena a = j->arena; /* moved out: *j is in it */

    o->read_job = NULL;
    if (j->err != ERR_OK)
        read_failed(o, j);
    else if (leads_still(o) && j->fence.epoch == o->fence.epoch)
        land(o, j);
    arena_fini(&a);
}

static int number_order(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* Excludes messages in memory from the reading. Without other writers, nothing older can appear. */
static void fill_known(const struct courier *o, struct read_job *j)
{
    const struct item *it = NULL;

    j->read.after_seq = o->seen_seq;
    if (!o->config.shared)
        return;
    int64_t *known = arena_alloc(&j->arena, (o->by_seq.len + 1) * sizeof *known);
    for (size_t i = 0; (it = map_next(&o->by_seq, &i));)
        if (!it->aside)
            known[j->read.known_count++] = it->seq;
    qsort(known, j->read.known_count, sizeof *known, number_order);
    j->read.known = known;
}

static bool has_room(const struct courier *o)
{
    return o->item_count < o->config.items_max * 2 && o->bytes < (size_t)BYTES_MAX * 2;
}

static bool fill_reading(struct courier *o, struct read_job *j, int64_t now)
{
    if (o->loading) {
        j->kind = READ_TARGETS;
        j->after = o->loaded.ptr ? arena_copy(&j->arena, o->loaded) : SLICE_NONE;
        return true;
    }
    struct link *first = list_first(&o->hungry);
    bool turn = o->fresh_was_last || !o->news || now < o->news_at; /* alternates between the two */
    j->read.bytes_max = PAGE_BYTES;
    j->read.fence = o->config.shared ? &j->fence : NULL; /* otherwise no other node can take over */
    if (first && !o->catching_up && (turn || !has_room(o))) {
        const struct target *t = CONTAINER_OF(first, struct target, hungry);
        link_remove(first);
        j->kind = READ_TARGET;
        j->read.target = arena_copy(&j->arena, t->name);
        j->read.after_seq = t->cursor;
        j->read.limit = TARGET_PAGE;
        o->fresh_was_last = false;
        return true;
    }
    if (!o->news || now < o->news_at || !has_room(o))
        return false;
    j->kind = READ_FRESH;
    j->read.limit = PAGE_MAX;
    fill_known(o, j);
    o->news = false;
    o->news_at = now + READ_GAP_MS;
    o->fresh_was_last = true;
    return true;
}

static void read(struct courier *o, int64_t now)
{
    struct arena a = {0};

    if (o->read_job || o->stopped || now < o->retry_at
        || (!o->loading && !o->news && list_empty(&o->hungry)))
        return;
    struct read_job *j = arena_alloc(&a, sizeof *j);
    j->arena = a;
    j->outbox = o;
    j->fence = o->fence;
    if (!fill_reading(o, j, now)) {
        a = j->arena;
        arena_fini(&a);
        return;
    }
    j->job = (struct store_job){.run = read_run, .done = read_done};
    o->read_job = j;
    o->store->submit(o->store, &j->job);
}

/* ---- turns ---- */

static void look_at_timers(struct courier *o, int64_t now)
{
    struct heap_node *first = NULL;

    while ((first = heap_min(&o->timers)) && first->key <= now) {
        heap_remove(&o->timers, first);
        target_due(CONTAINER_OF(first, struct target, timer));
    }
}

static int64_t earlier(int64_t at, int64_t other)
{
    return at == 0 || (other != 0 && other < at) ? other : at;
}

static int64_t next_at(const struct courier *o)
{
    const struct heap_node *first = heap_min(&o->timers);
    int64_t at = first ? first->key : 0;
    bool reads =
        !o->read_job && !o->stopped && (o->loading || (!o->catching_up && !list_empty(&o->hungry)));

    if (!o->settle_job && o->settling_count + o->delivered_count > 0)
        at = earlier(at, max_i64(settle_due(o), o->retry_at));
    if (!o->read_job && !o->stopped && o->news && has_room(o))
        at = earlier(at, max_i64(o->news_at, o->retry_at));
    if (reads)
        at = earlier(at, o->retry_at);
    return at;
}

int64_t courier_turn(struct courier *o)
{
    int64_t now = courier_now(o);

    look_who_leads(o);
    if (!leads_still(o))
        return 0; /* a later turn, for any reason, detects that it leads */
    look_at_timers(o, now);
    settle(o, now);
    read(o, now);
    return next_at(o);
}

void courier_told(struct courier *o)
{
    o->news |= o->leading;
}

/* Whether everything stored before it is known. Unknowable if others write. */
static bool is_next(const struct courier *o, const struct message *m)
{
    return !o->config.shared && m->seq == o->seen_seq + 1 && !o->news && !o->catching_up
           && !o->loading && !(o->read_job && o->read_job->kind == READ_FRESH) && has_room(o);
}

void courier_stored(struct courier *o, const struct message *list, size_t count)
{
    struct target *t = NULL; /* of the previous message */
    int64_t now = courier_now(o);
    size_t n = 0;

    if (o->stopped || !leads_still(o))
        return; /* the next leader finds them in the store */
    for (; n < count && is_next(o, &list[n]); n++) {
        o->seen_seq = list[n].seq;
        o->told_at = now;
        if (!t || !slice_eq(t->name, list[n].target))
            t = target_get(o, list[n].target);
        target_fresh(t, &list[n]);
    }
    o->news |= n < count;
    send_all(o, list, n);
}

void courier_by_hand(struct courier *o)
{
    if (!leads_still(o))
        return;
    void **all = map_sorted(&o->targets);
    for (size_t i = 0; all[i]; i++)
        target_look_again(all[i]);
    free(all);
    load(o);
}

void courier_back(struct courier *o, const struct channel *c)
{
    struct error e;

    if (!leads_still(o))
        return;
    void **all = map_sorted(&o->targets);
    for (size_t i = 0; all[i]; i++) {
        struct target *t = all[i];
        if (t->paused && o->outside.channel(o->outside.arg, t->name, &e) == c)
            target_look_again(t);
    }
    free(all);
}

void courier_stop(struct courier *o)
{
    o->stopped = true;
}

bool courier_is_drained(const struct courier *o)
{
    return !o->leading
           || (o->stopped && !courier_is_busy(o) && o->settling_count + o->delivered_count == 0
               && o->under_way == 0);
}

bool courier_is_busy(const struct courier *o)
{
    return o->settle_job || o->read_job;
}

void courier_each_delivery(const struct courier *o, void (*take)(void *arg, struct slice target),
                           void *arg)
{
    const struct target *t = NULL;

    for (size_t i = 0; (t = map_next(&o->targets, &i));)
        if (t->batches > 0)
            take(arg, t->name);
}

void courier_stats(const struct courier *o, struct courier_stats *ret)
{
    const struct target *t = NULL;

    *ret = o->stats;
    ret->items = o->item_count;
    ret->targets = o->targets.len;
    for (size_t i = 0; (t = map_next(&o->targets, &i));) {
        ret->paused += t->paused;
        ret->blocked += t->blocked;
    }
}

int64_t courier_paused_until(const struct courier *o, struct slice target, char *story)
{
    const struct target *t = map_get(&o->targets, target);

    if (!t || !t->paused)
        return 0;
    if (story)
        (void)snprintf(story, sizeof t->story, "%s", t->story);
    return t->timer.pos ? t->timer.key : courier_now(o);
}

void courier_free(struct courier *o)
{
    if (!o)
        return;
    ASSERT(!courier_is_busy(o));
    target_drop_batches(o);
    forget_all(o);
    heap_fini(&o->timers);
    map_fini(&o->targets);
    map_fini(&o->by_seq);
    free(o->delivered);
    free(o);
}
