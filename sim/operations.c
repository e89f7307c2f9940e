/* Operations on many tasks: people who start and stop them, and the rules for their results. See
 * operations.h. */

#include "sim/operations.h"

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/weather.h"
#include "sim/world.h"
#include "json/json.h"

enum { OPERATIONS_MAX = 8, OPEN_STATES = 0x2b /* all but processed and compensated */ };

_Static_assert(OPEN_STATES
                   == (1U << TASK_PENDING | 1U << TASK_PROCESSING | 1U << TASK_COMPENSATING
                       | 1U << TASK_ERROR),
               "what is not over");

/* Counts from the row as last stored. */
struct counts {
    uint64_t matched, done, refused, failed, gone, page;
};

struct wanted {
    char id[16];
    enum ask_kind kind;
    uint32_t states;         /* the filter ... */
    const struct flow *flow; /* ... NULL: any workflow */
    int step;                /* where the tasks are; -1: anywhere */
    uint64_t limit;
    uint64_t revision;
    bool over, stopped;
    struct counts counts;
    bool always[SUBJECTS_ALL];   /* it matched all the time since the start */
    bool recorded[SUBJECTS_ALL]; /* it is, or was, in a page */
    uint32_t done_to[SUBJECTS_ALL];
    uint32_t asked[SUBJECTS_ALL];
};

static struct wanted list[OPERATIONS_MAX];
static uint32_t count;
static bool on;

static uint32_t number_of(const struct subject *t)
{
    return (uint32_t)(t - subjects.list);
}

/* ---- requests ---- */

static bool stands(const struct seen_step *s)
{
    return s->state == STEP_RUNNING || s->state == STEP_UNDOING || s->state == STEP_FAILED
           || (s->state == STEP_WAITING
               && (s->failure_count > 0 || s->begun_at != 0 || s->round > 0));
}

static bool matches(const struct wanted *w, const struct subject *t)
{
    const struct seen *s = &t->seen;

    if (s->revision == 0 || t->deleted || !(w->states & 1U << s->state)
        || (w->flow && t->flow != w->flow))
        return false;
    return w->step < 0 || ((uint32_t)w->step < s->step_count && stands(&s->steps[w->step]));
}

void operations_seen(const struct subject *t)
{
    uint32_t i = number_of(t);

    for (uint32_t k = 0; k < count; k++)
        list[k].always[i] = list[k].always[i] && !t->deleted && matches(&list[k], t);
}

/* ---- people ---- */

static void put_filter(struct buf *b, const struct wanted *w)
{
    json_key(b, "filter");
    json_open(b, '{');
    json_key(b, "state");
    json_open(b, '[');
    for (unsigned i = 0; i <= TASK_ERROR; i++)
        if (w->states & 1U << i)
            json_string(b, slice_of(task_state_text((enum task_state)i)));
    json_close(b, ']');
    if (w->flow) {
        json_key(b, "workflow");
        json_string(b, slice_of(w->flow->name));
    }
    if (w->step >= 0) {
        json_key(b, "step");
        json_string(b, text_of("s%d", w->step));
    }
    json_close(b, '}');
}

/* A node with its own store only learns of it this way. */
static void looks(void *arg, uint64_t n)
{
    bool heard = false;

    NODES_FOREACH (x) {
        if (!node_is_awake(x) || !x->runner)
            continue;
        runner_refresh(x->runner);
        node_turn_later(x);
        heard = true;
    }
    if (!heard)
        later(100, looks, arg, n);
}

