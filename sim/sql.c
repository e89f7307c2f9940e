/* Applications that insert submissions by SQL, operators of refused ones, the nodes' intake, and
 * the rules for all of them (sql.h). sql_part.c is a node's part, disk_sql.c its way to the
 * store; notices.c is the same for signals. */

#include "sim/sql.h"

#include <stdlib.h>

#include "intake/family.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/family.h"
#include "sim/receivers.h"
#include "sim/schedules.h"
#include "sim/world.h"

enum {
    PUTS_MAX = 4 * SUBJECTS_MAX + SUBJECTS_ALL,
    ONE_RUN_OF = 3,
    LOOK_MS = 1000,
    VERB_MS = 40000
};

/* A row of the table submission, as the application knows it. */
struct put {
    struct subject *task; /* NULL: not a valid task */
    uint64_t content;
    enum { WAITS, REFUSED, GONE } stands;
    bool dropped, retried;
    bool unfit; /* the store refuses its task: it is too big, or its lock is taken */
};

/* An intake's ask, in its batch's memory. */
struct row_ask {
    struct ask ask;
    struct child_row child;
    bool is_child;
    struct intake_item *item;
};

static struct {
    bool on;
    struct prng own; /* keeps other runs unaffected */
    uint32_t rooms[NODES_MAX];
    struct put list[PUTS_MAX]; /* by seq, from 1 */
    uint32_t count, refused, waiting;
} sql;

static bool draw(uint32_t of_1000)
{
    return prng_below(&sql.own, 1000) < of_1000;
}

static struct put *put_of(int64_t seq)
{
    ASSERT(seq > 0 && seq <= sql.count);
    return &sql.list[seq - 1];
}

static void must(bool ok, const char *rule, const struct put *p, const char *what)
{
    if (ok)
        return;
    if (p->task)
        describe(p->task);
    broken(rule, "submission %d of %s: %s", (int)(p - sql.list) + 1, p->task ? p->task->id : "?",
           what);
}

/* ---- the rules ---- */

static bool is_task(const struct put *p)
{
    return p->task && subject_says(p->task, p->content != p->task->content);
}

static void has_gone(struct put *p)
{
    bool refused = p->task && p->task->refusal;
    must(p->dropped || is_task(p) || refused, "what was put in by SQL becomes a task, or is kept",
         p, "it is gone");
    p->stands = GONE;
}

static void was_refused(struct put *p)
{
    bool other = p->task && p->task->seen.revision != 0 && !is_task(p);

    must(!p->task || !p->task->parent, "no child is kept as refused", p, "refused");
    must(!p->task || other || p->unfit, "only what can be no task is refused", p, "refused");
    must(!p->dropped, "what was dropped does not come back", p, "refused");
    covered(COVER_SQL_REFUSED);
    p->stands = REFUSED;
}

static void waits_again(struct put *p)
{
    must(p->stands == REFUSED && p->retried, "what was put in by SQL is dealt with once", p,
         "it waits again");
    p->stands = WAITS;
}

static struct submission_page rows(bool refused, struct arena *a)
{
    const struct submission_query q = {.refused = refused, .limit = PUTS_MAX};
    struct submission_page page;
    struct error e = {0};

    enum err err = inner->ops->submissions->list(inner, &q, a, &page, &e);
    ASSERT(err == ERR_OK);
    return page;
}

void sql_changed(void)
{
    CLEANUP(arena_fini) struct arena a = {0};
    enum { NOT_THERE, WAITING, KEPT } * now;

    if (!sql.on || sql.count == 0)
        return;
    struct submission_page waiting = rows(false, &a);
    struct submission_page refused = rows(true, &a);
    now = arena_alloc(&a, sql.count * sizeof *now);
    for (uint32_t i = 0; i < sql.count; i++)
        now[i] = NOT_THERE;
    for (size_t i = 0; i < waiting.count; i++)
        now[waiting.rows[i].seq - 1] = WAITING;
    for (size_t i = 0; i < refused.count; i++)
        now[refused.rows[i].seq - 1] = KEPT;
    for (uint32_t i = 0; i < sql.count; i++) {
        struct put *p = &sql.list[i];
        if (now[i] == NOT_THERE && p->stands != GONE)
            has_gone(p);
        else if (now[i] == KEPT && p->stands != REFUSED)
            was_refused(p);
        else if (now[i] == WAITING && p->stands != WAITS)
            waits_again(p);
    }
    sql.waiting = (uint32_t)waiting.count;
    sql.refused = (uint32_t)refused.count;
}

