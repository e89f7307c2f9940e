/*
 * How items of steps with for_each are written and read: the names in the document, the payloads of
 * the list, rows of items that came to rest, what is refused as corrupt, and steps with items in
 * groups. fields_test.c tests that each field survives.
 */

#include "base/test.h"

#include "core/items.h"
#include "store/codec/test_kit.h"

enum { PACK = 0, CHARGE, PARCEL, PACK_SLOTS = 3, ROOM = 4 };

static const struct workflow *const w = &kit_workflow_items;

static void add_attempt(struct step *s, struct arena *a, enum outcome outcome, enum effect effect)
{
    if (!s->attempts) {
        s->attempts = arena_alloc(a, ROOM * sizeof *s->attempts);
        s->attempt_cap = ROOM;
    }
    s->attempts[s->attempt_count++] = (struct attempt){.number = ++s->attempt,
                                                       .outcome = outcome,
                                                       .effect = effect,
                                                       .started_at = 10,
                                                       .ended_at = outcome == OUTCOME_OPEN ? 0 : 20,
                                                       .complete_by = 30};
}

static struct step an_item(struct arena *a, uint32_t number, enum slot_state slot,
                           enum step_state state)
{
    struct step s = {.state = state, .slot = slot, .item = number};

    if (state == STEP_COMPLETED) {
        add_attempt(&s, a, OUTCOME_COMPLETED, EFFECT_HAPPENED);
        s.output.json = SLICE("{\"n\":1}");
    }
    if (state == STEP_RUNNING)
        add_attempt(&s, a, OUTCOME_OPEN, EFFECT_UNKNOWN);
    if (state == STEP_FAILED) {
        add_attempt(&s, a, OUTCOME_FAILED, EFFECT_NONE);
        s.error = (struct fault_note){SLICE("declined"), SLICE("no")};
    }
    return s;
}

/* A list of 40 items, of which 5 have begun: 0 and 1 are at rest in rows, 2 failed and comes to
 * rest now, 3 and 4 are at work. */
static struct task a_task(struct arena *a)
{
    struct task t = {.id = SLICE("t"),
                     .revision = 1,
                     .state = TASK_PROCESSING,
                     .submitted_at = 1,
                     .family = SLICE("{\"ship-one\":7}"),
                     .input = {SLICE("{\"lines\":[1]}"), 0},
                     .step_count = w->step_count,
                     .slot_count = w->slot_count};
    t.steps = arena_alloc(a, task_unit_count(&t) * sizeof *t.steps);
    struct items *in = arena_alloc(a, sizeof *in);

    in->list = (struct item_list){.count = 40, .part_count = 2};
    in->list.parts = arena_alloc(a, 2 * sizeof *in->list.parts);
    in->list.parts[0].json = SLICE("[1,2]");
    in->list.parts[1].json = SLICE("[3]");
    in->begun = 5;
    in->completed = 2;
    in->failed = 1;
    in->effects = in->to_undo = 2;
    in->undo_below = 40;
    t.steps[PACK] = (struct step){.begun_at = 5, .items = in};
    t.steps[PARCEL].items = arena_alloc(a, sizeof *in);
    t.steps[PACK_SLOTS] = an_item(a, 3, SLOT_TAKEN, STEP_RUNNING);
    t.steps[PACK_SLOTS + 2] = an_item(a, 2, SLOT_RESTING, STEP_FAILED);
    t.steps[PACK_SLOTS + 3] = an_item(a, 4, SLOT_TAKEN, STEP_WAITING);
    slots_tally(w, &t);
    return t;
}

static struct slice encode(struct task *t, struct arena *a, struct task_row *row)
{
    CLEANUP(buf_fini) struct buf doc = {0};

    ASSERT(task_valid(w, t));
    task_encode(w, t, a, &doc, row);
    row->doc = arena_copy(a, row->doc);
    return row->doc;
}

static void decode(const struct task_row *row, struct arena *a, struct task *ret)
{
    struct error e = {0};

    CHECK(task_decode(w, row, a, ret, &e) == ERR_OK, "%s: %.*s", e.text, SLICE_ARG(row->doc));
}

/* ---- the document ---- */