static void begin(struct wanted *w, int64_t rate)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct error e = {0};

    (void)snprintf(w->id, sizeof w->id, "o%u", count++);
    json_open(&doc, '{');
    put_filter(&doc, w);
    if (w->kind == ASK_SKIP) {
        json_key(&doc, "arguments");
        json_raw(&doc, text_of("{\"step\":\"s%d\"}", w->step < 0 ? 0 : w->step));
    }
    json_key(&doc, "limit");
    json_number(&doc, (int64_t)w->limit);
    json_key(&doc, "rate");
    json_number(&doc, rate);
    json_key(&doc, "page");
    json_raw(&doc, SLICE("[]"));
    json_close(&doc, '}');
    const struct operation_row row = {.id = slice_of(w->id),
                                      .revision = 1,
                                      .open = true,
                                      .state = SLICE("running"),
                                      .verb = slice_of(ask_kind_text(w->kind)),
                                      .actor = SLICE("operator"),
                                      .reason = SLICE("all of them"),
                                      .started_at = store_now(),
                                      .doc = buf_view(&doc)};
    enum err err = inner->ops->operations->put(inner, &row, NULL, &e);
    ASSERT(err == ERR_OK);
    trace("operation %s begins: %.*s %.*s", w->id, SLICE_ARG(row.verb), SLICE_ARG(row.doc));
    w->revision = 1;
    for (uint32_t i = 0; i < subjects.count; i++)
        w->always[i] = !subjects.list[i].deleted && matches(w, &subjects.list[i]);
    looks(NULL, 0);
}

void operation_wanted(enum ask_kind kind, uint32_t states, int64_t rate)
{
    struct wanted *w = &list[count];

    ASSERT(count < OPERATIONS_MAX);
    *w = (struct wanted){.kind = kind, .states = states, .step = -1};
    begin(w, rate);
}

static void wants_one(void)
{
    static const uint32_t states[] = {1U << TASK_ERROR, 1U << TASK_ERROR, OPEN_STATES, 0x3f};
    struct wanted *w = &list[count];

    *w = (struct wanted){.step = -1, .states = states[below(COUNT_OF(states))]};
    w->kind = chance(500)   ? ASK_RETRY
              : chance(400) ? ASK_SKIP
              : chance(700) ? ASK_UNDO
                            : ASK_CANCEL;
    if (chance(300))
        w->flow = subjects.list[below(subjects.count)].flow;
    if (chance(200))
        w->step = (int)below(3);
    if (chance(200))
        w->limit = 1 + below(10);
    begin(w, chance(500) ? 0 : between(1, 20));
}

/* As the API does. */
static void set_state(struct wanted *w, const char *state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct operation_query q = {.id = slice_of(w->id), .limit = 1};
    struct operation_page page;
    struct error e = {0};

    enum err err = inner->ops->operations->list(inner, &q, &a, &page, &e);
    ASSERT(err == ERR_OK);
    struct operation_row row = page.rows[0];
    if (slice_is(row.state, "done") || slice_is(row.state, state))
        return;
    trace("operation %s is to be %s", w->id, state);
    row.state = slice_of(state);
    row.open = strcmp(state, "running") == 0;
    row.revision++;
    err = inner->ops->operations->put(inner, &row, NULL, &e);
    ASSERT(err == ERR_OK);
    check_operation(&row);
    looks(NULL, 0);
}

void operation_halt(bool halt)
{
    set_state(&list[0], halt ? "stopped" : "running");
}

static void meddles(void *arg, uint64_t mean_ms)
{
    if (world.calm)
        return;
    if (count < OPERATIONS_MAX && (count == 0 || chance(500))) {
        wants_one();
    } else {
        const char *state = chance(500) ? "stopped" : "running";
        set_state(&list[below(count)], state);
    }
    later(between(1, 2 * (int64_t)mean_ms), meddles, arg, mean_ms);
}

void operations_begin(int64_t first_act_ms)
{
    count = 0;
    on = hash_stable(&world.seed, sizeof world.seed) % 3 == 0;
    if (!on)
        return;
    int64_t mean = spread(1000, first_act_ms);
    later(between(1, mean), meddles, NULL, (uint64_t)mean);
}

void operations_begin_scene(bool wanted)
{
    count = 0;
    on = wanted;
}

void operations_calm(void)
{
    for (uint32_t i = 0; i < count; i++)
        set_state(&list[i], "running");
}

bool operations_are_over(void)
{
    for (uint32_t i = 0; i < count; i++)
        if (!list[i].over)
            return false;
    return true;
}

