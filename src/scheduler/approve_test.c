/* Approvals, through the scheduler and the store: a task that asks people costs nothing, whoever
 * hears the deciding vote goes on with the task, and a rejection takes the others along. */
#include <stdio.h>

#include "base/when.h"
#include "scheduler/internal.h"
#include "scheduler/scheduler_test_kit.h"
#include "store/codec/codec.h"

#define ASKS(name, more) \
    "{\"name\":\"" name "\",\"after\":[],\"approve\":{\"by\":\"g\",\"question\":\"Well?\"" more "}}"

static struct stage s;

static void check_row(const struct client *c, enum task_state state, const char *waiting_for,
                      const char *text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {0};
    struct error e = {0};
    enum err err = s.store->ops->get(s.store, c->ask.id, &a, &row, &e);

    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(row.state == state, "%s: %.*s", task_state_text(row.state), SLICE_ARG(row.doc));
    CHECK(slice_eq(row.waiting_for, waiting_for ? slice_of(waiting_for) : SLICE_NONE),
          "waits for %.*s", SLICE_ARG(row.waiting_for));
    CHECK(memmem(row.doc.ptr, row.doc.len, text, strlen(text)), "%.*s", SLICE_ARG(row.doc));
}

static const struct client *answered(const struct ask *a, enum err expected)
{
    struct client *c = stage_ask(&s, a);

    c->expected = expected;
    stage_until_answered(&s, c);
    stage_pass(&s, 1);
    return c;
}

static const struct client *votes_in(struct slice group, const struct client *c, const char *step,
                                     const char *person, bool agrees, enum err expected)
{
    const struct ask a = {.kind = agrees ? ASK_APPROVE : ASK_REJECT,
                          .id = c->ask.id,
                          .step = slice_of(step),
                          .ballot = {.person = slice_of(person),
                                     .comment = agrees ? SLICE_NONE : SLICE("no"),
                                     .groups = &group,
                                     .group_count = 1,
                                     .agrees = agrees}};

    return answered(&a, expected);
}

static const struct client *votes(const struct client *c, const char *step, const char *person,
                                  bool agrees, enum err expected)
{
    return votes_in(SLICE("g"), c, step, person, agrees, expected);
}

static void verb(const struct client *c, enum ask_kind kind)
{
    const struct ask a = {.kind = kind, .id = c->ask.id, .reason = SLICE("a test")};

    (void)answered(&a, ERR_OK);
}

static void a_task_that_asks_is_no_burden(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" ASKS("a", ",\"people\":2") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    check_row(c, TASK_PENDING, "@signal", "Well?");
    CHECK(stage_stats(&s).live == 0, "it is not in memory");
    uint64_t claims = stage_stats(&s).claims;
    stage_pass(&s, 1000 * MS_PER_D);
    CHECK(votes(c, "a", "ann", true, ERR_OK)->ask.agreed == 1, "one of two");
    check_row(c, TASK_PENDING, "@signal", "ann");
    CHECK(stage_stats(&s).live == 0, "it is not in memory");
    CHECK(votes(c, "a", "ann", true, ERR_OK)->ask.existed, "she has said so before");
    (void)votes(c, "a", "ann", false, ERR_CONFLICT);
    CHECK(votes(c, "a", "bob", true, ERR_OK)->ask.agreed == 2, "enough");
    check_row(c, TASK_PROCESSED, NULL, "\"output\":{\"approved\":true,\"votes\":[{\"by\":\"ann\"");
    (void)votes(c, "a", "eve", true, ERR_CONFLICT);
    CHECK(stage_stats(&s).claims == claims, "nobody claimed it");
    CHECK(s.ended == 1, "its end was reported");
    stage_end(&s);
}

/* Both are decided in one turn. What was ready is not any more, once one of them has failed. */
static void a_rejection_stops_what_is_decided_beside_it(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w", "\"steps\":[" ASKS("a", "") "," ASKS("b", "") "]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    verb(c, ASK_PAUSE);
    (void)votes(c, "a", "ann", false, ERR_OK);
    (void)votes(c, "b", "ann", true, ERR_OK);
    check_row(c, TASK_PENDING, NULL, "\"votes\"");
    verb(c, ASK_RESUME);
    check_row(c, TASK_COMPENSATED, NULL, "rejected");
    CHECK(s.ended == 1, "its end was reported");
    stage_end(&s);
}

/* The step of an agent keeps the task in memory. Whoever is not asked may try for as long as it
 * likes. */
static void a_refused_vote_costs_no_memory(void **state)
{
    (void)state;
    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[" ASKS(
                     "a", ",\"people\":2") ",{\"name\":\"b\",\"agent\":\"ag\","
                                           "\"action\":\"x\",\"undo\":\"none\",\"after\":[]}]");
    const struct client *c = stage_submit(&s, "w", SLICE("{}"));
    stage_until_answered(&s, c);
    stage_take_requests(&s, "ag", 1);
    (void)votes(c, "a", "ann", true, ERR_OK);
    const struct live *l = live_find(&s.scheduler->tasks, c->ask.id);
    CHECK(l && l->loaded, "it is in memory");
    struct arena before = l->arena;
    for (int i = 0; i < 10; i++) {
        (void)votes_in(SLICE("h"), c, "a", "zoe", true, ERR_CONFLICT);
        (void)votes_in(SLICE("h"), c, "a", "zoe", false, ERR_CONFLICT);
        (void)votes(c, "a", "ann", false, ERR_CONFLICT);
    }
    CHECK(live_find(&s.scheduler->tasks, c->ask.id) == l, "it stays in memory");
    CHECK(l->arena.used == before.used && l->arena.total == before.total, "it has grown");
    CHECK(votes(c, "a", "bob", true, ERR_OK)->ask.agreed == 2, "others decide");
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_vote_costs_no_memory),
        cmocka_unit_test(a_task_that_asks_is_no_burden),
        cmocka_unit_test(a_rejection_stops_what_is_decided_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
