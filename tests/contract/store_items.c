/* The contract of every store for items at rest: they are written with the change of their task, or
 * not at all, are read in pages and as an array of outputs, and go with their task. Each test names
 * one promise and runs on all stores (store_world.h). */

#include "shell.h"

#include <stdio.h>

#include <libpq-fe.h>

#include "base/buf.h"
#include "postgres/cluster.h"

static struct item_row an_item(uint32_t number, enum step_state state, const char *doc)
{
    return (struct item_row){.step = SLICE("pack"),
                             .number = number,
                             .state = state,
                             .doc = slice_of(doc)};
}

static struct change update_of(const char *id, uint64_t revision, const struct item_row *items,
                               size_t count)
{
    struct change c = {.kind = CHANGE_UPDATE, .row = a_row(id)};

    c.row.revision = revision;
    c.row.items = items;
    c.row.item_count = count;
    return c;
}

static enum err put_items(struct world *w, const char *id, uint64_t revision,
                          const struct item_row *items, size_t count)
{
    return put_change(w, update_of(id, revision, items, count));
}

static enum err put_item(struct world *w, const char *id, uint64_t revision, struct item_row item)
{
    return put_items(w, id, revision, &item, 1);
}

static struct item_read page_of(const char *id, enum item_order order, int64_t from, size_t limit)
{
    return (struct item_read){
        .task = slice_of(id), .step = SLICE("pack"), .order = order, .from = from, .limit = limit};
}

static void read_page(struct world *w, struct item_read *r)
{
    must(w->s->ops->items->read(w->s, r, &w->a, &w->e), w->e.text);
}

/* Numbers and states, and a "+" if there are more. */
static void page_is(struct world *w, struct item_read r, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};

    read_page(w, &r);
    for (size_t i = 0; i < r.count; i++)
        buf_fmt(&b, "%u %s, ", r.rows[i].number, step_state_text(r.rows[i].state));
    buf_fmt(&b, "%s", r.more ? "+" : "");
    CHECK(strcmp(b.ptr, want) == 0, "there are: %s; expected: %s", b.ptr, want);
}

static void all_are(struct world *w, const char *id, const char *want)
{
    page_is(w, page_of(id, ITEMS_UP, 0, 9999), want);
}

static void row_is(const struct item_row *row, const struct item_row *want)
{
    CHECK(slice_eq(row->step, want->step) && row->generation == want->generation
              && row->number == want->number && row->state == want->state
              && row->in_doubt == want->in_doubt && row->needs_undo == want->needs_undo
              && slice_eq(row->doc, want->doc),
          "item %u: %u, %d, %d, %.*s", want->number, row->state, row->in_doubt, row->needs_undo,
          SLICE_ARG(row->doc));
}

/* ---- writing ---- */

static void items_are_there_with_the_change(void **state)
{
    struct world *w = *state;
    struct item_row items[] = {
        an_item(7, STEP_COMPLETED, "{\"state\":\"completed\",\"output\":1.50}"),
        an_item(0, STEP_FAILED, "{\"state\":\"failed\"}"),
        an_item(3, STEP_SKIPPED, "{\"state\":\"skipped\"}"),
        an_item(4, STEP_UNDONE, "{\"state\":\"undone\",\"x\":\"gr\xc3\xbc\xc3\x9f\"}"),
    };
    static const size_t order[] = {1, 2, 3, 0};
    struct item_read r = page_of("one", ITEMS_UP, 0, 9);

    items[0].needs_undo = true;
    items[1].in_doubt = true;
    must(insert_row(w, a_row("one")), "one");
    all_are(w, "one", "");
    must(put_items(w, "one", 2, items, COUNT_OF(items)), "four came to rest");
    world_restart(w);
    read_page(w, &r);
    CHECK(r.count == 4 && !r.more, "%zu", r.count);
    for (size_t i = 0; i < r.count; i++)
        row_is(&r.rows[i], &items[order[i]]);
    all_are(w, "two", "");
}

