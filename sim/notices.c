/* Signals by SQL: applications, the nodes' readers, and the rules (L1): each notice is decided on
 * once. See notices.h. */

#include "sim/notices.h"

#include <stdlib.h>

#include "intake/family.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/family.h"
#include "sim/flow.h"
#include "sim/world.h"

enum { ROWS_MAX = SUBJECTS_MAX * SEEN_SIGNALS_MAX, LOOK_MAX_MS = 20000 };

/* A row of the table notice, as the application knows it. */
struct inserted {
    struct subject *task;
    uint32_t number; /* of the signal, which is its key */
    bool again;      /* of a transaction whose outcome was unclear: the key is in use */
    bool of_family;  /* no signal: a task of its family tells it something */
    enum { WAITS, DECIDED, REFUSED } stands;
};

static struct {
    bool on;
    struct prng own;                /* keeps other runs unaffected */
    struct inserted list[ROWS_MAX]; /* by seq, from 1 */
    uint32_t count, waiting;
    size_t room;
} sql;

static bool draw(uint32_t of_1000)
{
    return prng_below(&sql.own, 1000) < of_1000;
}

static void must(bool ok, const char *rule, const struct inserted *i, const char *what)
{
    if (ok)
        return;
    describe(i->task);
    broken(rule, "notice %d of %s, signal %u: %s", (int)(i - sql.list) + 1, i->task->id, i->number,
           what);
}

/* ---- the rules ---- */

static bool has_signal(const struct inserted *i)
{
    for (uint32_t k = 0; k < i->task->seen.signal_count; k++)
        if (i->task->seen.signals[k].key == i->number)
            return true;
    return false;
}

static void check_of_family(struct inserted *i, int now)
{
    must(i->stands == WAITS || now == (int)i->stands, "a word is decided on once", i,
         "it is decided on again");
    must(now != REFUSED, "no word within a family is refused", i, "refused");
    if (i->stands == WAITS && now == DECIDED)
        i->task->words_waiting--;
    i->stands = now == WAITS ? WAITS : DECIDED;
}

static void check_one(struct inserted *i, int now)
{
    if (i->of_family) {
        check_of_family(i, now);
        return;
    }
    bool there = has_signal(i);

    must(i->stands == WAITS || now == (int)i->stands, "a notice is decided on once", i,
         "it is decided on again");
    bool again = i->again || i->task->signals[i->number].both;
    if (now == WAITS)
        must(!there || again, "a notice goes with the change that is decided on it", i,
             "the task has its signal, and it waits");
    if (now == DECIDED)
        must(there, "a notice is decided on", i, "it is gone, and the task has no such signal");
    if (now == REFUSED)
        must(!there || again, "what is refused is not taken", i, "refused");
    if (i->stands == WAITS && now == DECIDED)
        covered(i->again ? COVER_NOTICE_AGAIN : COVER_NOTICE_DECIDED);
    if (i->stands == WAITS && now == REFUSED)
        covered(COVER_NOTICE_REFUSED);
    i->stands = now == WAITS ? WAITS : now == DECIDED ? DECIDED : REFUSED;
}

static void mark(int *now, bool refused, struct arena *a)
{
    struct notice_read n = {.limit = ROWS_MAX};
    struct error e = {0};

    enum err err = refused ? inner->ops->notices->refused(inner, &n, a, &e)
                           : inner->ops->notices->read(inner, &n, a, &e);
    ASSERT(err == ERR_OK);
    for (size_t k = 0; k < n.count; k++)
        now[n.rows[k].seq - 1] = refused ? REFUSED : WAITS;
    if (!refused)
        sql.waiting = (uint32_t)n.count;
}

/* What a commit inserted. All are read: those of a task of which an earlier one waits come with
 * that one only. */
static void meet_words(struct arena *a)
{
    struct notice_read n = {.limit = ROWS_MAX};
    struct error e = {0};

    enum err err = inner->ops->notices->read(inner, &n, a, &e);
    ASSERT(err == ERR_OK);
    for (size_t k = 0; k < n.count; k++) {
        struct subject *t = subject_find(n.rows[k].task);
        if (n.rows[k].seq <= sql.count)
            continue;
        ASSERT(n.rows[k].seq == sql.count + 1);
        ASSERT(sql.count < ROWS_MAX);
        sql.list[sql.count++] = (struct inserted){.task = t, .of_family = true};
        t->words_waiting++;
        check_word(t, &n.rows[k]);
    }
}

void sql_signals_changed(void)
{
    CLEANUP(arena_fini) struct arena a = {0};

    if (families_are_on())
        meet_words(&a);
    if (!sql.on || sql.count == 0)
        return;
    int *now = arena_alloc(&a, sql.count * sizeof *now);
    for (uint32_t i = 0; i < sql.count; i++)
        now[i] = DECIDED;
    mark(now, false, &a);
    mark(now, true, &a);
    for (uint32_t i = 0; i < sql.count; i++)
        check_one(&sql.list[i], now[i]);
}

/* The first notice of a task that has no room for more signals of that name stays until a person
 * drops some, and those behind it stay with it. */
static bool may_stay(const struct inserted *i)
{
    const struct inserted *first = sql.list;
    uint32_t kept = 0;

    while (first->task != i->task || first->stands != WAITS)
        first++;
    for (uint32_t k = 0; k < i->task->seen.signal_count; k++)
        kept += i->task->seen.signals[k].state == SIGNAL_KEPT
                && i->task->seen.signals[k].name == i->task->signals[first->number].name;
    return kept >= SIGNALS_KEPT_MAX;
}

bool sql_signals_are_decided(void)
{
    for (uint32_t i = 0; i < sql.count && sql.waiting > 0; i++)
        if (sql.list[i].stands == WAITS && !may_stay(&sql.list[i]))
            return false;
    return true;
}