void sql_became(const struct change *c)
{
    if (c->submission == 0)
        return;
    const struct put *p = put_of(c->submission);
    must(c->kind == CHANGE_INSERT && p->stands == GONE, "a new task takes its row along", p,
         "it is there");
    covered(COVER_SQL_TASK);
}

bool sql_is_content(void)
{
    return sql.waiting == 0;
}

uint32_t sql_refused(void)
{
    return sql.refused;
}

void check_sql_end(void)
{
    sql_changed();
    for (uint32_t i = 0; i < sql.count; i++)
        must(sql.list[i].stands != WAITS, "what was put in by SQL is dealt with", &sql.list[i],
             "it waits");
}

/* ---- applications ---- */

/* Notifies the nodes; notifications may be lost. */
static void tells(void)
{
    NODES_FOREACH (n) {
        if (!node_is_awake(n) || !n->intake || !draw(700))
            continue;
        intake_wake(n->intake);
        node_turn_later(n);
    }
}

static void put(struct subject *t, uint64_t content, struct slice workflow)
{
    struct submission_row row = {
        .source = SLICE("sql"),
        .id = t ? slice_of(t->id) : text_of("nobody%u", sql.count),
        .workflow = workflow,
        .tags = text_of("%" PRIx64, content),
        .input = t ? t->input : SLICE("{}"),
        .submitted_at = store_now(),
    };
    struct error e = {0};

    ASSERT(sql.count < PUTS_MAX);
    sql.list[sql.count++] = (struct put){.task = t, .content = content};
    enum err err = inner->ops->submissions->put(inner, &row, 1, &e);
    ASSERT(err == ERR_OK);
    trace("an application puts in %.*s", SLICE_ARG(row.id));
    sql_changed();
    tells();
}

void sql_put(struct subject *t, bool other)
{
    put(t, t->content ^ (other ? 1 : 0), slice_of(t->flow->name));
}

void sql_put_bad(void)
{
    put(NULL, 0, SLICE("nobody"));
}

/* ---- schedules ---- */

void sql_has_run(struct subject *t, int64_t seq)
{
    ASSERT(sql.count < PUTS_MAX);
    sql.list[sql.count++] = (struct put){.task = t, .content = t->content};
    ASSERT(seq == (int64_t)sql.count);
}

int64_t sql_last_seq(void)
{
    return (int64_t)sql.count;
}

bool sql_run_waits(const struct subject *t)
{
    for (uint32_t i = sql.count; i > 0; i--)
        if (sql.list[i - 1].task == t && sql.list[i - 1].stands == WAITS)
            return true;
    return false;
}

bool sql_run_was_refused(const struct subject *t)
{
    for (uint32_t i = sql.count; i > 0; i--)
        if (sql.list[i - 1].task == t
            && (sql.list[i - 1].stands == REFUSED || sql.list[i - 1].retried))
            return true;
    return false;
}

/* ---- applications that commit ---- */

/* bits of `what` */
enum { OTHER = 1 };

static void commits(void *arg, uint64_t what)
{
    struct subject *t = arg;

    if (store_is_away() || !family_is_stored(t->flow)) {
        later(1 + prng_below(&sql.own, 500), commits, arg, what);
        return;
    }
    if (sql.count < PUTS_MAX - 2)
        sql_put(t, what & OTHER);
    if (sql.count < PUTS_MAX - 2 && draw(100))
        sql_put_bad();
}

bool sql_submits(struct subject *t, int64_t at)
{
    if (!sql.on || draw(300))
        return false;
    t->by_sql = true;
    later(at, commits, t, 0);
    if (draw(200))
        later(at + prng_below(&sql.own, 20000), commits, t, 0); /* an unclear commit is repeated */
    if (draw(100))
        later(at + prng_below(&sql.own, 20000), commits, t, OTHER);
    return draw(700);
}