static bool has(struct slice text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

static void the_document_tells_of_items(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_task(&a);
    struct task_row row;
    (void)state;

    struct slice doc = encode(&t, &a, &row);
    CHECK(has(doc,
              "{\"name\":\"pack\",\"state\":\"waiting\",\"begun_at\":5,\"items\":{\"count\":40,"
              "\"begun\":5,\"completed\":2,\"failed\":1,\"effects\":2,\"to_undo\":2,"
              "\"undo_below\":40,\"parts\":2,\"first_part\":1,\"at_work\":[{\"item\":3,"
              "\"state\":\"running\",\"attempt\":1,"),
          "%.*s", SLICE_ARG(doc));
    CHECK(has(doc, "{\"item\":4,\"slot_index\":3,\"state\":\"waiting\"}]}}"), "%.*s",
          SLICE_ARG(doc));
    CHECK(has(doc, "{\"name\":\"parcel\",\"state\":\"waiting\"}]"), "one that has not begun");
    CHECK(row.payload_count == 2 && row.payloads[0].number == 1 && row.payloads[1].number == 2
              && slice_is(row.payloads[0].json, "[1,2]") && slice_is(row.payloads[1].json, "[3]"),
          "the list is in payloads, however short it is");
    CHECK(row.item_count == 1 && slice_is(row.items[0].step, "pack") && row.items[0].number == 2
              && row.items[0].state == STEP_FAILED && !row.items[0].needs_undo,
          "the one that came to rest");
    CHECK(slice_is(row.items[0].doc,
                   "{\"state\":\"failed\",\"attempt\":1,\"error\":{\"code\":\"declined\","
                   "\"message\":\"no\"},\"attempts\":[{\"attempt\":1,\"outcome\":\"failed\","
                   "\"started_at\":10,\"ended_at\":20,\"complete_by\":30}]}"),
          "%.*s", SLICE_ARG(row.items[0].doc));
}

static void a_list_is_written_once(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_task(&a);
    struct task back;
    struct task_row row;
    struct task_row again;
    (void)state;

    t.steps[PACK_SLOTS + 2].output.json = random_value(&(struct prng){1}, &a).json;
    (void)encode(&t, &a, &row);
    (void)encode(&t, &a, &again);
    CHECK(again.payload_count == 0 && again.item_count == 1, "its payloads are there");
    decode(&row, &a, &back);
    CHECK(slice_is(back.steps[PACK].items->list.parts[1].json, "[3]"), "it is read");
    row.payload_count = 0;
    decode(&row, &a, &back);
    const struct item_list *list = &back.steps[PACK].items->list;
    CHECK(list->part_count == 2 && list->parts[0].payload == 1 && list->parts[1].payload == 2
              && list->parts[1].json.len == 0,
          "a row read without payloads has the numbers of the parts");
    CHECK(slice_eq(row.doc, encode(&back, &a, &again)) && again.payload_count == 0, "as it was");
}

/* Whoever has read them knows them, which is nothing to store. */
static void outputs_of_items_are_not_written(void **state)
{
    static const enum step_state states[] = {STEP_COMPLETED, STEP_UNDOING};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(states); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct task t = a_task(&a);
        struct task back;
        struct task_row row;
        struct items *in = t.steps[PACK].items;
        for (uint16_t u = PACK_SLOTS; u < task_unit_count(&t); u++)
            t.steps[u] = (struct step){0};
        in->begun = in->completed = 40;
        in->failed = 0;
        t.steps[PACK].state = states[i];
        if (states[i] == STEP_UNDOING) {
            t.direction = t.steps[PACK].direction = DIRECTION_UNDO;
            t.state = TASK_COMPENSATING;
            t.cause = (struct cause){{SLICE("x"), SLICE("y")}, -1};
        }
        slots_tally(w, &t);
        t.steps[PACK].output = (struct value){SLICE("[\"long\"]"), ITEMS_OUTPUT};
        struct slice doc = encode(&t, &a, &row);
        CHECK(!has(doc, "long") && !has(doc, "output_payload"), "%.*s", SLICE_ARG(doc));
        decode(&row, &a, &back);
        CHECK(back.steps[PACK].output.payload == ITEMS_OUTPUT
                  && back.steps[PACK].output.json.len == 0,
              "the step has an output, which is not known here");
    }
}

