/* Tests of the documents of tasks (encode.c, decode.c): what is written comes back whole, by the
 * fields declared in core/task.h, and damaged documents are refused without a crash. */

#include "base/test.h"

#include <stdlib.h>

#include "base/prng.h"
#include "store/codec/test_kit.h"
#include "json/json.h"

enum { STEPS = 4 };

/* --- tests --- */

static void a_task_comes_back_as_it_was_written(void **state)
{
    size_t payloads = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 3000; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf doc = {0};
        CLEANUP(buf_fini) struct buf again = {0};
        struct prng p = {seed};
        const struct workflow *w = seed % 4 == 0   ? &kit_workflow_back
                                   : seed % 4 == 1 ? &kit_workflow_items
                                                   : &kit_workflow;
        struct task t = random_task(w, &p, &a);
        struct task back;
        struct task_row row;
        struct task_row second;
        struct error e = {0};

        buf_str(&doc, "[1]"); /* it is appended to what is there */
        task_encode(w, &t, &a, &doc, &row);
        CHECK(slice_eq(row.workflow, w->name) && row.version == 3, "of its workflow");
        CHECK(row.payload_count == t.payload_count, "numbered just now");
        CHECK(task_decode(w, &row, &a, &back, &e) == ERR_OK, "seed %" PRIu64 ": %s", seed, e.text);
        slots_settle(w, &t);
        tasks_equal(&t, &back);
        payloads += row.payload_count;

        task_encode(w, &back, &a, &again, &second);
        CHECK(second.payload_count == 0, "payloads are stored once");
        CHECK(slice_eq(row.doc, second.doc), "the same text");
    }
    CHECK(payloads > 1000, "met %zu payloads", payloads);
}

/* Any of what is written of a step. */
static uint16_t change_a_step(const struct workflow *w, struct prng *p, struct arena *a,
                              struct task *t)
{
    uint16_t i = (uint16_t)prng_below(p, w->step_count);
    struct step was = t->steps[i];
    struct attempt first = was.attempt_count ? was.attempts[0] : (struct attempt){.number = 0};

    if (w->steps[i].kind == KIND_EACH) {
        random_each(w, t, i, p, a);
        return i;
    }
    switch (prng_below(p, 4)) {
    case 0:
        t->steps[i] = valid_step(p, a, &w->steps[i], t->direction);
        break;
    case 1:
        t->steps[i].failure_count++;
        break;
    case 2:
        if (was.attempt_count > 0)
            was.attempts[0].tries++;
        break;
    default:
        t->steps[i].output = random_value(p, a);
        break;
    }
    if (!task_valid(w, t)) {
        if (was.attempt_count > 0)
            was.attempts[0] = first;
        t->steps[i] = was;
    }
    return i;
}

/* All that was ever given to the payload table. */
struct stored {
    struct payload list[400];
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

/* Read by another one, who goes on from there: what he writes is the same, to the byte. */
static void check_reread(const struct workflow *w, const struct task *t, const struct task_row *row,
                         struct arena *a, uint64_t seed)
{
    CLEANUP(buf_fini) struct buf again = {0};
    struct encoded *kept = encoded_new(w, a);
    struct task back;
    struct task_row second;
    struct error e = {0};

    CHECK(task_decode_kept(w, row, kept, a, &back, &e) == ERR_OK, "seed %" PRIu64 ": %s", seed,
          e.text);
    tasks_equal(t, &back);
    task_encode_again(w, &back, kept, a, &again, &second);
    CHECK(second.payload_count == 0, "payloads are stored once");
    CHECK(slice_eq(row->doc, second.doc), "seed %" PRIu64 ": %.*s, not %.*s", seed,
          SLICE_ARG(second.doc), SLICE_ARG(row->doc));
}

static void a_task_that_is_written_again_and_again_comes_back_as_it_is(void **state)
{
    const struct workflow *w = kit_workflow_long();
    size_t grouped = 0;
    size_t whole = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 500; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(arena_fini) struct arena of_task = {0};
        struct prng p = {seed};
        struct task t = random_task(w, &p, &a);
        struct encoded *kept = encoded_new(w, &of_task);
        struct stored stored = {.count = 0};

        for (int n = 0; n < 8; n++) {
            CLEANUP(buf_fini) struct buf doc = {0};
            CLEANUP(buf_fini) struct buf anew = {0};
            struct task_row row;
            struct task_row second;
            task_encode_again(w, &t, kept, &a, &doc, &row);
            store_payloads(&stored, &row);
            slots_settle(w, &t);
            check_reread(w, &t, &row, &a, seed);
            *(doc_is_grouped(row.doc) ? &grouped : &whole) += 1;
            task_encode(w, &t, &a, &anew, &second);
            CHECK(second.payload_count == 0, "values are stored once");
            if (n % 2)
                encoded_look_at(kept, change_a_step(w, &p, &a, &t));
            t.revision++;
        }
    }
    CHECK(grouped > 500 && whole > 500, "grouped %zu, whole %zu", grouped, whole);
}