static void a_task_may_come_with_items(void **state)
{
    struct world *w = *state;
    const struct item_row item = an_item(0, STEP_COMPLETED, "{}");
    struct task_row row = a_row("one");

    row.items = &item;
    row.item_count = 1;
    must(insert_row(w, row), "insert");
    all_are(w, "one", "0 completed, ");
    CHECK(insert_row(w, row) == ERR_CONFLICT, "it is there");
    row.id = SLICE("two");
    row.items = NULL;
    row.item_count = 0;
    must(insert_row(w, row), "insert");
    all_are(w, "two", "");
}

/* All of its columns, and those of no other. */
static void an_item_that_comes_to_rest_again_replaces_its_row(void **state)
{
    struct world *w = *state;
    struct item_row was[] = {an_item(1, STEP_COMPLETED, "{\"a\":1}"),
                             an_item(2, STEP_COMPLETED, "{\"a\":2}")};
    struct item_row now = an_item(1, STEP_UNDONE, "{\"a\":3}");
    struct item_row later = an_item(1, STEP_FAILED, "{\"a\":4}");
    struct item_read r = page_of("one", ITEMS_UP, 0, 9);

    was[0].needs_undo = was[1].needs_undo = true;
    now.in_doubt = true;
    later.generation = 1;
    must(insert_row(w, a_row("one")), "one");
    must(put_items(w, "one", 2, was, 2), "forward");
    must(put_item(w, "one", 3, now), "back");
    must(put_item(w, "one", 4, later), "another list");
    read_page(w, &r);
    CHECK(r.count == 2, "%zu", r.count);
    row_is(&r.rows[0], &now);
    row_is(&r.rows[1], &was[1]);
    page_is(w, page_of("one", ITEMS_TO_UNDO, 99, 9), "2 completed, ");
}

static void a_change_that_is_not_done_writes_no_item(void **state)
{
    struct world *w = *state;
    const struct item_row was = an_item(0, STEP_COMPLETED, "{\"a\":1}");
    const struct item_row items[] = {an_item(0, STEP_FAILED, "{\"a\":2}"),
                                     an_item(1, STEP_FAILED, "{\"a\":3}")};
    struct payload twice[] = {{1, SLICE("1")}, {1, SLICE("2")}};
    struct change c = update_of("one", 3, items, 2);
    struct item_read r = page_of("one", ITEMS_UP, 0, 9);

    must(insert_row(w, a_row("one")), "one");
    must(put_item(w, "one", 2, was), "0");
    CHECK(put_items(w, "one", 2, items, 2) == ERR_CONFLICT, "it was changed by another");
    CHECK(put_items(w, "one", 4, items, 2) == ERR_CONFLICT, "another revision");
    CHECK(put_items(w, "none", 2, items, 2) == ERR_CONFLICT, "it is gone");
    c.notices = (int64_t[]){77};
    c.notice_count = 1;
    CHECK(put_change(w, c) == ERR_CONFLICT, "its notice is gone");
    c = update_of("one", 3, items, 2);
    c.row.payloads = twice;
    c.row.payload_count = 2;
    CHECK(put_change(w, c) == ERR_INVALID, "a payload twice");
    read_page(w, &r);
    CHECK(r.count == 1, "%zu", r.count);
    row_is(&r.rows[0], &was);
}

static void what_cannot_be_an_item_is_refused_alone(void **state)
{
    struct world *w = *state;
    struct item_row bad[] = {an_item(0, STEP_RUNNING, "{}"), an_item(0, STEP_WAITING, "{}"),
                             an_item(0, STEP_UNDOING, "{}"), an_item(ITEMS_MAX, STEP_FAILED, "{}"),
                             an_item(0, STEP_FAILED, "{}"),  an_item(0, STEP_FAILED, "{}")};
    const struct item_row twice[] = {an_item(5, STEP_FAILED, "{}"), an_item(6, STEP_FAILED, "{}"),
                                     an_item(5, STEP_FAILED, "{}")};
    struct item_row good = an_item(ITEMS_MAX - 1, STEP_COMPLETED, "{}");

    must(insert_row(w, a_row("good")), "good");
    must(insert_row(w, a_row("twice")), "twice");
    bad[4].step = SLICE_NONE;
    bad[5].doc = SLICE_NONE;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char id[8];
        (void)snprintf(id, sizeof id, "t-%zu", i);
        must(insert_row(w, a_row(id)), id);
        struct change both[] = {update_of(id, 2, &bad[i], 1), update_of("good", i + 2, &good, 1)};
        struct batch b = {.changes = both, .change_count = 2};
        must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w->e.text);
        CHECK(both[0].outcome == ERR_INVALID && both[1].outcome == ERR_OK, "bad %zu: %s, %s", i,
              err_text(both[0].outcome), err_text(both[1].outcome));
        all_are(w, id, "");
    }
    CHECK(put_items(w, "twice", 2, twice, 3) == ERR_INVALID, "one twice");
    struct change c = update_of("twice", 2, &good, 1);
    c.kind = CHANGE_REQUEST;
    CHECK(put_change(w, c) == ERR_INVALID, "a request has none");
    all_are(w, "twice", "");
    all_are(w, "good", "9999 completed, ");
}