static void items_stay_in_their_slots(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_task(&a);
    struct task back;
    struct task_row row;
    (void)state;

    (void)encode(&t, &a, &row);
    decode(&row, &a, &back);
    for (uint16_t i = 0; i < w->steps[PACK].each.slot_count; i++) {
        const struct step *s = &back.steps[PACK_SLOTS + i];
        CHECK(s->slot == (i == 0 || i == 3 ? SLOT_TAKEN : SLOT_FREE), "slot %u", i);
        CHECK(s->item == (i == 0 ? 3 : i == 3 ? 4 : 0), "slot %u has item %u", i, s->item);
    }
}

/* ---- rows ---- */

enum { LONG = PAYLOAD_INLINE_MAX + 1 };

static struct slice long_text(struct arena *a, char c)
{
    char *text = arena_bytes(a, LONG);

    memset(text, c, LONG);
    text[0] = text[LONG - 1] = '"';
    return (struct slice){text, LONG};
}

static void decode_item(const struct task_row *row, struct arena *a, struct step *ret)
{
    struct error e = {0};

    CHECK(row->item_count == 1, "%zu items", row->item_count);
    CHECK(item_decode(w, PACK, &row->items[0], a, ret, &e) == ERR_OK, "%s", e.text);
}

/* Item 3 ended: it has an input, an undo input, and two outputs, all long and in payloads; but its
 * last output is not stored yet. */
static struct task a_long_item_rests(struct arena *a)
{
    struct task t = a_task(a);
    struct step *s = &t.steps[PACK_SLOTS];
    struct items *in = t.steps[PACK].items;
    struct task_row row;

    s->input.json = long_text(a, 'i');
    s->undo_input.json = long_text(a, 'u');
    s->attempts[0].output.json = long_text(a, 'a');
    (void)encode(&t, a, &row);
    CHECK(row.payload_count == 5 && row.dropped_payload_count == 0, "%zu", row.payload_count);
    CHECK(s->input.payload == 3, "the list comes before the values of items");
    items_stored(w, &t);
    s->attempts[0].outcome = OUTCOME_COMPLETED;
    s->attempts[0].effect = EFFECT_HAPPENED;
    s->attempts[0].ended_at = 20;
    s->output.json = long_text(a, 'o');
    s->state = STEP_COMPLETED;
    s->slot = SLOT_RESTING;
    in->completed = in->effects = in->to_undo = 3;
    slots_tally(w, &t);
    return t;
}

static void an_item_at_rest_has_its_values_in_its_row(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_long_item_rests(&a);
    struct task_row row;
    struct step back;
    (void)state;

    struct slice doc = encode(&t, &a, &row);
    CHECK(row.payload_count == 0 && !has(row.items[0].doc, "_payload\":"), "%.*s",
          SLICE_ARG(row.items[0].doc));
    CHECK(row.dropped_payload_count == 3, "%zu", row.dropped_payload_count);
    for (uint32_t i = 0; i < 3; i++)
        CHECK(row.dropped_payloads[i] == 3 + i, "payload %u", row.dropped_payloads[i]);
    CHECK(has(doc, "\"payloads\":5"), "a number is not given out again: %.*s", SLICE_ARG(doc));
    decode_item(&row, &a, &back);
    CHECK(slice_eq(back.input.json, long_text(&a, 'i')) && back.input.payload == 0, "input");
    CHECK(slice_eq(back.undo_input.json, long_text(&a, 'u')), "undo input");
    CHECK(slice_eq(back.output.json, long_text(&a, 'o')) && back.output.payload == 0, "output");
    CHECK(slice_eq(back.attempts[0].output.json, long_text(&a, 'a')), "of the attempt");
}

/* After a commit that failed the task is as it was. */
static void what_was_not_stored_is_written_again(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_long_item_rests(&a);
    struct task_row first;
    struct task_row again;
    (void)state;

    struct slice doc = encode(&t, &a, &first);
    CHECK(slice_eq(encode(&t, &a, &again), doc), "%.*s", SLICE_ARG(again.doc));
    CHECK(again.item_count == 1 && slice_eq(again.items[0].doc, first.items[0].doc), "its row");
    CHECK(again.payload_count == 0 && again.dropped_payload_count == 3
              && memcmp(again.dropped_payloads, first.dropped_payloads, 3 * sizeof(uint32_t)) == 0,
          "its payloads");
    items_stored(w, &t);
    (void)encode(&t, &a, &again);
    CHECK(again.item_count == 0 && again.dropped_payload_count == 0, "it is stored");
}

