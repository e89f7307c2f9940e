/* The contract of every store for tasks that wait for several agents: each of them finds the
 * task, and each change replaces the earlier waits. Each test runs on all stores
 * (store_world.h). */

#include "contract/store_world.h"

static struct task_row a_waiting_row(const char *id, const char *names,
                                     const struct task_wait *waits, size_t count)
{
    struct task_row row = a_row(id);

    row.waiting_for = slice_of(names);
    row.waits = waits;
    row.wait_count = count;
    return row;
}

/* It waits for a and b at that rank, and for a moment. */
static void insert_waiting(struct world *w, const char *id, int64_t rank, int64_t due_at)
{
    const struct task_wait waits[] = {{SLICE("a"), rank},
                                      {SLICE("b"), rank},
                                      {SLICE("time"), due_at}};

    must(insert_row(w, a_waiting_row(id, ",a,b,time", waits, COUNT_OF(waits))), id);
}

static struct claim among(struct world *w, enum claim_kind kind, const char *agent, size_t limit,
                          int64_t now)
{
    struct claim c = claim_of(w, kind, agent, limit, now);

    c.among = true;
    claim_commit(w, &c);
    return c;
}

static void none_is_left(struct world *w)
{
    struct claim c = among(w, CLAIM_AGENT, "a", 9, 1000000);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_AGENT, "b", 9, 1000000);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_TIME, "time", 9, 1000000);
    claimed(&c, NULL, 0, false);
}

static void each_of_several_finds_the_task(void **state)
{
    struct world *w = *state;

    insert_waiting(w, "one", 10, 900);
    insert_waiting(w, "two", 5, 800);
    insert_waiting(w, "three", 20, 700);
    struct claim c = claim_of(w, CLAIM_AGENT, "a", 9, 777);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false); /* they do not wait for it alone */
    c = claim_of(w, CLAIM_TIME, "time", 9, 100000);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_AGENT, "a", 1, 777);
    claimed(&c, (const char *const[]){"two"}, 1, true);
    struct task_row seen = fetch(w, "two");
    rows_equal(&seen, &c.rows[0], "the row as it is after the claim");
    CHECK(seen.state == TASK_PROCESSING && !seen.waiting_for.ptr, "claimed");
    c = among(w, CLAIM_AGENT, "b", 1, 777);
    claimed(&c, (const char *const[]){"one"}, 1, true);
    c = among(w, CLAIM_TIME, "time", 9, 699);
    claimed(&c, NULL, 0, false);
    CHECK(c.next_rank == 700, "the next one is due at %" PRId64, c.next_rank);
    c = among(w, CLAIM_TIME, "time", 9, 700);
    claimed(&c, (const char *const[]){"three"}, 1, false);
    none_is_left(w);
}

/* When it waits again, nothing is left of what it waited for before it was claimed. */
static void a_claim_forgets_what_was_waited_for(void **state)
{
    const struct task_wait waits[] = {{SLICE("b"), 1}, {SLICE("c"), 1}};
    struct world *w = *state;

    insert_waiting(w, "x", 10, 900);
    struct claim c = among(w, CLAIM_AGENT, "b", 9, 777);
    claimed(&c, (const char *const[]){"x"}, 1, false);
    struct task_row row = fetch(w, "x");
    row.revision++;
    row.state = TASK_PENDING;
    row.locked_by = SLICE_NONE;
    row.waiting_for = SLICE(",b,c");
    row.waits = waits;
    row.wait_count = COUNT_OF(waits);
    must(update_row(w, row), "release");
    c = among(w, CLAIM_AGENT, "a", 9, 777);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_AGENT, "c", 9, 777);
    claimed(&c, (const char *const[]){"x"}, 1, false);
    none_is_left(w);
}

static void a_range_of_ranks_is_kept_to(void **state)
{
    const struct task_wait waits[] = {{SLICE("a"), 5}, {SLICE("a"), 15}, {SLICE("b"), 7}};
    struct world *w = *state;

    must(insert_row(w, a_waiting_row("x", ",a,b", waits, COUNT_OF(waits))), "insert");
    struct claim c = claim_of(w, CLAIM_AGENT, "a", 9, 777);
    c.among = true;
    c.rank_from = 6;
    c.rank_before = 15;
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_AGENT, "a", 9, 777); /* by both of its waits, and once */
    claimed(&c, (const char *const[]){"x"}, 1, false);
    CHECK(fetch(w, "x").revision == 2, "it was claimed once");
    none_is_left(w);
}