static void what_is_no_text_is_refused_alone(void **state)
{
    struct world *w = *state;
    struct item_row bad[] = {an_item(0, STEP_FAILED, "{\"a\":\"\xff\"}"),
                             an_item(0, STEP_FAILED, "{}")};

    bad[1].step = SLICE("\xff");
    must(insert_row(w, a_row("one")), "one");
    CHECK(put_item(w, "one", 2, bad[0]) == ERR_INVALID, "a document");
    CHECK(put_item(w, "one", 2, bad[1]) == ERR_INVALID, "a step");
    all_are(w, "one", "");
}

/* Items, notices, children and plain changes in one batch: each of those that are done has what is
 * its own. */
static void each_of_many_writes_its_own(void **state)
{
    enum { TASKS = 12 };
    struct world *w = *state;
    struct change changes[TASKS] = {0};
    struct item_row items[TASKS][2];
    char ids[TASKS][24];
    const struct notice_row tell = {.task = SLICE("root"),
                                    .sender = SLICE("t"),
                                    .kind = NOTICE_CHILD,
                                    .at = 7,
                                    .body = SLICE("{}")};
    const struct submission_row child = {.source = CHILD_SOURCE,
                                         .key = SLICE("c"),
                                         .id = SLICE("c"),
                                         .workflow = SLICE("w"),
                                         .child = SLICE("{}")};
    const struct task_wait wait = {SLICE("b"), 9};
    struct payload payload = {1, SLICE("\"p\"")};

    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < TASKS; i++) {
            (void)snprintf(ids[i], sizeof ids[i], "%d-%u", round, i);
            must(insert_row(w, a_row(ids[i])), ids[i]);
            items[i][0] = an_item(i, STEP_COMPLETED, "{}");
            items[i][1] = an_item(i + 100, STEP_FAILED, "{}");
            changes[i] = update_of(ids[i], i % 4 == 3 ? 3 : 2, items[i], i % 3);
        }
        if (round >= 1) {
            changes[5].row.payloads = &payload;
            changes[5].row.payload_count = 1;
        }
        if (round >= 2) {
            changes[6].row.waits = &wait;
            changes[6].row.wait_count = 1;
            changes[6].row.waiting_for = SLICE(",b");
        }
        if (round >= 3) {
            changes[8].tells = &tell;
            changes[8].tell_count = 1;
        }
        if (round >= 4) {
            changes[9].children = &child;
            changes[9].child_count = 1;
        }
        struct batch b = {.changes = changes, .change_count = TASKS};
        must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w->e.text);
        for (uint32_t i = 0; i < TASKS; i++) {
            char want[64] = "";
            bool done = i % 4 != 3;
            CHECK(changes[i].outcome == (done ? ERR_OK : ERR_CONFLICT), "%s: %s", ids[i],
                  err_text(changes[i].outcome));
            if (done && i % 3 == 1)
                (void)snprintf(want, sizeof want, "%u completed, ", i);
            if (done && i % 3 == 2)
                (void)snprintf(want, sizeof want, "%u completed, %u failed, ", i, i + 100);
            all_are(w, ids[i], want);
        }
    }
}

/* ---- pages ---- */

/* Items 0, 10, 20 ... 90, of which those of even tens need to be undone; and others' around them.
 */