static void a_task_read_without_its_payloads_keeps_their_numbers(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    CLEANUP(buf_fini) struct buf again = {0};
    struct prng p = {1};
    struct task t = random_task(&kit_workflow, &p, &a);
    struct task_row row;
    struct task back;
    struct error e = {0};
    char text[PAYLOAD_INLINE_MAX + 1];
    (void)state;

    memset(text, '1', sizeof text);
    t.input = (struct value){{text, sizeof text}, 0};
    task_encode(&kit_workflow, &t, &a, &doc, &row);
    row.payloads = NULL;
    row.payload_count = 0;
    CHECK(task_decode(&kit_workflow, &row, &a, &back, &e) == ERR_OK, "%s", e.text);
    CHECK(back.input.payload == t.input.payload && back.input.json.ptr, "there");
    CHECK(back.input.json.len == 0, "but not read");
    struct task_row second;
    task_encode(&kit_workflow, &back, &a, &again, &second);
    CHECK(slice_eq(row.doc, second.doc), "the same text");
}

static void the_document_is_json_with_the_names_of_the_api(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct attempt at = {.number = 1,
                         .outcome = OUTCOME_FAILED,
                         .effect = EFFECT_UNKNOWN,
                         .started_at = 5,
                         .ended_at = 6,
                         .complete_by = 9,
                         .instance = SLICE("p-1"),
                         .error = {SLICE("timeout"), SLICE_NONE}};
    struct step s[STEPS] = {{.attempt = 1,
                             .failure_count = 1,
                             .input = {SLICE("{\"n\":1}"), 0},
                             .attempts = &at,
                             .attempt_count = 1,
                             .attempt_cap = 1}};
    struct task t = {.id = SLICE("x"),
                     .revision = 1,
                     .submitted_at = 4,
                     .content = {0xabc, SLICE(KIT_SHA256)},
                     .input = {SLICE("null"), 0},
                     .steps = s,
                     .step_count = STEPS};
    struct task_row row;
    (void)state;

    task_encode(&kit_workflow, &t, &a, &doc, &row);
    static const char want[] =
        "{\"input\":null,\"content\":\"0000000000000abc\",\"sha256\":\"" KIT_SHA256 "\",\"steps\":["
        "{\"name\":\"reserve\",\"state\":\"waiting\",\"attempt\":1,\"failure_count\":1,"
        "\"in_doubt\":true,\"input\":{\"n\":1},\"attempts\":[{\"attempt\":1,\"outcome\":\"failed\","
        "\"effect\":\"unknown\",\"instance\":\"p-1\",\"started_at\":5,\"ended_at\":6,"
        "\"complete_by\":9,\"error\":{\"code\":\"timeout\"}}]},"
        "{\"name\":\"charge\",\"state\":\"waiting\"},{\"name\":\"ship\",\"state\":\"waiting\"},"
        "{\"name\":\"tell\",\"state\":\"waiting\"}]}";
    CHECK(slice_is(row.doc, want), "%.*s", SLICE_ARG(row.doc));
}

/* A parent that asked its child to stop, and is a child itself. */
static void the_document_tells_of_families(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct step s[STEPS] = {{.child = {2, CHILD_RUNNING, WISH_STOP}}, {.child = {.number = 1}}};
    struct task t = {.id = SLICE("x@pack"),
                     .revision = 1,
                     .submitted_at = 4,
                     .parent = SLICE("x"),
                     .root = SLICE("r"),
                     .parent_step = SLICE("pack"),
                     .parent_number = 3,
                     .asked = WISH_UNDO,
                     .family = SLICE("{\"ship-one\":7}"),
                     .steps = s,
                     .step_count = STEPS};
    struct task_row row;
    (void)state;

    task_encode(&kit_workflow, &t, &a, &doc, &row);
    static const char want[] =
        "{\"parent\":{\"step\":\"pack\",\"number\":3,\"asked\":\"undo\"},"
        "\"family\":{\"ship-one\":7},\"steps\":["
        "{\"name\":\"reserve\",\"state\":\"waiting\",\"child\":"
        "{\"number\":2,\"state\":\"running\",\"wish\":\"stop\"}},"
        "{\"name\":\"charge\",\"state\":\"waiting\",\"child\":{\"number\":1}},"
        "{\"name\":\"ship\",\"state\":\"waiting\"},{\"name\":\"tell\",\"state\":\"waiting\"}]}";
    CHECK(slice_is(row.doc, want), "%.*s", SLICE_ARG(row.doc));
    CHECK(slice_is(row.parent, "x") && slice_is(row.root, "r"), "columns");
}