/* ---- operators ---- */

void sql_verb(bool drop)
{
    const struct audit audit = {.at = store_now(),
                                .actor = SLICE("operator"),
                                .verb = SLICE("submission"),
                                .reason = SLICE("all of them")};
    struct submission_verb v = {.drop = drop, .audit = &audit};
    struct error e = {0};

    for (uint32_t i = 0; i < sql.count; i++)
        if (sql.list[i].stands == REFUSED) {
            sql.list[i].dropped |= drop;
            sql.list[i].retried |= !drop;
        }
    enum err err = inner->ops->submissions->apply(inner, &v, &e);
    ASSERT(err == ERR_OK);
    trace("%s of %" PRIu64 " submissions", drop ? "a drop" : "a retry", v.count);
    if (v.count > 0)
        covered(COVER_SQL_VERB);
    sql_changed();
    tells();
}

static void meddles(void *arg, uint64_t n)
{
    (void)n;
    if (world.calm)
        return;
    if (!store_is_away())
        sql_verb(draw(200));
    later(1 + prng_below(&sql.own, 2 * VERB_MS), meddles, arg, 0);
}

/* ---- the node's part ---- */

static int64_t clock_now(void *arg)
{
    return node_now(arg);
}

static size_t room(void *arg)
{
    const struct node *n = arg;

    return sql.rooms[n->slot];
}

/* As the server does, but for what is checked of a row. */
static void read_child(struct row_ask *ra, struct intake_item *it, const struct subject *t)
{
    ra->is_child = true;
    if (!child_read(it, &ra->child, &ra->ask))
        broken("what starts a child can be read", "%s: %.*s", t->id, SLICE_ARG(it->row->child));
    ra->ask.trace = ra->child.origin.trace;
    ra->ask.priority = (int)strtol(it->row->priority.ptr, NULL, 10);
    if (!child_is_unread(t))
        return;
    covered(COVER_CHILD_REFUSED);
    child_refuse(&ra->child, it, "it cannot be read", &ra->child);
}

static void read_row(void *arg, struct intake_item *it)
{
    struct node *n = arg;
    const struct submission_row *r = it->row;
    int64_t version = slice_is(r->source, "task") ? strtoll(r->version.ptr, NULL, 10) : 1;
    const struct definition *d = registry_find(&n->registry, r->workflow, version);

    if (!d) {
        it->problem = arena_copy(it->arena, SLICE("there is no such workflow"));
        return;
    }
    const struct subject *t = subject_find(r->id);
    bool is_run = slice_is(r->source, "schedule") || t->parent;
    uint64_t content = is_run ? t->content : strtoull(r->tags.ptr, NULL, 16);
    struct row_ask *ra = arena_alloc(it->arena, sizeof *ra);
    *ra =
        (struct row_ask){.item = it,
                         .ask = {.kind = ASK_SUBMIT,
                                 .id = r->id,
                                 .definition = d,
                                 .input = r->input,
                                 .reply_to = receivers_reply_to(t),
                                 .priority = t->priority,
                                 .not_before = t->not_before,
                                 .by_id = is_run,
                                 .submitter = is_run ? r->submitter : SLICE_NONE,
                                 .content = subject_content(t, content != t->content, r->seq & 1)}};
    it->ask = &ra->ask;
    if (child_is_started_by(r))
        read_child(ra, it, t);
    else
        ra->ask.family = family_fixed(n, d, it->arena);
}

static void asks(void *arg, struct intake_item *it)
{
    struct node *n = arg;
    struct subject *t = subject_find(it->row->id);

    if (n->dead)
        return;
    ASSERT(it->ask->submission == it->row->seq);
    if (it->ask->kind == ASK_CHILD) {
        trace("%s tells of %s, which is refused", n->me, t->id);
        scheduler_ask(n->scheduler, it->ask);
        return;
    }
    covered(COVER_SQL_ASKED);
    t->wanted[ASK_SUBMIT]++;
    trace("%s makes a task of submission %" PRId64 ", %s", n->me, it->row->seq, t->id);
    scheduler_ask(n->scheduler, it->ask);
}