static void put_many(struct world *w)
{
    enum { MANY = 10 };
    struct item_row items[MANY * 4];
    size_t count = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        struct item_row item = an_item(i * 10, STEP_COMPLETED, "{\"state\":\"completed\"}");
        item.needs_undo = i % 2 == 0;
        item.generation = 1;
        items[count++] = item;
        item.generation = 0;
        items[count++] = item;
        item.generation = 2;
        items[count++] = item;
        item.generation = 1;
        item.step = SLICE("pack2");
        items[count++] = item;
    }
    must(insert_row(w, a_row("one")), "one");
    must(insert_row(w, a_row("two")), "two");
    must(put_items(w, "one", 2, items, count), "one");
    must(put_items(w, "two", 2, items, count), "two");
}

static struct item_read many_of(enum item_order order, int64_t from, size_t limit)
{
    struct item_read r = page_of("one", order, from, limit);

    r.generation = 1;
    return r;
}

static struct item_row a_failed(uint32_t number)
{
    struct item_row item = an_item(number, STEP_FAILED, "{}");

    item.generation = 1;
    return item;
}

static void pages_go_up_and_down(void **state)
{
    struct world *w = *state;

    put_many(w);
    page_is(w, many_of(ITEMS_UP, 0, 3), "0 completed, 10 completed, 20 completed, +");
    page_is(w, many_of(ITEMS_UP, 21, 2), "30 completed, 40 completed, +");
    page_is(w, many_of(ITEMS_UP, 80, 2), "80 completed, 90 completed, ");
    page_is(w, many_of(ITEMS_UP, 90, 9), "90 completed, ");
    page_is(w, many_of(ITEMS_UP, 91, 9), "");
    page_is(w, many_of(ITEMS_DOWN, ITEMS_MAX, 2), "90 completed, 80 completed, +");
    page_is(w, many_of(ITEMS_DOWN, 80, 2), "70 completed, 60 completed, +");
    page_is(w, many_of(ITEMS_DOWN, 11, 2), "10 completed, 0 completed, ");
    page_is(w, many_of(ITEMS_DOWN, 0, 2), "");
    page_is(w, many_of(ITEMS_TO_UNDO, ITEMS_MAX, 3), "80 completed, 60 completed, 40 completed, +");
    page_is(w, many_of(ITEMS_TO_UNDO, 40, 3), "20 completed, 0 completed, ");
    page_is(w, many_of(ITEMS_TO_UNDO, 41, 3), "40 completed, 20 completed, 0 completed, ");
    page_is(w, many_of(ITEMS_TO_UNDO, 0, 3), "");
    page_is(w, many_of(ITEMS_FAILED, 0, 3), "");
    const struct item_row failed[] = {a_failed(10), a_failed(30), a_failed(50), a_failed(51)};
    must(put_items(w, "one", 3, failed, COUNT_OF(failed)), "some failed");
    page_is(w, many_of(ITEMS_FAILED, 0, 3), "10 failed, 30 failed, 50 failed, +");
    page_is(w, many_of(ITEMS_FAILED, 30, 3), "30 failed, 50 failed, 51 failed, ");
    page_is(w, many_of(ITEMS_FAILED, 31, 1), "50 failed, +");
    struct item_read r = many_of(ITEMS_UP, 0, 99);
    r.generation = 3;
    page_is(w, r, "");
    r = many_of(ITEMS_UP, 0, 99);
    r.step = SLICE("pac");
    page_is(w, r, "");
}

/* The inputs that rows refer to by numbers: they count, and the payloads of others are not read. */
static const char long_doc[] = "{\"state\":\"undone\",\"input_payload\":3,\"undo_input_payload\":5,"
                               "\"attempts\":[{\"attempt\":1,\"outcome\":\"late\",\"output\":2}]}";

static struct payload a_payload(struct world *w, uint32_t number, size_t len)
{
    char *text = arena_bytes(&w->a, len);

    memset(text, (int)('a' + number % 26), len);
    text[0] = text[len - 1] = '"';
    return (struct payload){number, {text, len}};
}

/* It has a long text itself. */
static struct slice inline_doc(struct world *w)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "{\"state\":\"completed\",\"output\":%.*s}", SLICE_ARG(a_payload(w, 4, 3000).json));
    return arena_copy(&w->a, buf_view(&b));
}

