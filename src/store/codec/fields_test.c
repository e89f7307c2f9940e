/*
 * What a task has survives its document: each field that core/task.h declares, in a task of few
 * steps, and in one of many whose steps are written once, lie in groups, and change again. Nothing
 * here names a field but those that are left out.
 */

#include "base/test.h"

#include "core/undo.h"
#include "store/codec/test_kit.h"

enum { SEEDS = 600, TRIES = 300, WRITINGS = 12, PAYLOADS_MAX = 600, LEAST = 10 };

static void draw(const struct workflow *w, struct prng *p, struct arena *a, struct task *ret)
{
    int step;

    *ret = random_task(w, p, a);
    for (int i = 0; i < TRIES; i++)
        (void)change_a_field(w, p, a, NULL, ret, &step);
}

static void decode_and_compare(const struct workflow *w, const struct task *t,
                               const struct task_row *row, struct encoded *kept, struct arena *a)
{
    struct task back;
    struct error e = {0};

    CHECK(task_decode_kept(w, row, kept, a, &back, &e) == ERR_OK, "%s: %.*s", e.text,
          SLICE_ARG(row->doc));
    tasks_equal(t, &back);
}

static const struct workflow *of_seed(uint64_t seed)
{
    const struct workflow *const list[] = {&kit_workflow_back, &kit_workflow_wait, &kit_workflow,
                                           &kit_workflow_items};

    return list[seed % COUNT_OF(list)];
}

/* The items that came to rest, in the order of their slots. Then the slots are free. */
static void decode_and_compare_items(const struct workflow *w, struct task *t,
                                     const struct task_row *row, struct arena *a)
{
    size_t count = 0;

    for (uint16_t u = t->step_count; u < task_unit_count(t); u++) {
        struct step back;
        struct error e = {0};
        if (t->steps[u].slot != SLOT_RESTING)
            continue;
        CHECK(count < row->item_count, "a row for each");
        struct item_row item = row->items[count++];
        CHECK(slice_eq(item.step, w->steps[u].name) && item.number == t->steps[u].item
                  && item.generation == t->steps[unit_step(w, u)].generation
                  && item.state == t->steps[u].state && item.in_doubt == step_in_doubt(&t->steps[u])
                  && item.needs_undo == step_needs_undo(&w->steps[u], &t->steps[u]),
              "columns of item %u", item.number);
        item.payloads = row->payloads;
        item.payload_count = row->payload_count;
        CHECK(item_decode(w, unit_step(w, u), &item, a, &back, &e) == ERR_OK, "%s: %.*s", e.text,
              SLICE_ARG(item.doc));
        CHECK(back.slot == SLOT_FREE, "it is in no slot");
        items_equal(&t->steps[u], &back);
    }
    CHECK(count == row->item_count, "%zu rows, %zu items came to rest", row->item_count, count);
    slots_settle(w, t);
}

static void every_field_survives_the_document(void **state)
{
    (void)state;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf doc = {0};
        struct prng p = {seed};
        const struct workflow *w = of_seed(seed);
        struct task t;
        struct task_row row;

        draw(w, &p, &a, &t);
        task_encode(w, &t, &a, &doc, &row);
        decode_and_compare_items(w, &t, &row, &a);
        decode_and_compare(w, &t, &row, NULL, &a);
    }
    all_fields_were_compared(LEAST, NULL);
}

/* All that was ever given to the payload table. */
struct stored {
    struct payload list[PAYLOADS_MAX];
    size_t count;
};

static void store_payloads(struct stored *s, struct task_row *row)
{
    CHECK(s->count + row->payload_count <= COUNT_OF(s->list), "few payloads");
    for (size_t i = 0; i < row->payload_count; i++)
        s->list[s->count++] = row->payloads[i];
    row->payloads = s->list;
    row->payload_count = s->count;
}

/* As whoever owns it does: one field after the other, and he says of which step it is. */
static void change_some(const struct workflow *w, struct prng *p, struct arena *a, struct task *t,
                        struct encoded *kept)
{
    for (int changed = 0; changed < 3;) {
        int step;
        if (!change_a_field(w, p, a, NULL, t, &step))
            continue;
        if (step >= 0)
            encoded_look_at(kept, step);
        changed++;
    }
}

static void every_field_survives_groups(void **state)
{
    const struct workflow *w = kit_workflow_long();
    static struct stored stored;
    size_t grouped = 0;
    (void)state;

    for (uint64_t seed = 0; seed < SEEDS / 4; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct prng p = {seed};
        struct encoded *kept = encoded_new(w, &a);
        struct task t;

        draw(w, &p, &a, &t);
        stored.count = 0;
        for (int i = 0; i < WRITINGS; i++) {
            CLEANUP(buf_fini) struct buf doc = {0};
            struct task_row row;
            task_encode_again(w, &t, kept, &a, &doc, &row);
            store_payloads(&stored, &row);
            decode_and_compare_items(w, &t, &row, &a);
            decode_and_compare(w, &t, &row, i % 2 ? NULL : encoded_new(w, &a), &a);
            grouped += doc_is_grouped(row.doc);
            change_some(w, &p, &a, &t, kept);
        }
    }
    CHECK(grouped > SEEDS, "in groups %zu times", grouped);
    all_fields_were_compared(LEAST, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_survives_the_document),
        cmocka_unit_test(every_field_survives_groups),
    };
    return cmocka_run_group_tests_name("codec-fields", tests, NULL, NULL);
}