static void what_others_refer_to_stays(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_long_item_rests(&a);
    struct step *s = &t.steps[PACK_SLOTS];
    struct step *other = &t.steps[PACK_SLOTS + 3];
    struct task_row row;
    (void)state;

    other->input = s->input;
    t.output = s->undo_input;
    t.steps[PACK].items->list.parts[0] = s->attempts[0].output;
    (void)encode(&t, &a, &row);
    CHECK(row.dropped_payload_count == 0, "%zu", row.dropped_payload_count);
    CHECK(!has(row.items[0].doc, "_payload\":"), "%.*s", SLICE_ARG(row.items[0].doc));
    t.output = (struct value){0};
    (void)encode(&t, &a, &row);
    CHECK(row.dropped_payload_count == 1 && row.dropped_payloads[0] == 4, "nothing has it now");
    s->input = (struct value){SLICE(""), 9};
    (void)encode(&t, &a, &row);
    CHECK(has(row.items[0].doc, "\"input_payload\":9") && row.dropped_payload_count == 1,
          "a text that is not known stays where it is: %.*s", SLICE_ARG(row.items[0].doc));
}

/* All items may have it, and it may be as long as their list. */
static void a_row_refers_to_the_long_input_of_its_task(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_task(&a);
    struct step *s = &t.steps[PACK_SLOTS + 2];
    struct task_row row;
    (void)state;

    t.input.json = long_text(&a, 't');
    s->input = s->undo_input = t.input;
    t.steps[PACK_SLOTS].input = t.input;
    struct slice doc = encode(&t, &a, &row);
    CHECK(t.input.payload == PAYLOAD_FIRST && t.steps[PACK].items->list.parts[0].payload == 2,
          "the first number is its");
    CHECK(has(row.items[0].doc, "\"input_payload\":1,") && has(doc, "\"input_payload\":1,"), "%.*s",
          SLICE_ARG(row.items[0].doc));
    (void)encode(&t, &a, &row);
    CHECK(row.dropped_payload_count == 0, "it stays");

    /* the input is corrected: what rests has the one that it had */
    t.input = (struct value){long_text(&a, 'c'), 0};
    t.steps[PACK_SLOTS].input = (struct value){0};
    (void)encode(&t, &a, &row);
    CHECK(t.input.payload == 4 && row.dropped_payload_count == 0, "rows may refer to the first");
    CHECK(has(row.items[0].doc, "\"input_payload\":1,"), "%.*s", SLICE_ARG(row.items[0].doc));
    s->input = t.input;
    (void)encode(&t, &a, &row);
    CHECK(!has(row.items[0].doc, "\"input_payload\"") && row.dropped_payload_count == 0,
          "a row has the text of another, which the task keeps: %.*s", SLICE_ARG(row.items[0].doc));
    s->input = (struct value){long_text(&a, 's'), 0};
    (void)encode(&t, &a, &row);
    CHECK(row.dropped_payload_count == 0 && row.payload_count == 0, "one that never had a number");
}

static void an_item_that_is_brought_back_has_new_numbers(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_long_item_rests(&a);
    struct items *in = t.steps[PACK].items;
    struct task_row row;
    struct step back;
    struct task read;
    (void)state;

    (void)encode(&t, &a, &row);
    decode_item(&row, &a, &back);
    items_stored(w, &t);
    t.steps[PACK_SLOTS + 3] = (struct step){0};
    in->begun = 40;
    in->completed = 39;
    in->failed = 0;
    in->effects = in->to_undo = 2;
    in->undo_below = 3;
    t.direction = t.steps[PACK].direction = DIRECTION_UNDO;
    t.state = TASK_COMPENSATING;
    t.cause = (struct cause){{SLICE("x"), SLICE("y")}, -1};
    t.steps[PACK].state = STEP_UNDOING;
    t.steps[PACK].output = (struct value){SLICE(""), ITEMS_OUTPUT};
    t.steps[PACK_SLOTS + 5] = back;
    t.steps[PACK_SLOTS + 5].slot = SLOT_BACK;
    slots_tally(w, &t);
    (void)encode(&t, &a, &row);
    CHECK(row.payload_count == 4 && row.payloads[0].number == 6, "%zu", row.payload_count);
    row.payloads = (struct payload[]){{1, SLICE("[1,2]")}, {2, SLICE("[3]")}, row.payloads[0],
                                      row.payloads[1],     row.payloads[2],   row.payloads[3]};
    row.payload_count = 6;
    decode(&row, &a, &read);
    CHECK(read.steps[PACK_SLOTS + 5].slot == SLOT_BACK
              && slice_eq(read.steps[PACK_SLOTS + 5].output.json, back.output.json)
              && slice_eq(read.steps[PACK_SLOTS + 5].input.json, back.input.json),
          "in its slot, with its values");
}