static void put_long(struct world *w)
{
    struct payload payloads[] = {a_payload(w, 1, 3000), a_payload(w, 2, 3000),
                                 a_payload(w, 3, 3000), a_payload(w, 4, 3000),
                                 a_payload(w, 5, 3000)};
    struct item_row items[] = {
        an_item(0, STEP_UNDONE, long_doc),
        an_item(1, STEP_COMPLETED, ""),
        an_item(2, STEP_COMPLETED, "{\"state\":\"completed\",\"output\":[1,2]}"),
        an_item(3, STEP_FAILED, "{\"state\":\"failed\",\"input_payload\":3}"),
    };
    items[1].doc = inline_doc(w);
    struct change c = update_of("one", 2, items, COUNT_OF(items));

    c.row.payloads = payloads;
    c.row.payload_count = COUNT_OF(payloads);
    must(insert_row(w, a_row("one")), "one");
    must(put_change(w, c), "long ones");
}

static void rows_come_with_long_inputs(void **state)
{
    struct world *w = *state;
    struct item_read r = page_of("one", ITEMS_UP, 0, 9);
    static const uint32_t numbers[] = {3, 5};

    put_long(w);
    read_page(w, &r);
    CHECK(r.count == 4 && r.rows[0].payload_count == 2 && r.rows[1].payload_count == 0
              && r.rows[2].payload_count == 0 && r.rows[3].payload_count == 1,
          "%zu", r.count);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        CHECK(r.rows[0].payloads[i].number == numbers[i] && r.rows[0].payloads[i].json.len == 3000
                  && r.rows[0].payloads[i].json.ptr[1] == (char)('a' + numbers[i] % 26),
              "payload %u", numbers[i]);
    CHECK(r.rows[3].payloads[0].number == 3, "its own");
    CHECK(slice_eq(r.rows[1].doc, inline_doc(w)), "%.*s", SLICE_ARG(r.rows[1].doc));
}

static void a_page_ends_at_its_bytes(void **state)
{
    struct world *w = *state;
    struct item_read r = page_of("one", ITEMS_UP, 0, 9);
    size_t first = sizeof long_doc - 1 + 2 * 3000;
    size_t second = inline_doc(w).len;

    put_long(w);
    r.bytes_max = 1;
    page_is(w, r, "0 undone, +");
    r.bytes_max = first + second - 1;
    page_is(w, r, "0 undone, +");
    r.bytes_max = first + second;
    page_is(w, r, "0 undone, 1 completed, +");
    r.bytes_max = 1 << 20;
    page_is(w, r, "0 undone, 1 completed, 2 completed, 3 failed, ");
    r.from = 3;
    r.bytes_max = 1;
    page_is(w, r, "3 failed, ");
    r = page_of("one", ITEMS_DOWN, 99, 2);
    r.bytes_max = 3200;
    page_is(w, r, "3 failed, 2 completed, +");
    r = page_of("one", ITEMS_DOWN, 2, 9);
    r.bytes_max = second + first - 1;
    page_is(w, r, "1 completed, +");
}

/* ---- outputs ---- */

static struct item_outputs outputs_of(uint32_t count, size_t bytes_max)
{
    return (struct item_outputs){.task = SLICE("one"),
                                 .step = SLICE("pack"),
                                 .item_count = count,
                                 .bytes_max = bytes_max};
}

static void outputs_are(struct world *w, struct item_outputs o, const char *want)
{
    must(w->s->ops->items->outputs(w->s, &o, &w->a, &w->e), w->e.text);
    CHECK(slice_is(o.json, want), "the outputs are %.*s, expected: %s", SLICE_ARG(o.json), want);
    size_t len = o.json.len;
    o.bytes_max = len;
    must(w->s->ops->items->outputs(w->s, &o, &w->a, &w->e), "to the byte");
    o.bytes_max = len - 1;
    CHECK(w->s->ops->items->outputs(w->s, &o, &w->a, &w->e) == ERR_TOO_BIG, "one byte less");
}

