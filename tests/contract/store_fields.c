/*
 * The store keeps a whole task: each field that core/task.h declares is read back as it was
 * written, from a new row, after many changes, and from a claim.
 */

#include "store_world.h"

#include <stdio.h>

#include "store/codec/test_kit.h"

enum { TASKS = 80, TRIES = 300, LIVES = 64, CHANGES = 15 };

/* By this test: its id tells tasks apart, its revision is the store's fence. */
#define OURS                                      \
    {"task.id", "the test gives it"},             \
    {                                             \
        "task.revision", "the store fences by it" \
    }

static const struct field_except ours[] = {OURS, {NULL, NULL}};

static const struct field_except unchangeable[] = {
    OURS,
    {"task.submitted_at", "it was submitted once"},
    {"task.reply_to", "as it was submitted"},
    {"task.tags", "as it was submitted"},
    {"task.lock", "fixed at submission"},
    {"task.parent", "as it was submitted"},
    {"task.root", "as it was submitted"},
    {"task.lock_mode", "fixed at submission, and changed by claims"},
    {NULL, NULL},
};

/* Drawn so often that it may have one of these states. */
static struct task draw(const struct workflow *w, struct prng *p, struct arena *a, unsigned states,
                        const char *id)
{
    struct task t;
    int step;

    do {
        t = random_task(w, p, a);
        for (int i = 0; i < TRIES; i++)
            (void)change_a_field(w, p, a, ours, &t, &step);
    } while (!(states & 1U << t.state));
    t.id = arena_copy(a, slice_of(id));
    t.revision = 1;
    return t;
}

static void of_the_scheduler(const struct task *t, struct task_row *row)
{
    row->rank = 5;
    row->wake_at = 9;
    if (t->state == TASK_PENDING)
        row->waiting_for = SLICE("a");
}

/* An item that came to rest has a row, which is read back to what it was. */
static void compare_item(struct world *w, const struct workflow *flow, const struct task *t,
                         uint16_t unit)
{
    uint16_t step = unit_step(flow, unit);
    struct item_read r = {.task = t->id,
                          .step = flow->steps[step].name,
                          .generation = t->steps[step].generation,
                          .from = t->steps[unit].item,
                          .limit = 1};
    struct step back;

    must(w->s->ops->items->read(w->s, &r, &w->a, &w->e), w->e.text);
    CHECK(r.count == 1 && r.rows[0].number == t->steps[unit].item, "item %u has a row",
          t->steps[unit].item);
    CHECK(item_decode(flow, step, &r.rows[0], &w->a, &back, &w->e) == ERR_OK, "%s: %.*s", w->e.text,
          SLICE_ARG(r.rows[0].doc));
    items_equal(&t->steps[unit], &back);
}

/* Then their slots are free. */
static void compare_items(struct world *w, const struct workflow *flow, struct task *t)
{
    for (uint16_t u = t->step_count; u < task_unit_count(t); u++)
        if (t->steps[u].slot == SLOT_RESTING)
            compare_item(w, flow, t, u);
    slots_settle(flow, t);
}

/* Other items of a task, in other states. */
static void draw_items(const struct workflow *flow, struct prng *p, struct arena *a, struct task *t,
                       struct encoded *kept)
{
    for (uint16_t i = 0; i < flow->step_count; i++)
        if (flow->steps[i].kind == KIND_EACH) {
            random_each(flow, t, i, p, a);
            encoded_look_at(kept, i);
        }
}

static void insert(struct world *w, const struct workflow *flow, struct task *t,
                   struct encoded *kept)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct task_row row;

    task_encode_again(flow, t, kept, &w->a, &doc, &row);
    of_the_scheduler(t, &row);
    must(insert_row(w, row), "insert");
    compare_items(w, flow, t);
}

static void update(struct world *w, const struct workflow *flow, struct task *t,
                   struct encoded *kept, bool wake_moved)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct change c = {.kind = CHANGE_UPDATE, .wake_moved = wake_moved};

    t->revision++;
    task_encode_again(flow, t, kept, &w->a, &doc, &c.row);
    of_the_scheduler(t, &c.row);
    must(put_change(w, c), "update");
    compare_items(w, flow, t);
}