/* The task goes back, and all that is left to be undone are two items at rest. */
static struct task a_task_goes_back(struct arena *a)
{
    struct task t = a_task(a);
    struct items *in = t.steps[PACK].items;

    t.steps[PACK_SLOTS] = t.steps[PACK_SLOTS + 2] = t.steps[PACK_SLOTS + 3] = (struct step){0};
    in->begun = 3;
    t.direction = t.steps[PACK].direction = DIRECTION_UNDO;
    t.state = TASK_COMPENSATING;
    t.error = (struct fault_note){SLICE("x"), SLICE("y")};
    t.cause = (struct cause){t.error, -1};
    t.steps[PACK].state = STEP_UNDOING;
    slots_tally(w, &t);
    return t;
}

/* Rows of an earlier version: see mend_lists(). */
static void a_list_that_was_undone_too_early_is_read(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct task t = a_task_goes_back(&a);
    struct task_row row;
    struct task read;
    (void)state;

    struct slice now = encode(&t, &a, &row);
    char *at = memmem(now.ptr, now.len, "undoing", 7);
    CHECK(at, "%.*s", SLICE_ARG(now));
    buf_slice(&doc, slice_cut(now, (size_t)(at - now.ptr)));
    buf_str(&doc, "undone");
    buf_slice(&doc, (struct slice){at + 7, now.len - (size_t)(at + 7 - now.ptr)});
    row.doc = buf_view(&doc);
    decode(&row, &a, &read);
    CHECK(read.steps[PACK].state == STEP_UNDOING && read.steps[PACK].items->to_undo == 2,
          "it is undone further: %s", step_state_text(read.steps[PACK].state));
    row.state = TASK_COMPENSATED;
    row.ended_at = 99;
    decode(&row, &a, &read);
    CHECK(read.steps[PACK].state == STEP_UNDONE, "the record of a task that has ended stays");
    (void)encode(&read, &a, &row); /* it may be written again, and archived */
    decode(&row, &a, &read);
}

/* The row lies apart from the document, which has the task's input. */
static void a_row_has_the_input_that_is_the_tasks(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_task(&a);
    struct task_row row;
    struct step back;
    struct error e = {0};
    (void)state;

    t.steps[PACK_SLOTS].input = t.steps[PACK_SLOTS + 2].input = t.input;
    struct slice doc = encode(&t, &a, &row);
    CHECK(has(doc, "\"input_payload\":0"), "in the document: %.*s", SLICE_ARG(doc));
    CHECK(has(row.items[0].doc, "\"input\":{\"lines\":[1]}"), "%.*s", SLICE_ARG(row.items[0].doc));
    CHECK(item_decode(w, PACK, &row.items[0], &a, &back, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_eq(back.input.json, t.input.json), "it is read back");
}

static void rows_that_do_not_fit_are_corrupt(void **state)
{
    static const char *const docs[] = {
        "{\"state\":\"completed\"",
        "[]",
        "{}",
        "{\"state\":\"failed\",\"error\":{\"code\":\"x\"}}",
        "{\"state\":\"completed\",\"name\":\"pack\",\"supplied\":true,\"output\":1}",
        "{\"state\":\"completed\",\"output\":1}",
        "{\"state\":\"completed\",\"supplied\":true,\"output_payload\":1}",
        "{\"state\":\"completed\",\"supplied\":true,\"output\":1,\"input_payload\":0}",
        "{\"state\":\"completed\",\"supplied\":true,\"output\":1,\"input_payload\":1048576}",
        "{\"state\":\"completed\",\"supplied\":true,\"output\":1,\"attempt\":1}",
    };
    struct item_row row = {.step = SLICE("pack"), .number = 3, .state = STEP_COMPLETED};
    CLEANUP(arena_fini) struct arena a = {0};
    struct step back;
    struct error e = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(docs); i++) {
        row.doc = slice_of(docs[i]);
        CHECK(item_decode(w, PACK, &row, &a, &back, &e) == ERR_CORRUPT, "%s", docs[i]);
        CHECK(strstr(e.text, "item 3 of step pack"), "%s", e.text);
    }
    row.doc = SLICE("{\"state\":\"completed\",\"supplied\":true,\"output\":1}");
    CHECK(item_decode(w, PACK, &row, &a, &back, &e) == ERR_OK, "%s", e.text);
    CHECK(back.item == 3 && back.slot == SLOT_FREE && back.supplied, "read");
    row.state = STEP_RUNNING;
    row.doc = SLICE("{\"state\":\"running\",\"attempt\":1,\"attempts\":[{\"attempt\":1,"
                    "\"outcome\":\"open\",\"effect\":\"unknown\",\"started_at\":1,"
                    "\"complete_by\":2}]}");
    CHECK(item_decode(w, PACK, &row, &a, &back, &e) == ERR_CORRUPT, "it does not rest");
}