static void outputs_of_all_items_are_an_array(void **state)
{
    struct world *w = *state;
    struct item_row items[] = {
        an_item(1, STEP_COMPLETED,
                "{\"state\":\"completed\",\"output\":{\"a\":[0.10,\"\\u00e9\"]}}"),
        an_item(2, STEP_FAILED, "{\"state\":\"failed\"}"),
        an_item(3, STEP_COMPLETED, "{\"state\":\"completed\",\"output\":null}"),
        an_item(5, STEP_UNDONE, "{\"state\":\"undone\",\"output\":\"x\"}"),
        an_item(6, STEP_SKIPPED, "{\"state\":\"skipped\",\"output\":12345678901234567890}"),
        an_item(0, STEP_COMPLETED, "{\"state\":\"completed\",\"output\":7}"),
    };

    items[5].generation = 1;
    must(insert_row(w, a_row("one")), "one");
    must(put_items(w, "one", 2, items, COUNT_OF(items)), "items");
    outputs_are(w, outputs_of(8, 1000),
                "[null,{\"a\":[0.10,\"\\u00e9\"]},null,null,null,\"x\",12345678901234567890,null]");
    outputs_are(w, outputs_of(7, 1000),
                "[null,{\"a\":[0.10,\"\\u00e9\"]},null,null,null,\"x\",12345678901234567890]");
    outputs_are(w, outputs_of(2, 1000), "[null,{\"a\":[0.10,\"\\u00e9\"]}]");
    outputs_are(w, outputs_of(1, 1000), "[null]");
    outputs_are(w, outputs_of(0, 1000), "[]");
    struct item_outputs o = outputs_of(2, 1000);
    o.generation = 1;
    outputs_are(w, o, "[7,null]");
    o.generation = 2;
    outputs_are(w, o, "[null,null]");
    o = outputs_of(2, 1000);
    o.step = SLICE("pac");
    outputs_are(w, o, "[null,null]");
    o = outputs_of(2, 1000);
    o.task = SLICE("none");
    outputs_are(w, o, "[null,null]");
}

static void long_outputs_are_part_of_the_array(void **state)
{
    struct world *w = *state;
    struct item_outputs o = outputs_of(4, 1 << 20);
    CLEANUP(buf_fini) struct buf want = {0};

    put_long(w);
    buf_fmt(&want, "[null,%.*s,[1,2],null]", SLICE_ARG(a_payload(w, 4, 3000).json));
    outputs_are(w, o, want.ptr);
    o.bytes_max = 3000;
    CHECK(w->s->ops->items->outputs(w->s, &o, &w->a, &w->e) == ERR_TOO_BIG, "too big");
    o.item_count = 1;
    must(w->s->ops->items->outputs(w->s, &o, &w->a, &w->e), "the first alone is not");
}

/* ---- by plain SQL ---- */

static void postgres_says(struct world *w, const char *sql, const char *want)
{
    CLEANUP(buf_fini) struct buf said = {0};
    PGconn *conn = PQconnectdb(cluster_conninfo());
    char path[100];

    (void)snprintf(path, sizeof path, "SET search_path = %s", w->dir);
    PQclear(PQexec(conn, path));
    PGresult *r = PQexec(conn, sql);
    CHECK(PQresultStatus(r) == PGRES_TUPLES_OK, "%s", PQerrorMessage(conn));
    for (int i = 0; i < PQntuples(r); i++)
        for (int k = 0; k < PQnfields(r); k++)
            buf_fmt(&said, "%s%s", PQgetisnull(r, i, k) ? "NULL" : PQgetvalue(r, i, k),
                    k + 1 < PQnfields(r) ? "|" : "\n");
    CHECK(strcmp(said.ptr ? said.ptr : "", want) == 0, "%s gives\n%s", sql, said.ptr);
    PQclear(r);
    PQfinish(conn);
}

static void says(struct world *w, const char *sql, const char *want)
{
    if (w->sqlite)
        shell_says(path_of(w, "intact.db"), sql, want);
    else
        postgres_says(w, sql, want);
}

/* ---- the end ---- */

static void end_task(struct world *w, const char *id, uint64_t revision)
{
    struct change c = update_of(id, revision, NULL, 0);

    c.row.state = TASK_PROCESSED;
    c.row.waiting_for = SLICE_NONE;
    c.row.ended_at = 1;
    must(put_change(w, c), id);
}