static void compare(struct world *w, const struct workflow *flow, const struct task *t,
                    const struct task_row *row, const struct field_except *but)
{
    struct task back;

    CHECK(task_decode(flow, row, &w->a, &back, &w->e) == ERR_OK, "%s: %.*s", w->e.text,
          SLICE_ARG(row->doc));
    tasks_equal_but(t, &back, but);
}

static const struct workflow *flow_of(int i)
{
    const struct workflow *const all[] = {kit_workflow_long(), &kit_workflow, &kit_workflow_back,
                                          &kit_workflow_wait, &kit_workflow_items};

    return all[(size_t)i % COUNT_OF(all)];
}

static void a_new_task_is_read_as_it_was_written(void **state)
{
    struct world *w = *state;
    struct prng p = {1};

    for (int i = 0; i < TASKS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        struct task t = draw(flow_of(i), &p, &w->a, ~0U, id);
        insert(w, flow_of(i), &t, NULL);
        struct task_row row = fetch(w, id);
        compare(w, flow_of(i), &t, &row, NULL);
    }
    all_fields_were_compared(1, NULL);
}

/* With its owner, who keeps of it what was written, and without. */
static void a_changed_task_is_read_as_it_was_written(void **state)
{
    struct world *w = *state;
    struct prng p = {2};

    for (int i = 0; i < LIVES; i++) {
        const struct workflow *flow = flow_of(i);
        struct encoded *kept = encoded_new(flow, &w->a);
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        struct task t = draw(flow, &p, &w->a, ~0U, id);
        insert(w, flow, &t, kept);
        for (int n = 0; n < CHANGES; n++) {
            int step;
            for (int k = 0; k < 20; k++)
                if (change_a_field(flow, &p, &w->a, unchangeable, &t, &step) && step >= 0)
                    encoded_look_at(kept, step);
            if (n % 3 == 0)
                draw_items(flow, &p, &w->a, &t, kept);
            update(w, flow, &t, kept, n % 2);
            struct task_row row = fetch(w, id);
            compare(w, flow, &t, &row, NULL);
        }
    }
    all_fields_were_compared(1, NULL);
}

/* What a claim writes itself. */
#define CLAIMED                                                                   \
    {"task.locked_by", "whoever claims it"}, {"task.revision", "it is a change"}, \
        {"task.started_at", "now, if it did not start before"},                   \
        {"task.closed_at", "only in error, which nobody claims"},                 \
    {                                                                             \
        "task.closed_reason", "only in error, which nobody claims"                \
    }

static const struct field_except claimed_by_agent[] = {CLAIMED,
                                                       {"task.state", "it is in work"},
                                                       {NULL, NULL}};

static const struct field_except taken_over[] = {CLAIMED, {NULL, NULL}};

/* One at a time, from a store that has others. */
static void claim_and_compare(struct world *w, struct prng *p, enum claim_kind kind,
                              unsigned states, const struct field_except *but)
{
    for (int i = 0; i < TASKS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        struct task t = draw(flow_of(i), p, &w->a, states, id);
        t.locked_by = kind == CLAIM_BOOT ? SLICE("n1/0") : SLICE_NONE;
        insert(w, flow_of(i), &t, NULL);
        struct claim c = claim_of(w, kind, "a", 1, 5);
        claim_commit(w, &c);
        CHECK(c.row_count == 1 && slice_eq(c.rows[0].id, t.id), "it is claimed");
        CHECK(!t.started_at || c.rows[0].started_at == t.started_at, "it had started");
        compare(w, flow_of(i), &t, &c.rows[0], but);
    }
    all_fields_were_compared(1, but);
}

static void a_claimed_task_is_read_as_it_was_written(void **state)
{
    struct prng p = {3};

    claim_and_compare(*state, &p, CLAIM_AGENT, 1U << TASK_PENDING, claimed_by_agent);
}

static void a_task_that_is_taken_over_is_read_as_it_was_written(void **state)
{
    struct prng p = {4};

    claim_and_compare(*state, &p, CLAIM_BOOT, 1U << TASK_PROCESSING | 1U << TASK_COMPENSATING,
                      taken_over);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_new_task_is_read_as_it_was_written),
        ON_ALL(a_changed_task_is_read_as_it_was_written),
        ON_ALL(a_claimed_task_is_read_as_it_was_written),
        ON_ALL(a_task_that_is_taken_over_is_read_as_it_was_written),
    };
    return cmocka_run_group_tests_name("fields of a task in a store", tests, NULL, NULL);
}
