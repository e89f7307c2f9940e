/*
 * Both bodies of the store receive the same random calls and return the same results, so that
 * findings of the simulation, which uses memory, hold for SQLite.
 */

#include "store_world.h"

#include "base/prng.h"

enum { IDS = 40 };

static char ids[IDS][8];
static const char *const agents[] = {"a", "b", "time"};
static const char *const owners[] = {NULL, "n1/0", "n1/1", "n2/1"};

static const char *const tag_sets[] = {NULL, "{}", "{\"k\":\"v\"}",
                                       "{\"k\":\"w\",\"l\":\"\\u00e9\"}",
                                       "{\"l\": \"\xc3\xa9\", \"k\": \"v\"}"};

static struct change random_change(struct prng *p, struct world *w)
{
    struct change c = {.row = a_row(ids[prng_below(p, IDS)])};
    struct task_row old;

    c.kind = (enum change_kind)prng_below(p, 3);
    c.release = prng_chance(p, 50);
    c.wake_moved = prng_chance(p, 50);
    if (c.kind != CHANGE_INSERT) {
        bool there = w->s->ops->get(w->s, c.row.id, &w->a, &old, &w->e) == ERR_OK;
        c.row.revision = (there ? old.revision : 1) + (prng_chance(p, 90) ? 1 : 2);
    }
    c.row.state = (enum task_state)prng_below(p, TASK_ERROR + 1);
    c.row.direction = (enum direction)prng_below(p, 2);
    c.row.locked_by = slice_of(owners[prng_below(p, COUNT_OF(owners))]);
    c.row.waiting_for = slice_of(agents[prng_below(p, COUNT_OF(agents))]);
    c.row.workflow = slice_of(agents[prng_below(p, COUNT_OF(agents))]);
    c.row.submitted_at = 1 + prng_below(p, 9);
    c.row.tags = slice_of(tag_sets[prng_below(p, COUNT_OF(tag_sets))]);
    c.row.rank = prng_below(p, 9);
    c.row.wake_at = prng_below(p, 9);
    c.row.started_at = prng_below(p, 2);
    c.row.paused_at = prng_below(p, 3);
    c.row.closed_at = prng_below(p, 3);
    c.row.asked = prng_chance(p, 30) ? SLICE(",finance,") : SLICE_NONE;
    if (prng_chance(p, 20))
        c.row.request = SLICE("{}");
    if (prng_chance(p, 10)) {
        struct payload *payload = arena_alloc(&w->a, sizeof *payload);
        *payload = (struct payload){1 + prng_below(p, 4), SLICE("[1]")};
        c.row.payloads = payload;
        c.row.payload_count = 1;
    }
    return c;
}

/* From the same arena: both bodies get the very same change. */
static void add_audits(struct prng *p, struct world *w, struct change *c)
{
    struct audit *audits = arena_alloc(&w->a, 2 * sizeof *audits);

    c->audits = audits;
    c->audit_count = prng_below(p, 3);
    for (size_t i = 0; i < c->audit_count; i++)
        audits[i] = (struct audit){.at = prng_below(p, 9),
                                   .actor = slice_of(agents[prng_below(p, 3)]),
                                   .verb = SLICE("retry"),
                                   .task = c->row.id,
                                   .reason = slice_of(owners[prng_below(p, 4)])};
}

static void claims_agree(const struct claim *x, const struct claim *y)
{
    CHECK(x->row_count == y->row_count, "claimed %zu and %zu", x->row_count, y->row_count);
    CHECK(x->more == y->more && x->next_rank == y->next_rank, "what is left");
    for (size_t i = 0; i < x->row_count; i++)
        rows_equal(&x->rows[i], &y->rows[i], "claimed");
}

static void a_random_batch_agrees(struct prng *p, struct world *m, struct world *s)
{
    enum { N = 5 };
    struct change x[N];
    struct change y[N];
    struct claim cx[2];
    struct claim cy[2];

    for (size_t i = 0; i < N; i++) {
        x[i] = random_change(p, m);
        add_audits(p, m, &x[i]);
        y[i] = x[i];
    }
    for (size_t i = 0; i < 2; i++) {
        enum claim_kind kind = (enum claim_kind)prng_below(p, 3);
        cx[i] = cy[i] =
            claim_of(m, kind, agents[prng_below(p, 2)], prng_below(p, 3), 1 + prng_below(p, 9));
    }
    struct batch bx = {.changes = x, .change_count = N, .claims = cx, .claim_count = 2};
    struct batch by = {.changes = y, .change_count = N, .claims = cy, .claim_count = 2};
    must(m->s->ops->commit(m->s, &bx, &m->a, &m->e), "memory");
    must(s->s->ops->commit(s->s, &by, &s->a, &s->e), "sqlite");
    for (size_t i = 0; i < N; i++)
        CHECK(x[i].outcome == y[i].outcome, "change %zu of kind %d of %s: %s and %s", i,
              (int)x[i].kind, x[i].row.id.ptr, err_text(x[i].outcome), err_text(y[i].outcome));
    for (size_t i = 0; i < 2; i++)
        claims_agree(&cx[i], &cy[i]);
}

static void pages_agree(const struct row_page *x, const struct row_page *y)
{
    CHECK(x->count == y->count && x->more == y->more, "pages of %zu and %zu", x->count, y->count);
    CHECK(x->next_seq == y->next_seq, "then from %" PRId64 " and %" PRId64, x->next_seq,
          y->next_seq);
    for (size_t i = 0; i < x->count; i++)
        rows_equal(&x->rows[i], &y->rows[i], "page");
}