static enum err decode_text(const char *doc, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {.id = SLICE("x"),
                           .workflow = SLICE("order"),
                           .version = 3,
                           .revision = 1,
                           .submitted_at = 1,
                           .doc = slice_of(doc)};
    struct task t;

    return task_decode(&kit_workflow, &row, &a, &t, e);
}

static struct step first_step_of(const char *first, struct arena *a)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct error e = {0};
    struct task t;

    buf_fmt(&doc,
            "{\"steps\":[{\"name\":\"reserve\",\"state\":\"waiting\",%s},"
            "{\"name\":\"charge\",\"state\":\"waiting\"},{\"name\":\"ship\",\"state\":"
            "\"waiting\"},{\"name\":\"tell\",\"state\":\"waiting\"}]}",
            first);
    const struct task_row row = {.id = SLICE("x"),
                                 .workflow = SLICE("order"),
                                 .version = 3,
                                 .revision = 1,
                                 .submitted_at = 1,
                                 .doc = buf_view(&doc)};
    CHECK(task_decode(&kit_workflow, &row, a, &t, &e) == ERR_OK, "%s", e.text);
    return t.steps[0];
}

/* The attempt that a person resolved, and what there was before anybody could: attempts that were
 * merged without a number. */
static void who_resolved_what_is_read_back(void **state)
{
#define UNKNOWN                                                                     \
    "\"attempt\":2,\"attempts\":[{\"attempt\":2,\"outcome\":\"failed\",\"effect\":" \
    "\"unknown\",\"started_at\":1,\"ended_at\":2,\"complete_by\":3}]"
    CLEANUP(arena_fini) struct arena a = {0};
    static const struct {
        const char *text;
        bool doubt;
    } docs[] = {
        {UNKNOWN, true},
        {UNKNOWN ",\"resolved\":1", true},
        {UNKNOWN ",\"resolved\":2", false},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"until\":3}", true},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"until\":3},\"resolved\":2",
         false},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"attempt\":2},\"resolved\":1",
         true},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"attempt\":1},\"resolved\":2",
         false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(docs); i++) {
        struct step s = first_step_of(docs[i].text, &a);
        CHECK(step_in_doubt(&s) == docs[i].doubt, "%s", docs[i].text);
    }
}

#define STEP(name)  "{\"name\":\"" name "\",\"state\":\"waiting\"}"
#define REST        STEP("charge") "," STEP("ship") "," STEP("tell") "]"
#define DOC(first)  "{\"steps\":[" first "," REST "}"
#define KNOWN(more) "{\"name\":\"reserve\",\"state\":\"waiting\"," more "}"