void check_sql_signals_end(void)
{
    sql_signals_changed();
    for (uint32_t i = 0; i < sql.count; i++)
        must(sql.list[i].stands != WAITS || may_stay(&sql.list[i]), "notices are dealt with",
             &sql.list[i], "it waits");
}

/* ---- applications ---- */

static void tells(void)
{
    NODES_FOREACH (n) {
        if (!node_is_awake(n) || !n->notices || nodes.shared)
            continue;
        notices_wake(n->notices);
        node_turn_later(n);
    }
}

static void commits(void *arg, uint64_t number)
{
    struct subject *t = arg;
    struct error e = {0};

    if (store_is_away()) {
        later(1 + prng_below(&sql.own, 500), commits, arg, number);
        return;
    }
    t->cancel |= t->signals[number].name == 'u';
    for (int again = 0; again < 1 + draw(100) && sql.count < ROWS_MAX; again++) {
        const struct notice_row row = {.task = slice_of(t->id),
                                       .sender = SLICE("sql"),
                                       .kind = NOTICE_SIGNAL,
                                       .at = store_now(),
                                       .body = text_of("%" PRIu64, number)};
        sql.list[sql.count++] =
            (struct inserted){.task = t, .number = (uint32_t)number, .again = again > 0};
        if (again)
            sql.list[sql.count - 2].again = true; /* whichever is decided on first */
        enum err err = inner->ops->notices->put(inner, &row, 1, &e);
        ASSERT(err == ERR_OK);
        trace("an application inserts signal %" PRIu64 " to %s", number, t->id);
    }
    sql_signals_changed();
    if (draw(500))
        tells(); /* otherwise the next look finds it, perhaps with others */
}

bool sql_signals_sends(struct subject *t, uint32_t number, int64_t delay)
{
    if (!sql.on || draw(500))
        return false;
    later(delay, commits, t, number);
    return true;
}

/* ---- the node's part ---- */

static int64_t clock_now(void *arg)
{
    return node_now(arg);
}

static size_t room(void *arg)
{
    (void)arg;
    return sql.room;
}

static void read_notice(void *arg, struct notice_item *it)
{
    const struct subject *t = subject_find(it->row->task);
    uint64_t number = family_tells(it->row) ? 0 : strtoull(it->row->body.ptr, NULL, 10);
    const struct sent_signal *s = &t->signals[number];
    struct slice data = s->ok ? SLICE("{\"ok\":true}") : SLICE("{\"ok\":false}");
    (void)arg;

    if (family_tells(it->row)) {
        family_read_notice(it);
        return;
    }
    it->ask = (struct ask){.kind = ASK_SIGNAL,
                           .signal = {.key = text_of("k%u", (unsigned)number),
                                      .name = text_of("%c", s->name),
                                      .data = {.json = data},
                                      .content = data}};
}

static void asks(void *arg, struct notice_item *it)
{
    struct node *n = arg;

    if (n->dead)
        return;
    it->ask.user = it;
    trace("%s takes notice %" PRId64 ", to %.*s", n->me, it->row->seq, SLICE_ARG(it->ask.id));
    scheduler_ask(n->scheduler, &it->ask);
}

bool sql_signals_asked(const struct ask *a)
{
    return a->notice != 0;
}

void sql_signals_answered(struct node *n, struct ask *a)
{
    struct notice_item *it = a->user;
    const struct inserted *i = &sql.list[a->notice - 1];

    trace("answered to notice %" PRId64 ": %s", a->notice, err_text(a->outcome));
    if (a->outcome == ERR_OK && !a->existed)
        must(i->stands == DECIDED, "a notice goes with the change that is decided on it", i,
             "it was accepted");
    notices_answered(it);
    node_turn_later(n);
}

static void refused(void *arg, const struct notice_item *it)
{
    const struct node *n = arg;

    trace("%s has refused notice %" PRId64, n->me, it->row->seq);
    must(!it->row->has_task || it->ask.outcome == ERR_CONFLICT || it->ask.outcome == ERR_TOO_BIG,
         "only its task refuses a notice", &sql.list[it->row->seq - 1], err_text(it->ask.outcome));
}

static void failed(void *arg, const struct error *e)
{
    const struct node *n = arg;

    trace("%s cannot read notices: %s", n->me, e->text);
}

struct notices *sql_signals_reader(struct node *n)
{
    const struct notices_config c = {.store = &n->disk.queue,
                                     .clock = {clock_now, n},
                                     .me = slice_of(n->me),
                                     .shared = nodes.shared,
                                     .page_max = draw(500) ? 1 + prng_below(&sql.own, 3) : 0,
                                     .arg = n,
                                     .room = room,
                                     .read = read_notice,
                                     .ask = asks,
                                     .refused = refused,
                                     .failed = failed};

    if (!sql.on)
        return NULL;
    struct notices *in = notices_new(&c);
    if (!(n->roles & NODE_SCHEDULER))
        notices_drain(in);
    return in;
}

/* A node that has the store for itself looks for them while it looks for submissions. */
static void looks(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    tells();
    later(1 + prng_below(&sql.own, LOOK_MAX_MS), looks, NULL, 0);
}

void sql_signals_begin(bool may, bool families)
{
    sql.own = (struct prng){.state = world.seed ^ UINT64_C(0x6e6f746963650001)};
    sql.on = (may && flows_signal() && prng_below(&sql.own, 2) == 0) || families;
    sql.count = sql.waiting = 0;
    sql.room = prng_below(&sql.own, 4) ? 1000 : 1 + prng_below(&sql.own, 4);
    if (sql.on && !nodes.shared)
        later(LOOK_MAX_MS, looks, NULL, 0);
}