static void items_go_with_their_task(void **state)
{
    struct world *w = *state;

    put_many(w);
    end_task(w, "one", 3);
    const struct retired gone = {.id = SLICE("one"), .seq = fetch(w, "one").seq, .revision = 3};
    bool is_gone = false;
    struct retire r = {.tasks = &gone, .task_count = 1, .gone = &is_gone};
    struct task_row row = a_row("one");
    must(w->s->ops->retention->retire(w->s, &r, &w->e), w->e.text);
    CHECK(is_gone && !exists(w, "one"), "it is gone");
    page_is(w, many_of(ITEMS_UP, 0, 99), "");
    struct item_read other = many_of(ITEMS_DOWN, 99, 1);
    other.task = SLICE("two");
    page_is(w, other, "90 completed, +");
    if (w->sqlite || w->postgres)
        says(w, "SELECT count(*), count(DISTINCT task) FROM item", "40|1\n");
    row.submitted_at = 9999;
    must(insert_row(w, row), "another task of that id");
    page_is(w, many_of(ITEMS_UP, 0, 99), "");
}

/* ---- many ---- */

static void ten_thousand_items(void **state)
{
    enum { PART = 1000 };
    struct world *w = *state;
    struct item_row *items = arena_alloc(&w->a, PART * sizeof *items);
    uint32_t seen = 0;

    must(insert_row(w, a_row("one")), "one");
    for (uint32_t part = 0; part < ITEMS_MAX / PART; part++) {
        for (uint32_t i = 0; i < PART; i++) {
            uint32_t number = part * PART + (PART - 1 - i);
            items[i] = an_item(number, STEP_COMPLETED, "{\"state\":\"completed\",\"output\":1}");
            items[i].needs_undo = number % 100 == 7;
        }
        must(put_items(w, "one", 2 + part, items, PART), "a part");
    }
    for (struct item_read r = page_of("one", ITEMS_UP, 0, 512); r.from == 0 || r.more;) {
        read_page(w, &r);
        for (size_t i = 0; i < r.count; i++)
            CHECK(r.rows[i].number == seen++, "%u", r.rows[i].number);
        r.from = seen;
    }
    CHECK(seen == ITEMS_MAX, "%u", seen);
    page_is(w, page_of("one", ITEMS_TO_UNDO, ITEMS_MAX, 2), "9907 completed, 9807 completed, +");
    page_is(w, page_of("one", ITEMS_TO_UNDO, 108, 2), "107 completed, 7 completed, ");
    struct item_read last = page_of("one", ITEMS_TO_UNDO, 108, 2);
    last.is_all = true;
    page_is(w, last, "107 completed, 7 completed, ");
    last.limit = 1; /* whoever asks so does not want others */
    page_is(w, last, "107 completed, ");
    struct item_outputs o = outputs_of(ITEMS_MAX, 1 << 20);
    must(w->s->ops->items->outputs(w->s, &o, &w->a, &w->e), w->e.text);
    CHECK(o.json.len == 2 * ITEMS_MAX + 1, "%zu", o.json.len);
    const struct task_row row = fetch(w, "one");
    CHECK(row.item_count == 0 && row.payload_count == 0, "a task is read without them");
}

/* ---- others ---- */

static void they_are_read_beside_the_store(void **state)
{
    struct world *w = *state;
    struct item_read r = page_of("one", ITEMS_UP, 0, 9);
    struct item_outputs o = outputs_of(3, 100);
    struct store *s = w->s->ops->reading(w->s);

    CHECK(s && s->ops->is_usable(s), "it cannot be used");
    must(insert_row(w, a_row("one")), "one");
    must(put_item(w, "one", 2, an_item(1, STEP_COMPLETED, "{\"output\":5}")), "an item");
    must(s->ops->items->read(s, &r, &w->a, &w->e), w->e.text);
    CHECK(r.count == 1 && r.rows[0].number == 1, "%zu", r.count);
    must(s->ops->items->outputs(s, &o, &w->a, &w->e), w->e.text);
    CHECK(slice_is(o.json, "[null,5,null]"), "%.*s", SLICE_ARG(o.json));
    s->ops->close(s);
}