/* ---- damage ---- */

/* The document with a part of it replaced. */
static struct slice changed(struct slice doc, const char *from, const char *to, struct arena *a)
{
    const char *at = memmem(doc.ptr, doc.len, from, strlen(from));
    CLEANUP(buf_fini) struct buf b = {0};

    CHECK(at, "%s is not in %.*s", from, SLICE_ARG(doc));
    buf_slice(&b, (struct slice){doc.ptr, (size_t)(at - doc.ptr)});
    buf_str(&b, to);
    size_t behind = (size_t)(at - doc.ptr) + strlen(from);
    buf_slice(&b, (struct slice){doc.ptr + behind, doc.len - behind});
    return arena_copy(a, buf_view(&b));
}

static void documents_that_do_not_fit_are_corrupt(void **state)
{
    static const char *const cases[][2] = {
        {"\"items\":{", "\"items\":7,\"x\":{"},
        {"\"count\":40", "\"count\":65"},
        {"\"count\":40", "\"count\":32"},
        {"\"count\":40", "\"count\":10001"},
        {"\"parts\":2", "\"parts\":1"},
        {"\"first_part\":1", "\"first_part\":0"},
        {"\"first_part\":1", "\"first_part\":2"},
        {"\"first_part\":1", "\"first_part\":9"},
        {"\"begun\":5", "\"begun\":6"},
        {"\"completed\":2", "\"completed\":1"},
        {"\"undo_below\":40", "\"undo_below\":41"},
        {"\"at_work\":[", "\"at_work\":7,\"x\":["},
        {"\"at_work\":[", "\"at_work\":[{},"},
        {"\"item\":3", "\"item\":4"},
        {"\"item\":3", "\"item\":5"},
        {"\"item\":3", "\"item\":-1"},
        {"\"slot_index\":3", "\"slot_index\":0"},
        {"\"slot_index\":3", "\"slot_index\":7"},
        {"\"slot_index\":3", "\"slot_index\":-1"},
        {"\"item\":3", "\"item\":3,\"slot\":\"resting\""},
        {"\"item\":3", "\"item\":3,\"name\":\"pack\""},
        {"\"at_work\":[", "\"at_work\":[{},{},{},{},{},"},
    };
    CLEANUP(arena_fini) struct arena a = {0};
    struct task t = a_task(&a);
    struct task_row row;
    struct task back;
    struct error e = {0};
    (void)state;

    struct slice doc = encode(&t, &a, &row);
    decode(&row, &a, &back);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        row.doc = changed(doc, cases[i][0], cases[i][1], &a);
        CHECK(task_decode(w, &row, &a, &back, &e) == ERR_CORRUPT, "%s", cases[i][1]);
    }
}

/* ---- groups ---- */

/* The step of the long workflow that has items has ended: it had one. */
static struct task a_long_task(const struct workflow *flow, struct arena *a, uint16_t each)
{
    struct prng p = {7};
    struct items *in = arena_alloc(a, sizeof *in);
    struct task t;