static void documents_that_do_not_fit_are_corrupt(void **state)
{
    static const char *const good[] = {
        DOC(STEP("reserve")),
        DOC(KNOWN("\"something\":\"newer\"")),
        "{\"payloads\":1,\"input_payload\":1,\"steps\":[" STEP("reserve") "," REST "}",
    };
    static const char *const bad[] = {
        NULL,
        DOC(KNOWN("\"resolved\":1")), /* of no attempt */
        "",
        "{",
        "[]",
        "{}",
        "null",
        "{\"steps\":[]}",
        "{\"steps\":{}}",
        DOC("null"),
        DOC("{\"name\":\"reserve\"}"),
        DOC("{\"state\":\"waiting\"}"),
        DOC("{\"name\":\"reserve\",\"state\":\"asleep\"}"),
        DOC(STEP("charge")),
        DOC(KNOWN("\"attempt\":-1")),
        DOC(KNOWN("\"attempt\":4294967296")),
        DOC(KNOWN("\"attempt\":\"1\"")),
        DOC(KNOWN("\"wait_until\":1.5")),
        DOC(KNOWN("\"wait_until\":9223372036854775808")),
        DOC(KNOWN("\"wait_until\":9223372036854775807")), /* nothing could be added to it */
        DOC(KNOWN("\"failure_count\":4294967295")),
        DOC(KNOWN("\"dropped\":{\"count\":1,\"until\":9223372036854775807}")),
        DOC(KNOWN("\"direction\":\"back\"")),
        DOC(KNOWN("\"error\":\"x\"")),
        DOC(KNOWN("\"error\":{\"code\":1}")),
        DOC(KNOWN("\"dropped\":{\"effect\":\"much\"}")),
        DOC(KNOWN("\"child\":7")),
        DOC(KNOWN("\"child\":{\"number\":-1}")),
        DOC(KNOWN("\"child\":{\"number\":1,\"state\":\"ill\"}")),
        DOC(KNOWN("\"child\":{\"number\":1,\"wish\":\"luck\"}")),
        "{\"parent\":\"x\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"parent\":{\"step\":1},\"steps\":[" STEP("reserve") "," REST "}",
        "{\"parent\":{\"asked\":\"luck\"},\"steps\":[" STEP("reserve") "," REST "}",
        "{\"family\":7,\"steps\":[" STEP("reserve") "," REST "}",
        DOC(KNOWN("\"attempts\":{}")),
        DOC(KNOWN("\"attempts\":[1]")),
        DOC(KNOWN("\"attempts\":[{\"attempt\":1,\"outcome\":\"failed\"}]")),
        DOC(KNOWN("\"input_payload\":1")),
        DOC(KNOWN("\"input_payload\":0")),
        "{\"payloads\":1,\"input_payload\":2,\"steps\":[" STEP("reserve") "," REST "}",
        "{\"stop\":\"now\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"cause\":{\"code\":\"x\"},\"steps\":[" STEP("reserve") "," REST "}", /* goes on */
        "{\"stop\":\"undo\",\"cause\":{\"step\":\"x\",\"code\":\"x\"},\"steps\":[" STEP(
            "reserve") "," REST "}",
        "{\"stop\":\"undo\",\"cause\":{\"code\":1},\"steps\":[" STEP("reserve") "," REST "}",
        "{\"content\":\"abc\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"content\":\"000000000000000G\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"sha256\":\"abc\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"sha256\":1,\"steps\":[" STEP("reserve") "," REST "}",
        "{\"deadline_passed\":1,\"steps\":[" STEP("reserve") "," REST "}",
        DOC(STEP("reserve")) "x",
    };
    struct error e = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(decode_text(good[i], &e) == ERR_OK, "%s: %s", good[i], e.text);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(decode_text(bad[i], &e) == ERR_CORRUPT, "%s", bad[i] ? bad[i] : "none");
}

/* The step by its name; and a task that stopped before causes were written down has its error. */
static void the_first_failure_is_found_in_the_document(void **state)
{
    static const struct {
        const char *doc, *code;
        int step;
    } docs[] = {
        {"{\"error\":{\"code\":\"late\"},\"cause\":{\"step\":\"charge\",\"code\":\"declined\"},"
         "\"stop\":\"undo\",\"steps\":[" STEP("reserve") "," REST "}",
         "declined", 1},
        {"{\"cause\":{\"code\":\"cancelled\"},\"stop\":\"undo\",\"steps\":[" STEP(
             "reserve") "," REST "}",
         "cancelled", -1},
        {"{\"error\":{\"code\":\"declined\"},\"stop\":\"undo\",\"steps\":[" STEP("reserve") "," REST
                                                                                            "}",
         "declined", -1},
        {"{\"error\":{\"code\":\"deadline\"},\"steps\":[" STEP("reserve") "," REST "}", NULL, 0},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(docs); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct task_row row = {.id = SLICE("x"),
                                     .workflow = SLICE("order"),
                                     .version = 3,
                                     .revision = 1,
                                     .submitted_at = 1,
                                     .doc = slice_of(docs[i].doc)};
        struct task t;
        struct error e = {0};
        CHECK(task_decode(&kit_workflow, &row, &a, &t, &e) == ERR_OK, "%s", e.text);
        CHECK(slice_eq(t.cause.error.code, slice_of(docs[i].code)), "%s", docs[i].doc);
        CHECK(!docs[i].code || t.cause.step == docs[i].step, "%s", docs[i].doc);
    }
}

