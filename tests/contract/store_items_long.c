/* The contract of every store for long values of items: the payloads that an item had while it was
 * at work go with the change by which it comes to rest, and no others do. So what a read of the
 * task costs does not grow with the items that are done. */

#include "store_world.h"

#include <stdio.h>

#include "base/buf.h"
#include "core/items.h"
#include "store/codec/codec.h"

static const struct payload five[] = {
    {1, {"\"a\"", 3}}, {2, {"\"b\"", 3}}, {3, {"\"c\"", 3}}, {4, {"\"d\"", 3}}, {5, {"\"e\"", 3}}};

static void insert_five(struct world *w, const char *id)
{
    struct task_row row = a_row(id);

    row.payloads = five;
    row.payload_count = COUNT_OF(five);
    must(insert_row(w, row), id);
}

static struct change dropping(const char *id, uint64_t revision, const uint32_t *numbers,
                              size_t count)
{
    struct change c = {.kind = CHANGE_UPDATE, .row = a_row(id)};

    c.row.revision = revision;
    c.row.dropped_payloads = numbers;
    c.row.dropped_payload_count = count;
    return c;
}

/* The numbers of all that are there. */
static void has_payloads(struct world *w, const char *id, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct task_row row = fetch(w, id);

    for (size_t i = 0; i < row.payload_count; i++)
        buf_fmt(&b, "%u ", row.payloads[i].number);
    CHECK(strcmp(b.ptr ? b.ptr : "", want) == 0, "%s has %s, expected: %s", id, b.ptr, want);
}

static void payloads_go_with_the_change(void **state)
{
    struct world *w = *state;
    const struct payload six = {6, SLICE("\"f\"")};
    const struct item_row item = {.step = SLICE("pack"),
                                  .state = STEP_COMPLETED,
                                  .doc = SLICE("{\"state\":\"completed\"}")};
    struct change c = dropping("one", 2, (uint32_t[]){2, 4, 9}, 3);

    insert_five(w, "one");
    insert_five(w, "two");
    c.row.items = &item;
    c.row.item_count = 1;
    c.row.payloads = &six;
    c.row.payload_count = 1;
    must(put_change(w, c), "an item came to rest");
    has_payloads(w, "one", "1 3 5 6 ");
    must(put_change(w, dropping("one", 3, (uint32_t[]){1}, 1)), "without an item");
    world_restart(w);
    has_payloads(w, "one", "3 5 6 ");
    has_payloads(w, "two", "1 2 3 4 5 ");
}

static void a_change_that_is_not_done_deletes_none(void **state)
{
    struct world *w = *state;
    const uint32_t numbers[] = {1, 5};
    struct change c = dropping("one", 2, numbers, 2);

    insert_five(w, "one");
    insert_five(w, "two");
    struct change both[] = {dropping("one", 3, numbers, 2), dropping("two", 2, numbers, 1)};
    struct batch b = {.changes = both, .change_count = 2};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w->e.text);
    CHECK(both[0].outcome == ERR_CONFLICT && both[1].outcome == ERR_OK, "one of two");
    has_payloads(w, "two", "2 3 4 5 ");
    c.notices = (int64_t[]){77};
    c.notice_count = 1;
    CHECK(put_change(w, c) == ERR_CONFLICT, "its notice is gone");
    c = dropping("one", 2, numbers, 2);
    c.row.payloads = five; /* the first is one of those */
    c.row.payload_count = 1;
    CHECK(put_change(w, c) == ERR_INVALID, "one that it inserts");
    c = dropping("one", 2, (uint32_t[]){5, 0}, 2);
    CHECK(put_change(w, c) == ERR_INVALID, "no number");
    c = dropping("one", 2, (uint32_t[]){5, PAYLOAD_NUMBER_MAX + 1}, 2);
    CHECK(put_change(w, c) == ERR_INVALID, "beyond the last, where those of a neighbour are");
    c = dropping("one", 2, numbers, 2);
    c.kind = CHANGE_REQUEST;
    CHECK(put_change(w, c) == ERR_INVALID, "a request");
    has_payloads(w, "one", "1 2 3 4 5 ");
}