/* At work: item 1, which was brought back and has a row of how it was, and item 4. */
static void plain_sql_sees_items_wherever_they_lie(void **state)
{
    struct world *w = *state;
    const struct item_row items[] = {
        an_item(0, STEP_FAILED,
                "{\"state\":\"failed\",\"attempt\":2,\"failure_count\":2,\"input\":7,"
                "\"error\":{\"code\":\"declined\",\"message\":\"no\"},"
                "\"dropped\":{\"count\":3},\"attempts\":[{\"attempt\":1},{\"attempt\":2}]}"),
        an_item(1, STEP_COMPLETED, "{\"state\":\"completed\",\"attempt\":1}"),
        an_item(2, STEP_COMPLETED, "{\"state\":\"completed\",\"output_payload\":1}"),
    };
    const struct payload payload = {1, SLICE("\"long\"")};
    struct task_row row = a_row("x");
    struct item_row old = an_item(3, STEP_SKIPPED, "{\"state\":\"skipped\"}");

    row.doc = SLICE("{\"input\":8,\"steps\":[{\"name\":\"a\",\"state\":\"completed\"},"
                    "{\"name\":\"pack\",\"state\":\"undoing\",\"direction\":\"undo\",\"items\":{"
                    "\"count\":9,\"begun\":5,\"completed\":1,\"failed\":1,\"at_work\":["
                    "{\"item\":1,\"slot\":\"back\",\"state\":\"undoing\",\"direction\":\"undo\"},"
                    "{\"item\":4,\"state\":\"running\",\"attempt\":1,\"input_payload\":0,"
                    "\"attempts\":[{\"attempt\":1}]}]}}]}");
    row.items = items;
    row.item_count = COUNT_OF(items);
    row.payloads = &payload;
    row.payload_count = 1;
    must(insert_row(w, row), "insert");
    says(w,
         "SELECT task, step, number, CASE WHEN at_work THEN 'w' ELSE 'r' END, state, direction, "
         "attempt, failure_count, error_code, attempts, input, output FROM task_item "
         "ORDER BY task, number",
         "x|pack|0|r|failed|forward|2|2|declined|5|7|NULL\n"
         "x|pack|1|w|undoing|undo|0|0|NULL|0|NULL|NULL\n"
         "x|pack|2|r|completed|forward|0|0|NULL|0|NULL|\"long\"\n"
         "x|pack|4|w|running|forward|1|0|NULL|1|8|NULL\n");
    says(w,
         "SELECT name, items, items_begun, items_completed, items_failed, items_undone "
         "FROM task_step ORDER BY position",
         "a|NULL|NULL|NULL|NULL|NULL\npack|9|5|1|1|0\n");
    row = a_row("y");
    row.doc = SLICE("{\"steps\":[{\"name\":\"pack\",\"key_generation\":3,\"items\":{\"count\":9,"
                    "\"at_work\":[{\"item\":3,\"state\":\"running\"}]}}]}");
    old.generation = 1;
    row.items = &old;
    row.item_count = 1;
    must(insert_row(w, row), "an item of a former list");
    says(w, "SELECT task, key_generation, number FROM task_item WHERE task = 'y' ORDER BY 2",
         "y|2|3\ny|3|3\n");
    row = a_row("z");
    row.doc = SLICE("{\"steps\":[{\"name\":\"pack\",\"items\":{\"count\":3,\"begun\":3}}]}");
    row.items = items;
    row.item_count = COUNT_OF(items);
    must(insert_row(w, row), "nothing is at work");
    says(w, "SELECT number FROM task_item WHERE task = 'z' ORDER BY 1", "0\n1\n2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(items_are_there_with_the_change),
        ON_ALL(a_task_may_come_with_items),
        ON_ALL(an_item_that_comes_to_rest_again_replaces_its_row),
        ON_ALL(a_change_that_is_not_done_writes_no_item),
        ON_ALL(what_cannot_be_an_item_is_refused_alone),
        ON_POSTGRES(what_is_no_text_is_refused_alone),
        ON_ALL(each_of_many_writes_its_own),
        ON_ALL(pages_go_up_and_down),
        ON_ALL(rows_come_with_long_inputs),
        ON_ALL(a_page_ends_at_its_bytes),
        ON_ALL(outputs_of_all_items_are_an_array),
        ON_ALL(long_outputs_are_part_of_the_array),
        ON_ALL(items_go_with_their_task),
        ON_ALL(ten_thousand_items),
        ON_SQLITE(they_are_read_beside_the_store),
        ON_POSTGRES(they_are_read_beside_the_store),
        ON_SQLITE(plain_sql_sees_items_wherever_they_lie),
        ON_POSTGRES(plain_sql_sees_items_wherever_they_lie),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