static bool tells_of_refusal(const struct ask *a)
{
    return a->kind == ASK_CHILD && a->notice == 0;
}

bool sql_asked(const struct ask *a)
{
    return a->submission != 0 || tells_of_refusal(a);
}

/* Its parent was told. */
static void refusal_answered(struct node *n, struct ask *a)
{
    struct child_row *c = CONTAINER_OF(a, struct child_row, told);
    const struct row_ask *ra = CONTAINER_OF(c, struct row_ask, child);

    trace("answered to %.*s of a refusal: %s", SLICE_ARG(a->id), err_text(a->outcome));
    child_refusal_told(c);
    intake_answered(ra->item, SLICE_NONE);
    node_turn_later(n);
}

/* Refused by the store. */
static void tell_of_refusal(struct node *n, struct row_ask *ra)
{
    covered(COVER_CHILD_REFUSED);
    child_refuse(&ra->child, ra->item, ra->ask.story, &ra->child);
    scheduler_ask(n->scheduler, &ra->child.told);
    node_turn_later(n);
}

void sql_answered(struct node *n, struct ask *a)
{
    if (tells_of_refusal(a)) {
        refusal_answered(n, a);
        return;
    }
    struct row_ask *ra = CONTAINER_OF(a, struct row_ask, ask);
    struct put *p = put_of(a->submission);

    trace("answered to SQL: %s: %s", p->task->id, err_text(a->outcome));
    check_asked(p->task, a, 0, p->content != p->task->content);
    if (a->outcome == ERR_OK && !a->existed)
        must(p->stands == GONE, "a new task takes its row along", p, "it was accepted");
    p->unfit |= a->outcome == ERR_TOO_BIG || a->outcome == ERR_TAKEN;
    if (ra->is_child && child_is_refused(a->outcome)) {
        must(child_is_too_big(a->id), "only what can be no task is refused", p, "a child");
        tell_of_refusal(n, ra);
        return;
    }
    intake_answered(ra->item, slice_of(a->story));
    node_turn_later(n);
}

static void settled(void *arg, struct intake_item *const *refused, size_t count)
{
    const struct node *n = arg;
    (void)refused;

    trace("%s has refused %zu", n->me, count);
}

static void failed(void *arg, const struct error *e)
{
    const struct node *n = arg;

    trace("%s cannot read submissions: %s", n->me, e->text);
}

struct intake *sql_intake(struct node *n)
{
    const struct intake_config c = {.store = &n->disk.queue,
                                    .workflows = &n->registry,
                                    .clock = {clock_now, n},
                                    .shared = nodes.shared,
                                    .batch_max = draw(300) ? 1 + prng_below(&sql.own, 3) : 0,
                                    .look_ms = nodes.shared ? 0 : LOOK_MS,
                                    .arg = n,
                                    .room = room,
                                    .read = read_row,
                                    .ask = asks,
                                    .settled = settled,
                                    .failed = failed};

    if (!sql.on)
        return NULL;
    sql.rooms[n->slot] = draw(300) ? 1 + (uint32_t)prng_below(&sql.own, 3) : 1000;
    struct intake *in = intake_new(&c);
    if (!(n->roles & NODE_SCHEDULER))
        intake_drain(in);
    return in;
}

/* ---- start ---- */

void sql_begin(void)
{
    sql_begin_scene(false);
    sql.own = (struct prng){.state = world.seed ^ UINT64_C(0x7375626d69740001)};
    sql.on = prng_below(&sql.own, ONE_RUN_OF) == 0 || schedules_are_on() || flows_family();
    if (sql.on)
        later(1 + prng_below(&sql.own, VERB_MS), meddles, NULL, 0);
}

void sql_begin_scene(bool wanted)
{
    sql.on = wanted;
    sql.own = (struct prng){.state = world.seed};
    sql.count = sql.refused = sql.waiting = 0;
}