/* ---- a task with many items ---- */

enum { ITEMS = 300, AT_ONCE = 20, INPUT = 3000, OUTPUT = 20000 };

#define A_SLOT                                                                                  \
    {                                                                                           \
        .name = {"pack", 4}, .kind = KIND_CALL,                                                 \
        .each = {.max_items = ITEMS, .concurrency = AT_ONCE, .step = 0}, .undo_kind = UNDO_CALL \
    }
#define FIVE_SLOTS A_SLOT, A_SLOT, A_SLOT, A_SLOT, A_SLOT

static const struct workflow_step steps[1 + AT_ONCE] = {
    {.name = {"pack", 4},
     .kind = KIND_EACH,
     .each = {.max_items = ITEMS, .concurrency = AT_ONCE, .slots_at = 1, .slot_count = AT_ONCE},
     .undo_kind = UNDO_CALL},
    FIVE_SLOTS,
    FIVE_SLOTS,
    FIVE_SLOTS,
    FIVE_SLOTS,
};

static const struct workflow flow = {
    .name = {"order", 5}, .version = 1, .steps = steps, .step_count = 1, .slot_count = AT_ONCE};

static struct slice text_of(struct arena *a, size_t len, uint32_t number)
{
    char *text = arena_bytes(a, len);

    memset(text, (int)('a' + number % 26), len);
    text[0] = text[len - 1] = '"';
    return (struct slice){text, len};
}

/* What a step with a list has before its first item begins. */
static struct task new_task(struct arena *a)
{
    enum { PARTS = (ITEMS + ITEMS_OF_PART - 1) / ITEMS_OF_PART };
    struct task t = {.id = SLICE("one"),
                     .revision = 1,
                     .state = TASK_PROCESSING,
                     .submitted_at = 1,
                     .step_count = 1,
                     .slot_count = AT_ONCE};
    struct items *in = arena_alloc(a, sizeof *in);

    t.steps = arena_alloc(a, task_unit_count(&t) * sizeof *t.steps);
    *in = (struct items){.list = {.count = ITEMS, .part_count = PARTS}, .undo_below = ITEMS};
    in->list.parts = arena_alloc(a, PARTS * sizeof *in->list.parts);
    for (uint16_t i = 0; i < PARTS; i++)
        in->list.parts[i].json = SLICE("[1]");
    t.steps[0] = (struct step){.begun_at = 5, .items = in};
    return t;
}

static void store(struct world *w, struct task *t)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct change c = {.kind = t->revision == 1 ? CHANGE_INSERT : CHANGE_UPDATE};
    struct task_row row;

    items_tally(&flow, t, 0); /* begin() and end() do not count */
    task_encode(&flow, t, &w->a, &doc, &row);
    c.row = a_row("one");
    c.row.revision = t->revision++;
    c.row.doc = row.doc;
    c.row.payloads = row.payloads;
    c.row.payload_count = row.payload_count;
    c.row.items = row.items;
    c.row.item_count = row.item_count;
    c.row.dropped_payloads = row.dropped_payloads;
    c.row.dropped_payload_count = row.dropped_payload_count;
    must(put_change(w, c), "a change");
    items_stored(&flow, t);
}

static void begin(struct task *t, struct arena *a, struct step *s)
{
    *s = (struct step){.state = STEP_RUNNING,
                       .slot = SLOT_TAKEN,
                       .item = t->steps[0].items->begun++,
                       .attempt = 1,
                       .attempt_count = 1,
                       .attempt_cap = 1};
    s->attempts = arena_alloc(a, sizeof *s->attempts);
    s->attempts[0] = (struct attempt){.number = 1,
                                      .outcome = OUTCOME_OPEN,
                                      .effect = EFFECT_UNKNOWN,
                                      .started_at = 10,
                                      .complete_by = 30};
    s->input.json = text_of(a, INPUT, s->item);
}