struct operation_told the_operation(void)
{
    const struct wanted *w = &list[0];

    return (struct operation_told){
        .over = count > 0 && w->over,
        .stopped = count > 0 && w->stopped,
        .matched = w->counts.matched,
        .done = w->counts.done,
        .refused = w->counts.refused,
        .failed = w->counts.failed,
        .gone = w->counts.gone,
    };
}

/* ---- nodes ---- */

static int64_t now_of(void *arg)
{
    return node_now(arg);
}

static int64_t steady_of(void *arg)
{
    return node_steady(arg);
}

/* Mostly by the server's rule. */
static size_t room_of(void *arg)
{
    struct node *n = arg;

    check_bulk(n);
    if (chance(100))
        return 0;
    if (chance(300))
        return 1 + below(OPERATION_PAGE_MAX);
    return scheduler_bulk_room(n->scheduler, 1 + below(8));
}

static struct wanted *find(struct slice id)
{
    for (uint32_t i = 0; i < count; i++)
        if (slice_is(id, list[i].id))
            return &list[i];
    return NULL;
}

/* "operation o3: all of them" */
static struct wanted *find_in(struct slice reason)
{
    static const char head[] = "operation ";
    const char *colon = reason.len ? memchr(reason.ptr, ':', reason.len) : NULL;

    if (!colon || reason.len < sizeof head || memcmp(reason.ptr, head, sizeof head - 1) != 0)
        return NULL;
    const char *id = reason.ptr + sizeof head - 1;
    return find((struct slice){id, (size_t)(colon - id)});
}

static void ask_of(void *arg, struct ask *a)
{
    struct node *n = arg;
    struct subject *t = subject_find(a->id);
    struct wanted *w = find_in(a->reason);

    if (!w || !w->recorded[number_of(t)])
        broken("who is asked is on record before", "%s", t->id);
    if (w->asked[number_of(t)]++ > 0)
        covered(COVER_OPERATION_AGAIN);
    check_not_after(n, a);
    t->wanted[a->kind]++;
    check_verb_asked(t);
    t->verbs |= a->kind != ASK_CANCEL;
    t->cancel |= a->kind == ASK_CANCEL;
    if (a->kind == ASK_SKIP)
        for (uint32_t i = 0; i < t->flow->step_count; i++)
            t->skipped[i] |= slice_eq(a->step, text_of("s%u", i));
    trace("operation %s asks of %s: %s %s", w->id, n->me, ask_kind_text(a->kind), t->id);
    scheduler_ask(n->scheduler, a);
    node_turn_later(n);
}

void operations_answered(struct node *n, struct ask *a)
{
    struct subject *t = subject_find(a->id);

    trace("answered of an operation: %s: %s", t->id, err_text(a->outcome));
    check_verb_told(t, a);
    runner_answered(n->runner, a);
    node_turn_later(n);
}

struct runner *operations_runner(struct node *n)
{
    const struct runner_config c = {.holder = text_of("%s", n->me), .shared = nodes.shared};
    const struct runner_outside outside = {
        .arg = n, .now = now_of, .steady = steady_of, .room = room_of, .ask = ask_of};

    if (!on || !node_schedules(n))
        return NULL;
    return runner_new(&c, &n->disk.queue, &n->disk.queue, &n->registry, &outside);
}

/* ---- rules ---- */

bool operations_did(const struct subject *t, const struct audit *a, enum task_state old)
{
    struct wanted *w = find_in(a->reason);
    uint32_t i = number_of(t);

    if (!w)
        return false;
    if (!w->recorded[i])
        broken("an operation does what it wrote down before", "%s to %s", w->id, t->id);
    if (old == TASK_PROCESSED && !(w->states & 1U << TASK_PROCESSED))
        broken("an operation on open tasks does nothing to one that has ended", "%s to %s", w->id,
               t->id);
    subjects.list[i].bulk_at = max_i64(subjects.list[i].bulk_at, a->at);
    if (++w->done_to[i] > 1 && !nodes.shared)
        broken("an operation does it once to each task", "%s to %s", w->id, t->id);
    return true;
}