/* A limit counts tasks, however many waits they have. */
static void two_waits_of_a_task_hide_no_other(void **state)
{
    const struct task_wait waits[] = {{SLICE("a"), 5}, {SLICE("a"), 15}, {SLICE("b"), 7}};
    const struct task_wait others[] = {{SLICE("a"), 20}, {SLICE("b"), 20}};
    struct world *w = *state;

    must(insert_row(w, a_waiting_row("x", ",a,b", waits, COUNT_OF(waits))), "insert");
    must(insert_row(w, a_waiting_row("y", ",a,b", others, COUNT_OF(others))), "insert");
    struct claim c = among(w, CLAIM_AGENT, "a", 1, 777);
    claimed(&c, (const char *const[]){"x"}, 1, true);
    c = among(w, CLAIM_AGENT, "a", 1, 777);
    claimed(&c, (const char *const[]){"y"}, 1, false);
    none_is_left(w);
}

static void a_change_forgets_what_was_waited_for(void **state)
{
    const struct task_wait waits[] = {{SLICE("b"), 1}, {SLICE("c"), 1}};
    struct world *w = *state;

    insert_waiting(w, "x", 10, 900);
    struct task_row row = fetch(w, "x");
    row.revision++;
    row.waiting_for = SLICE_NONE; /* it is paused */
    row.paused_at = 5;
    must(put_change(w, (struct change){.kind = CHANGE_UPDATE, .drops_waits = true, .row = row}),
         "pause");
    none_is_left(w);
    row = fetch(w, "x");
    row.revision++;
    row.paused_at = 0;
    row.waiting_for = SLICE(",b,c");
    row.waits = waits;
    row.wait_count = COUNT_OF(waits);
    must(update_row(w, row), "resume");
    struct claim c = among(w, CLAIM_AGENT, "a", 9, 777);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_AGENT, "c", 9, 777);
    claimed(&c, (const char *const[]){"x"}, 1, false);
    none_is_left(w);
}

static void one_set_of_waits_replaces_another(void **state)
{
    const struct task_wait waits[] = {{SLICE("b"), 1}, {SLICE("c"), 1}};
    struct world *w = *state;

    insert_waiting(w, "x", 10, 900);
    struct task_row row = fetch(w, "x");
    row.revision++;
    row.waiting_for = SLICE(",b,c");
    row.waits = waits;
    row.wait_count = COUNT_OF(waits);
    must(put_change(w, (struct change){.kind = CHANGE_UPDATE, .drops_waits = true, .row = row}),
         "change");
    struct claim c = among(w, CLAIM_AGENT, "a", 9, 777);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_AGENT, "b", 9, 777);
    claimed(&c, (const char *const[]){"x"}, 1, false);
    none_is_left(w);
}

static void what_the_supervisor_releases_waits_for_nobody_else(void **state)
{
    struct world *w = *state;

    insert_waiting(w, "x", 10, 900);
    struct task_row row = {.id = SLICE("x"),
                           .revision = 2,
                           .waiting_for = SLICE("time"),
                           .rank = 3,
                           .request = SLICE("[]")};
    must(put_change(w, (struct change){.kind = CHANGE_REQUEST,
                                       .release = true,
                                       .drops_waits = true,
                                       .row = row}),
         "request");
    none_is_left(w);
    struct claim c = claim_of(w, CLAIM_TIME, "time", 9, 777);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"x"}, 1, false);
}

static void a_change_that_is_not_made_leaves_the_waits_alone(void **state)
{
    const struct task_wait waits[] = {{SLICE("b"), 1}, {SLICE("c"), 1}};
    struct world *w = *state;

    insert_waiting(w, "x", 10, 900);
    struct task_row row = fetch(w, "x");
    row.revision += 2;
    row.waiting_for = SLICE(",b,c");
    row.waits = waits;
    row.wait_count = COUNT_OF(waits);
    CHECK(put_change(w, (struct change){.kind = CHANGE_UPDATE, .drops_waits = true, .row = row})
              == ERR_CONFLICT,
          "of another revision");
    CHECK(insert_row(w, a_waiting_row("x", ",b,c", waits, COUNT_OF(waits))) == ERR_CONFLICT,
          "there is one");
    struct claim c = among(w, CLAIM_AGENT, "c", 9, 777);
    claimed(&c, NULL, 0, false);
    c = among(w, CLAIM_AGENT, "a", 9, 777);
    claimed(&c, (const char *const[]){"x"}, 1, false);
    none_is_left(w);
}