static void end(struct task *t, struct arena *a, struct step *s)
{
    struct items *in = t->steps[0].items;

    s->attempts[0].outcome = OUTCOME_COMPLETED;
    s->attempts[0].effect = EFFECT_HAPPENED;
    s->attempts[0].ended_at = 20;
    s->output.json = text_of(a, OUTPUT, s->item);
    s->state = STEP_COMPLETED;
    s->slot = SLOT_RESTING;
    in->completed++;
    in->effects++;
    in->to_undo++;
}

static size_t bytes_of(const struct task_row *row)
{
    size_t bytes = row->doc.len;

    for (size_t i = 0; i < row->payload_count; i++)
        bytes += row->payloads[i].json.len;
    return bytes;
}

/* Each of them is in the array, as its own text. */
static void has_all_outputs(struct world *w)
{
    struct item_outputs o = {.task = SLICE("one"),
                             .step = SLICE("pack"),
                             .item_count = ITEMS,
                             .bytes_max = 16 << 20};

    must(w->s->ops->items->outputs(w->s, &o, &w->a, &w->e), w->e.text);
    CHECK(o.json.len == (size_t)ITEMS * (OUTPUT + 1) + 1, "%zu bytes", o.json.len);
    for (uint32_t i = 0; i < ITEMS; i++)
        CHECK(o.json.ptr[i * (OUTPUT + 1) + 2] == (char)('a' + i % 26), "output %u", i);
}

static void items_at_rest_cost_a_task_nothing(void **state)
{
    struct world *w = *state;
    struct task t = new_task(&w->a);
    struct task back;

    store(w, &t);
    const struct task_row begun = fetch(w, "one");
    while (t.steps[0].items->begun < ITEMS) {
        for (uint16_t u = 1; u <= AT_ONCE; u++)
            begin(&t, &w->a, &t.steps[u]);
        store(w, &t);
        const struct task_row at_work = fetch(w, "one");
        CHECK(bytes_of(&at_work) > AT_ONCE * INPUT && bytes_of(&at_work) < 2 * AT_ONCE * INPUT,
              "%zu bytes while %d are at work", bytes_of(&at_work), AT_ONCE);
        for (uint16_t u = 1; u <= AT_ONCE; u++)
            end(&t, &w->a, &t.steps[u]);
        store(w, &t);
    }
    world_restart(w);
    const struct task_row row = fetch(w, "one");
    CHECK(row.payload_count == t.steps[0].items->list.part_count
              && bytes_of(&row) < bytes_of(&begun) + 200,
          "%zu payloads, %zu bytes, not %zu", row.payload_count, bytes_of(&row), bytes_of(&begun));
    struct claim c = claim_of(w, CLAIM_AGENT, "a", 9, 2000);
    claim_commit(w, &c);
    CHECK(c.row_count == 1 && bytes_of(&c.rows[0]) == bytes_of(&row), "a claim reads no more");
    must(task_decode(&flow, &row, &w->a, &back, &w->e), w->e.text);
    CHECK(back.steps[0].items->completed == ITEMS, "all are done");
    has_all_outputs(w);
    struct item_read r = {.task = SLICE("one"),
                          .step = SLICE("pack"),
                          .limit = ITEMS,
                          .bytes_max = 1 << 20};
    must(w->s->ops->items->read(w->s, &r, &w->a, &w->e), w->e.text);
    CHECK(r.count > 40 && r.count < 50 && r.more, "%zu fit into a page", r.count);
    for (size_t i = 0; i < r.count; i++) {
        struct step item;
        must(item_decode(&flow, 0, &r.rows[i], &w->a, &item, &w->e), w->e.text);
        CHECK(slice_eq(item.input.json, text_of(&w->a, INPUT, item.item))
                  && slice_eq(item.output.json, text_of(&w->a, OUTPUT, item.item)),
              "item %u has its values", item.item);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(payloads_go_with_the_change),
        ON_ALL(a_change_that_is_not_done_deletes_none),
        ON_ALL(items_at_rest_cost_a_task_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