static uint64_t total_of(const struct counts *c)
{
    return c->done + c->refused + c->failed + c->gone;
}

static struct counts read_counts(const struct json *j)
{
    const struct json *refused = json_get(j, "refused");
    const struct json *page = json_get(j, "page");
    struct counts c = {
        .matched = (uint64_t)json_get_int(j, "matched", 0),
        .done = (uint64_t)json_get_int(j, "done", 0),
        .failed = (uint64_t)json_get_int(j, "failed", 0),
        .gone = (uint64_t)json_get_int(j, "gone", 0),
        .page = page ? page->count : 0,
    };

    for (const struct json *m = refused ? refused->child : NULL; m; m = m->next) {
        int64_t n = 0;
        if (!json_int(m, &n))
            broken("an operation's row can be read", "%.*s", SLICE_ARG(m->raw));
        c.refused += (uint64_t)n;
    }
    return c;
}

static void check_page(struct wanted *w, const struct json *page)
{
    for (const struct json *m = page ? page->child : NULL; m; m = m->next) {
        const struct subject *t = subject_find(m->text);
        uint32_t i = number_of(t);
        if (w->recorded[i])
            broken("an operation comes to each task once", "%s to %s", w->id, t->id);
        if (!matches(w, t))
            broken("an operation takes what matches", "%s: %s is %s", w->id, t->id,
                   task_state_text(t->seen.state));
        w->recorded[i] = true;
    }
}

static void check_done(const struct wanted *w)
{
    uint64_t done = 0;

    for (uint32_t i = 0; i < subjects.count; i++) {
        done += w->done_to[i] > 0;
        if (w->always[i] && !subjects.list[i].deleted && !w->recorded[i]
            && (w->limit == 0 || w->counts.matched < w->limit))
            broken("what matches all the time is not left out", "%s: %s", w->id,
                   subjects.list[i].id);
    }
    bool exact = w->kind == ASK_RETRY || w->kind == ASK_SKIP; /* an undo may be in progress */
    if (exact ? done != w->counts.done : done > w->counts.done)
        broken("an operation tells what it did", "%s: %" PRIu64 ", and it did %" PRIu64, w->id,
               w->counts.done, done);
    if (w->counts.page > 0 || (w->limit && w->counts.matched > w->limit))
        broken("an operation that is done is so", "%s", w->id);
    covered(COVER_OPERATION);
}

void check_operation(const struct operation_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct wanted *w = find(row->id);
    struct json *j = NULL;

    if (json_parse(&a, row->doc, &j, NULL) != ERR_OK)
        broken("an operation's row can be read", "%.*s", SLICE_ARG(row->doc));
    struct counts c = read_counts(j);
    if (row->revision != w->revision + 1)
        broken("a change of an operation raises its revision by one", "%s", w->id);
    if (w->over)
        broken("what is done stays so", "%s", w->id);
    uint64_t settled = total_of(&c) - total_of(&w->counts);
    bool same_page = settled == 0 && c.matched == w->counts.matched && c.page == w->counts.page;
    if (!same_page && settled != w->counts.page)
        broken("each task of a page is counted once", "%s: %" PRIu64 " of %" PRIu64, w->id, settled,
               w->counts.page);
    if (c.matched != total_of(&c) + c.page)
        broken("an operation's counts add up", "%s", w->id);
    if (!same_page)
        check_page(w, json_get(j, "page"));
    w->revision = row->revision;
    w->counts = c;
    w->over = slice_is(row->state, "done");
    w->stopped = slice_is(row->state, "stopped");
    if (row->open != slice_is(row->state, "running"))
        broken("an operation that runs is found", "%s", w->id);
    if (w->over)
        check_done(w);
}

void check_operations_end(void)
{
    for (uint32_t i = 0; i < count; i++)
        if (!list[i].over)
            broken("every operation comes to its end", "%s", list[i].id);
}