static struct survey survey_of(struct world *w)
{
    static const struct slice agents[] = {{"none", 4}, {"b", 1}, {"a", 1}};
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .now = 100,
                       .length_ms = 1000,
                       .agents = agents,
                       .agent_count = COUNT_OF(agents)};

    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    return v;
}

static void a_survey_tells_of_those_that_wait_for_several(void **state)
{
    struct world *w = *state;

    if (!w->s->shared)
        return;
    insert_waiting(w, "x", 10, 900);
    insert_ranked(w, "for-a", "a", 7);
    insert_ranked(w, "sleeps", "time", 950);
    struct survey v = survey_of(w);
    CHECK(!v.among[0] && v.among[1] && v.among[2], "who is waited for among others");
    CHECK(!v.waiting[0] && !v.waiting[1] && v.waiting[2], "who is waited for alone");
    CHECK(v.due_at == 950 && v.among_due_at == 900, "%" PRId64 " %" PRId64, v.due_at,
          v.among_due_at);
}

static void counts_and_listings_know_each_of_several(void **state)
{
    const struct slice agent = SLICE("b");
    struct world *w = *state;
    struct census c = {0};
    struct row_page page = {0};

    insert_waiting(w, "x", 10, 900);
    insert_ranked(w, "for-b", "b", 7);
    insert_ranked(w, "for-c", "c", 7);
    if (w->s->ops->counts) {
        must(w->s->ops->counts->census(w->s, 0, 100, &w->a, &c, &w->e), "census");
        CHECK(c.agent_count == 3 && c.sleeping == 1, "%zu agents", c.agent_count);
        CHECK(slice_is(c.agents[0].agent, "a") && c.agents[0].tasks == 1, "a");
        CHECK(slice_is(c.agents[1].agent, "b") && c.agents[1].tasks == 2, "b");
        CHECK(slice_is(c.agents[2].agent, "c") && c.agents[2].tasks == 1, "c");
    }
    const struct list_query q = {.agent = agent, .limit = 9};
    must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "list");
    CHECK(page.count == 2, "%zu tasks", page.count);
}

/* What a program of a version before does to a row leaves waits behind. */
static void what_another_program_left_behind_is_nobodys(void **state)
{
    struct world *w = *state;

    if (!w->postgres)
        return;
    insert_waiting(w, "x", 10, 900);
    insert_waiting(w, "y", 10, 900);
    postgres_do(w, "UPDATE task SET revision = revision + 1, waiting_for = NULL, paused_at = 1 "
                   "WHERE id = 'x'");
    struct claim c = among(w, CLAIM_AGENT, "a", 9, 777);
    claimed(&c, (const char *const[]){"y"}, 1, false);
    struct survey v = survey_of(w);
    CHECK(v.among[1] && v.among_due_at == 900, "it is there");
    world_restart(w);
    v = survey_of(w);
    CHECK(!v.among[1] && !v.among[2] && v.among_due_at == 0, "it was cleared away");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(each_of_several_finds_the_task),
        ON_ALL(a_claim_forgets_what_was_waited_for),
        ON_ALL(a_range_of_ranks_is_kept_to),
        ON_ALL(two_waits_of_a_task_hide_no_other),
        ON_ALL(a_change_forgets_what_was_waited_for),
        ON_ALL(one_set_of_waits_replaces_another),
        ON_ALL(what_the_supervisor_releases_waits_for_nobody_else),
        ON_ALL(a_change_that_is_not_made_leaves_the_waits_alone),
        ON_ALL(a_survey_tells_of_those_that_wait_for_several),
        ON_ALL(counts_and_listings_know_each_of_several),
        ON_ALL(what_another_program_left_behind_is_nobodys),
    };
    return cmocka_run_group_tests_name("store waits", tests, NULL, NULL);
}