static void random_reads_agree(struct prng *p, struct world *m, struct world *s)
{
    struct row_page x;
    struct row_page y;
    struct slice id = slice_of(ids[prng_below(p, IDS)]);
    struct task_row rx;
    struct task_row ry;

    enum err ex = m->s->ops->get(m->s, id, &m->a, &rx, &m->e);
    CHECK(ex == s->s->ops->get(s->s, id, &s->a, &ry, &s->e), "get");
    if (ex == ERR_OK)
        rows_equal(&rx, &ry, "get");
    int64_t now = prng_below(p, 9);
    int64_t at = prng_below(p, 9);
    int64_t seq = prng_below(p, IDS);
    must(m->s->ops->overdue(m->s, now, at, seq, 4, &m->a, &x, &m->e), "memory");
    must(s->s->ops->overdue(s->s, now, at, seq, 4, &s->a, &y, &s->e), "sqlite");
    pages_agree(&x, &y);
    struct list_query q = {.states = prng_chance(p, 30)
                                         ? 0
                                         : (uint32_t)prng_below(p, 1U << (TASK_ERROR + 1)),
                           .before_seq = prng_below(p, IDS),
                           .limit = prng_below(p, 5)};
    if (prng_chance(p, 50))
        q.workflow = slice_of(agents[prng_below(p, 3)]);
    if (prng_chance(p, 30))
        q.submitted_after = prng_below(p, 9);
    if (prng_chance(p, 30))
        q.submitted_before = prng_below(p, 9);
    const struct tag tags[] = {{SLICE("k"), prng_chance(p, 50) ? SLICE("v") : SLICE("w")},
                               {SLICE("l"), SLICE("\xc3\xa9")}};
    q.tag_count = prng_chance(p, 50) ? 0 : 1 + prng_below(p, 2);
    q.tags = tags + (q.tag_count == 1 ? prng_below(p, 2) : 0);
    must(m->s->ops->list(m->s, &q, &m->a, &x, &m->e), "memory");
    must(s->s->ops->list(s->s, &q, &s->a, &y, &s->e), "sqlite");
    pages_agree(&x, &y);
}

static void audits_agree(struct prng *p, struct world *m, struct world *s)
{
    struct audit_query q = {.before_seq = prng_below(p, 500), .limit = 1 + prng_below(p, 9)};
    struct audit_page x;
    struct audit_page y;

    if (prng_chance(p, 50))
        q.task = slice_of(ids[prng_below(p, IDS)]);
    must(m->s->ops->audit_list(m->s, &q, &m->a, &x, &m->e), "memory");
    must(s->s->ops->audit_list(s->s, &q, &s->a, &y, &s->e), "sqlite");
    CHECK(x.count == y.count && x.more == y.more, "audits of %zu and %zu", x.count, y.count);
    for (size_t i = 0; i < x.count; i++) {
        CHECK(x.seqs[i] == y.seqs[i] && x.entries[i].at == y.entries[i].at, "entry %zu", i);
        CHECK(slice_eq(x.entries[i].actor, y.entries[i].actor), "actor %zu", i);
        CHECK(slice_eq(x.entries[i].task, y.entries[i].task), "task %zu", i);
        CHECK(slice_eq(x.entries[i].reason, y.entries[i].reason), "reason %zu", i);
    }
}

static void a_random_token_agrees(struct prng *p, struct world *m, struct world *s)
{
    struct token_row t = {.name = slice_of(ids[prng_below(p, 6)]),
                          .roles = SLICE("[]"),
                          .admin = prng_chance(p, 50),
                          .hash = {(unsigned char)prng_below(p, 9)},
                          .expires_at = prng_below(p, 9)};
    struct token_row *x;
    struct token_row *y;
    size_t nx;
    size_t ny;
    int64_t now = prng_below(p, 9);
    bool replace = prng_chance(p, 50);

    if (prng_chance(p, 50))
        CHECK(m->s->ops->token_put(m->s, &t, replace, NULL, &m->e)
                  == s->s->ops->token_put(s->s, &t, replace, NULL, &s->e),
              "token_put");
    else
        CHECK(m->s->ops->token_delete(m->s, t.name, now, NULL, &m->e)
                  == s->s->ops->token_delete(s->s, t.name, now, NULL, &s->e),
              "token_delete");
    must(m->s->ops->token_list(m->s, &m->a, &x, &nx, &m->e), "memory");
    must(s->s->ops->token_list(s->s, &s->a, &y, &ny, &s->e), "sqlite");
    CHECK(nx == ny, "%zu and %zu tokens", nx, ny);
    for (size_t i = 0; i < nx; i++)
        CHECK(slice_eq(x[i].name, y[i].name) && x[i].hash[0] == y[i].hash[0]
                  && x[i].admin == y[i].admin && x[i].expires_at == y[i].expires_at,
              "token %zu", i);
}

static void both_bodies_give_the_same_answers(void **state)
{
    struct world *s = *state;
    void *other;

    for (unsigned i = 0; i < IDS; i++)
        (void)snprintf(ids[i], sizeof ids[i], "t-%u", i);
    (void)world_setup_memory(&other);
    struct world *m = other;
    for (unsigned i = 0; i < 400; i++) {
        struct prng p = {i};
        a_random_batch_agrees(&p, m, s);
        random_reads_agree(&p, m, s);
        audits_agree(&p, m, s);
        a_random_token_agrees(&p, m, s);
        if (i % 100 == 99) {
            world_restart(m);
            world_restart(s);
        }
        if (i % 7 == 0)
            (void)sqlite_store_maintain(s->s, i % 2);
    }
    (void)world_teardown(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ON_SQLITE(both_bodies_give_the_same_answers)};

    return cmocka_run_group_tests_name("store twins", tests, NULL, NULL);
}