    do
        t = random_task(flow, &p, a);
    while (t.state != TASK_PROCESSING || t.direction != DIRECTION_FORWARD);
    t.revision = 1;
    for (uint16_t u = flow->step_count; u < task_unit_count(&t); u++)
        t.steps[u] = (struct step){0};
    *in = (struct items){.list = {.count = 1, .part_count = 1},
                         .begun = 1,
                         .completed = 1,
                         .effects = 1,
                         .to_undo = 1,
                         .undo_below = 1};
    in->list.parts = arena_alloc(a, sizeof *in->list.parts);
    in->list.parts[0].json = SLICE("[1]");
    t.steps[each] = (struct step){.state = STEP_COMPLETED,
                                  .begun_at = 5,
                                  .output = {SLICE(""), ITEMS_OUTPUT},
                                  .items = in};
    slots_tally(flow, &t);
    return t;
}

static void encode_long(const struct workflow *flow, struct task *t, struct encoded *kept,
                        struct arena *a, struct task_row *row)
{
    CLEANUP(buf_fini) struct buf doc = {0};

    task_encode_again(flow, t, kept, a, &doc, row);
    row->doc = arena_copy(a, row->doc);
    t->revision++;
}

/* An event on an item names its slot. */
static void a_step_in_a_group_leaves_it_with_its_items(void **state)
{
    const struct workflow *flow = kit_workflow_long();
    CLEANUP(arena_fini) struct arena a = {0};
    struct encoded *kept = encoded_new(flow, &a);
    struct task_row row;
    uint16_t each = flow->steps[flow->step_count].each.step;
    uint16_t slot = flow->steps[each].each.slots_at;
    struct task t = a_long_task(flow, &a, each);
    struct items *in = t.steps[each].items;
    (void)state;

    encode_long(flow, &t, kept, &a, &row);
    for (int i = 0; i < 40 && !doc_is_grouped(row.doc); i++) {
        t.steps[0].error.message = random_value(&(struct prng){(uint64_t)i}, &a).json;
        encoded_look_at(kept, 0);
        encode_long(flow, &t, kept, &a, &row);
    }
    CHECK(doc_is_grouped(row.doc) && !has(row.doc, "\"items\":{\"count\":1"), "%.*s",
          SLICE_ARG(row.doc));

    /* its outputs become known: nothing changed */
    t.steps[each].output.json = SLICE("[2]");
    for (int i = 0; i < 20; i++)
        encode_long(flow, &t, kept, &a, &row);
    CHECK(!has(row.doc, "\"items\":{\"count\":1"), "it still rests");

    /* its item is brought back */
    t.direction = DIRECTION_UNDO;
    t.state = TASK_COMPENSATING;
    t.steps[each].direction = DIRECTION_UNDO;
    t.steps[each].state = STEP_UNDOING;
    t.steps[slot] = an_item(&a, 0, SLOT_BACK, STEP_COMPLETED);
    in->completed = in->effects = in->to_undo = in->undo_below = 0;
    slots_tally(flow, &t);
    t.revision = 33; /* only what is named is looked at */
    encoded_look_at(kept, slot);
    encode_long(flow, &t, kept, &a, &row);
    CHECK(has(row.doc, "\"items\":{\"count\":1,\"begun\":1,\"parts\":1,\"first_part\":")
              && has(row.doc, "\"at_work\":[{\"slot\":\"back\",\"state\":\"completed\""),
          "%.*s", SLICE_ARG(row.doc));
    encoded_look_at(kept, flow->step_count + flow->slot_count); /* there is none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_tells_of_items),
        cmocka_unit_test(a_list_is_written_once),
        cmocka_unit_test(outputs_of_items_are_not_written),
        cmocka_unit_test(items_stay_in_their_slots),
        cmocka_unit_test(an_item_at_rest_has_its_values_in_its_row),
        cmocka_unit_test(what_was_not_stored_is_written_again),
        cmocka_unit_test(what_others_refer_to_stays),
        cmocka_unit_test(a_row_refers_to_the_long_input_of_its_task),
        cmocka_unit_test(an_item_that_is_brought_back_has_new_numbers),
        cmocka_unit_test(a_list_that_was_undone_too_early_is_read),
        cmocka_unit_test(a_row_has_the_input_that_is_the_tasks),
        cmocka_unit_test(rows_that_do_not_fit_are_corrupt),
        cmocka_unit_test(documents_that_do_not_fit_are_corrupt),
        cmocka_unit_test(a_step_in_a_group_leaves_it_with_its_items),
    };
    return cmocka_run_group_tests_name("codec-items", tests, NULL, NULL);
}