static void columns_out_of_range_are_corrupt(void **state)
{
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX - 1000};
    const struct task_row good = {.id = SLICE("x"),
                                  .workflow = SLICE("order"),
                                  .version = 3,
                                  .revision = 1,
                                  .submitted_at = 1,
                                  .doc = SLICE(DOC(STEP("reserve")))};
    (void)state;

    for (size_t i = 0; i < 5 * COUNT_OF(bad) + 2; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct task_row row = good;
        int64_t *const times[] = {&row.submitted_at, &row.complete_by, &row.not_before,
                                  &row.started_at, &row.ended_at};
        struct task t;
        struct error e = {0};
        if (i < 5 * COUNT_OF(bad))
            *times[i % 5] = bad[i / 5];
        else if (i == 5 * COUNT_OF(bad))
            row.failure_count = UINT32_MAX;
        bool spoilt = i <= 5 * COUNT_OF(bad);
        enum err err = task_decode(&kit_workflow, &row, &a, &t, &e);
        CHECK(err == (spoilt ? ERR_CORRUPT : ERR_OK), "%zu: %s", i, e.text);
    }
}

static void a_task_of_another_workflow_is_corrupt(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {.id = SLICE("x"),
                           .workflow = SLICE("order"),
                           .version = 4,
                           .revision = 1,
                           .submitted_at = 1,
                           .doc = SLICE(DOC(STEP("reserve")))};
    struct task t;
    struct error e;
    (void)state;

    CHECK(task_decode(&kit_workflow, &row, &a, &t, &e) == ERR_CORRUPT, "another version");
    row.version = 3;
    row.workflow = SLICE("Order");
    CHECK(task_decode(&kit_workflow, &row, &a, &t, &e) == ERR_CORRUPT, "another name");
}

/* Bytes changed, lost, doubled, swapped with others of the same document. */
static void damage(struct prng *p, struct slice doc, char *ret, size_t *ret_len)
{
    size_t len = doc.len;

    memcpy(ret, doc.ptr, len);
    for (uint32_t i = 1 + prng_below(p, 3); i > 0; i--) {
        size_t at = prng_below(p, (uint32_t)len);
        size_t from = prng_below(p, (uint32_t)len);
        size_t run = 1 + prng_below(p, 12);
        run = run < len - at ? run : len - at;
        run = run < len - from ? run : len - from;
        if (prng_chance(p, 30))
            ret[at] = (char)prng_next(p);
        else if (prng_chance(p, 30) && len > run + 1)
            memmove(ret + at, ret + at + run, (len -= run) - at);
        else
            memmove(ret + at, ret + from, run);
    }
    *ret_len = len;
}

static void damaged_documents_never_crash(void **state)
{
    size_t refused = 0;
    size_t taken = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 300; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf doc = {0};
        struct prng p = {seed};
        const struct workflow *w = seed % 2 ? &kit_workflow_items : &kit_workflow;
        struct task t = random_task(w, &p, &a);
        struct task_row row;

        task_encode(w, &t, &a, &doc, &row);
        for (unsigned i = 0; i < 40; i++) {
            CLEANUP(arena_fini) struct arena b = {0};
            struct task_row bad = row;
            char *text = arena_bytes(&b, row.doc.len);
            struct error e = {0};
            damage(&p, row.doc, text, &bad.doc.len);
            bad.doc.ptr = text;
            enum err err = task_decode(w, &bad, &b, &t, &e);
            CHECK(err == ERR_OK || (err == ERR_CORRUPT && e.text[0]), "%s", err_text(err));
            CHECK(err != ERR_OK || task_valid(w, &t), "what is taken is valid");
            *(err == ERR_OK ? &taken : &refused) += 1;
        }
    }
    CHECK(refused > 1000 && taken > 100, "refused %zu, taken %zu", refused, taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_comes_back_as_it_was_written),
        cmocka_unit_test(a_task_that_is_written_again_and_again_comes_back_as_it_is),
        cmocka_unit_test(a_task_read_without_its_payloads_keeps_their_numbers),
        cmocka_unit_test(the_document_is_json_with_the_names_of_the_api),
        cmocka_unit_test(the_document_tells_of_families),
        cmocka_unit_test(who_resolved_what_is_read_back),
        cmocka_unit_test(documents_that_do_not_fit_are_corrupt),
        cmocka_unit_test(the_first_failure_is_found_in_the_document),
        cmocka_unit_test(columns_out_of_range_are_corrupt),
        cmocka_unit_test(a_task_of_another_workflow_is_corrupt),
        cmocka_unit_test(damaged_documents_never_crash),
    };
    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
