/* The contract of every store for submissions by SQL: each becomes a task once, or is kept as
 * refused. Each test names one promise and runs on all stores (store_world.h). */

#include "store_world.h"

#include <sqlite3.h>

#include "base/buf.h"

static struct submission_row a_submission(const char *id)
{
    return (struct submission_row){.source = SLICE("sql"),
                                   .id = slice_of(id),
                                   .workflow = SLICE("order"),
                                   .input = SLICE("{\"total\":1}"),
                                   .submitted_at = 1000};
}

static void put(struct world *w, struct submission_row row)
{
    must(w->s->ops->submissions->put(w->s, &row, 1, &w->e), w->e.text);
}

static struct submission_take take(struct world *w, struct submission_take t)
{
    t.now = w->now;
    if (!t.limit)
        t.limit = 100;
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), w->e.text);
    return t;
}

static void waiting_are(struct world *w, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct submission_take t = take(w, (struct submission_take){0});

    for (size_t i = 0; i < t.count; i++)
        buf_fmt(&b, "%s%.*s", i ? " " : "", SLICE_ARG(t.rows[i].id));
    CHECK(slice_is(buf_view(&b), want), "\"%.*s\" wait", SLICE_ARG(buf_view(&b)));
}

static void refused_are(struct world *w, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct submission_query q = {.refused = true, .limit = 100};
    struct submission_page p;

    must(w->s->ops->submissions->list(w->s, &q, &w->a, &p, &w->e), w->e.text);
    for (size_t i = 0; i < p.count; i++)
        buf_fmt(&b, "%s%.*s: %.*s", i ? "; " : "", SLICE_ARG(p.rows[i].id),
                SLICE_ARG(p.rows[i].reason));
    CHECK(slice_is(buf_view(&b), want), "\"%.*s\" are refused", SLICE_ARG(buf_view(&b)));
    CHECK(take(w, (struct submission_take){0}).refused == p.count, "as many are counted");
}

static int64_t seq_of(struct world *w, const char *id)
{
    struct submission_take t = take(w, (struct submission_take){0});

    for (size_t i = 0; i < t.count; i++)
        if (slice_is(t.rows[i].id, id))
            return t.rows[i].seq;
    CHECK(false, "%s waits", id);
    return 0;
}

static enum err become(struct world *w, const char *id, int64_t seq)
{
    struct change c = {.kind = CHANGE_INSERT, .row = a_row(id), .submission = seq};
    struct batch b = {.changes = &c, .change_count = 1};

    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w->e.text);
    return c.outcome;
}

static bool is_task(struct world *w, const char *id)
{
    struct task_row row;

    return w->s->ops->get(w->s, slice_of(id), &w->a, &row, &w->e) == ERR_OK;
}

static void what_was_put_in_is_taken_as_it_was(void **state)
{
    struct world *w = *state;
    const struct submission_row whole = {.source = SLICE("amqp:orders"),
                                         .id = SLICE("o-1"),
                                         .workflow = SLICE("order"),
                                         .version = SLICE("3"),
                                         .priority = SLICE("high"),
                                         .not_before = SLICE("2026-01-31T10:00:00Z"),
                                         .reply_to = SLICE("https://there"),
                                         .tags = SLICE("{\"a\":\"b\"}"),
                                         .input = SLICE("{\"total\": 1.0"),
                                         .submitter = SLICE("ann"),
                                         .submitted_at = 1234};
    const struct submission_row bare = {.source = SLICE("sql"), .submitted_at = 1};

    put(w, whole);
    put(w, bare);
    struct submission_take t = take(w, (struct submission_take){0});
    CHECK(t.count == 2 && !t.more && t.refused == 0, "both wait");
    const struct submission_row *r = &t.rows[0];
    CHECK(slice_eq(r->source, whole.source) && slice_eq(r->id, whole.id)
              && slice_eq(r->workflow, whole.workflow) && slice_eq(r->version, whole.version)
              && slice_eq(r->priority, whole.priority) && slice_eq(r->not_before, whole.not_before)
              && slice_eq(r->reply_to, whole.reply_to) && slice_eq(r->tags, whole.tags)
              && slice_eq(r->input, whole.input) && r->submitted_at == 1234 && !r->refused_at
              && !r->reason.ptr && slice_is(r->submitter, "ann"),
          "as it was");
    r = &t.rows[1];
    CHECK(!r->id.ptr && !r->workflow.ptr && !r->version.ptr && !r->priority.ptr
              && !r->not_before.ptr && !r->reply_to.ptr && !r->tags.ptr && !r->input.ptr
              && !r->submitter.ptr && r->seq > t.rows[0].seq,
          "what was left out is none");
}

static void the_oldest_are_taken_first(void **state)
{
    struct world *w = *state;

    put(w, a_submission("a"));
    put(w, a_submission("b"));
    put(w, a_submission("c"));
    struct submission_take t = take(w, (struct submission_take){.limit = 2});
    CHECK(t.count == 2 && t.more && slice_is(t.rows[0].id, "a") && slice_is(t.rows[1].id, "b"),
          "two of three");
}

/* Inputs may be long: a batch has so many bytes, but always one. */
static void a_batch_has_so_many_bytes(void **state)
{
    struct world *w = *state;
    CLEANUP(buf_fini) struct buf input = {0};
    struct submission_row row;

    for (int i = 0; i < 5000; i++)
        buf_str(&input, "[1,2]");
    for (int i = 0; i < 4; i++) {
        row = a_submission(i % 2 ? "odd" : "even");
        row.input = buf_view(&input);
        put(w, row);
    }
    put(w, a_submission("short"));
    struct submission_take t = take(w, (struct submission_take){.bytes_max = 60000});
    CHECK(t.count == 2 && t.more && t.rows[1].input.len == input.len, "two: %zu", t.count);
    t = take(w, (struct submission_take){.bytes_max = 1});
    CHECK(t.count == 1 && t.more, "one at least: %zu", t.count);
    t = take(w, (struct submission_take){.bytes_max = 200000});
    CHECK(t.count == 5 && !t.more, "all: %zu", t.count);
    t = take(w, (struct submission_take){.bytes_max = 60000, .limit = 2});
    CHECK(t.count == 2 && t.more, "both limits: %zu", t.count);
    t = take(w, (struct submission_take){.bytes_max = 100, .limit = 1});
    CHECK(t.count == 1 && t.more, "one of one: %zu", t.count);
    const struct submission_verdict v[] = {{.seq = t.rows[0].seq},
                                           {.seq = t.rows[0].seq + 1},
                                           {.seq = t.rows[0].seq + 2},
                                           {.seq = t.rows[0].seq + 4}};
    must(w->s->ops->submissions->settle(w->s, v, COUNT_OF(v), &w->e), w->e.text);
    t = take(w, (struct submission_take){.bytes_max = 100});
    CHECK(t.count == 1 && !t.more, "the last one: %zu", t.count);
}

static void nodes_divide_them(void **state)
{
    struct world *w = *state;
    struct submission_row old = a_submission("old");
    size_t found = 0;

    if (w->sqlite) /* nobody to divide them with */
        return;
    w->now = 1769853600000;
    for (int i = 0; i < 6; i++) {
        struct submission_row row = a_submission("young");
        row.submitted_at = INT64_C(9000000000000);
        put(w, row);
    }
    put(w, old);
    for (uint32_t part = 0; part < 2; part++) {
        struct submission_take t =
            take(w, (struct submission_take){.parts = 2, .part = part, .patience_ms = 2000});
        CHECK(t.count == 4, "half of them, and the one that waits for long: %zu", t.count);
        for (size_t i = 0; i < t.count; i++)
            found += slice_is(t.rows[i].id, "young");
    }
    CHECK(found == 6, "nobody has what another has: %zu", found);
}

static void it_goes_with_the_task_that_it_becomes(void **state)
{
    struct world *w = *state;

    put(w, a_submission("o-1"));
    put(w, a_submission("o-2"));
    CHECK(become(w, "o-1", seq_of(w, "o-1")) == ERR_OK, "inserted");
    waiting_are(w, "o-2");
    CHECK(is_task(w, "o-1") && !is_task(w, "o-2"), "one is a task");
    refused_are(w, "");
}

static void it_becomes_a_task_once(void **state)
{
    struct world *w = *state;

    put(w, a_submission("o-1"));
    int64_t seq = seq_of(w, "o-1");
    CHECK(become(w, "o-1", seq) == ERR_OK, "inserted");
    CHECK(become(w, "o-1", seq) == ERR_CONFLICT, "the task is there");
    /* even if that was deleted meanwhile, or has another id */
    CHECK(become(w, "o-1b", seq) == ERR_BUSY, "the submission is not there");
    CHECK(!is_task(w, "o-1b"), "nothing of it was done");
}

static void a_batch_tells_those_that_are_gone_from_the_others(void **state)
{
    struct world *w = *state;
    static const struct payload values[] = {{1, {"\"long\"", 6}}};

    put(w, a_submission("o-1"));
    put(w, a_submission("o-2"));
    int64_t one = seq_of(w, "o-1");
    int64_t two = seq_of(w, "o-2");
    CHECK(become(w, "taken", 0) == ERR_OK, "inserted");
    struct change c[] = {
        {.kind = CHANGE_INSERT, .row = a_row("o-1"), .submission = one},
        {.kind = CHANGE_INSERT, .row = a_row("gone"), .submission = two + 100},
        {.kind = CHANGE_INSERT, .row = a_row("plain")},
        {.kind = CHANGE_INSERT, .row = a_row("taken"), .submission = two},
    };
    c[0].row.payloads = values;
    c[0].row.payload_count = 1;
    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w->e.text);
    CHECK(c[0].outcome == ERR_OK && c[1].outcome == ERR_BUSY && c[2].outcome == ERR_OK
              && c[3].outcome == ERR_CONFLICT,
          "outcomes %u %u %u %u", c[0].outcome, c[1].outcome, c[2].outcome, c[3].outcome);
    waiting_are(w, "o-2"); /* whose id was taken: that is for somebody else to judge */
    CHECK(is_task(w, "plain") && !is_task(w, "gone"), "only what could be");
}

static void it_is_refused_or_settled(void **state)
{
    struct world *w = *state;

    put(w, a_submission("bad"));
    put(w, a_submission("known"));
    put(w, a_submission("other"));
    const struct submission_verdict v[] = {
        {.seq = seq_of(w, "bad"), .refused_at = 5000, .reason = SLICE("input is \"x\"")},
        {.seq = seq_of(w, "known")},
        {.seq = 9999, .refused_at = 5000, .reason = SLICE("nobody")},
    };
    must(w->s->ops->submissions->settle(w->s, v, COUNT_OF(v), &w->e), w->e.text);
    waiting_are(w, "other");
    refused_are(w, "bad: input is \"x\"");
    /* what was refused is settled no more, and becomes nothing */
    const struct submission_verdict again = {.seq = v[0].seq};
    must(w->s->ops->submissions->settle(w->s, &again, 1, &w->e), w->e.text);
    refused_are(w, "bad: input is \"x\"");
    CHECK(become(w, "bad", v[0].seq) == ERR_BUSY, "it was refused");
}

static void refuse(struct world *w, const char *id, const char *source)
{
    struct submission_row row = a_submission(id);

    row.source = slice_of(source);
    row.refused_at = 5000;
    row.reason = SLICE("bad");
    put(w, row);
}

static struct submission_verb run_verb(struct world *w, struct submission_verb v)
{
    const struct audit audit = {.at = 1,
                                .actor = SLICE("ann"),
                                .verb = SLICE("submission.retry"),
                                .reason = SLICE("why")};

    v.audit = &audit;
    must(w->s->ops->submissions->apply(w->s, &v, &w->e), w->e.text);
    return v;
}

static size_t audits(struct world *w)
{
    const struct audit_query q = {.limit = 100};
    struct audit_page page;

    must(w->s->ops->audit_list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    return page.count;
}

static void refused_ones_are_tried_again_or_dropped(void **state)
{
    struct world *w = *state;
    const struct submission_query q = {.refused = true, .limit = 2};
    struct submission_page p;

    refuse(w, "a", "sql");
    refuse(w, "b", "amqp:q");
    refuse(w, "c", "sql");
    put(w, a_submission("waits"));
    must(w->s->ops->submissions->list(w->s, &q, &w->a, &p, &w->e), w->e.text);
    CHECK(p.count == 2 && p.more && slice_is(p.rows[0].id, "c"), "newest first");
    CHECK(slice_is(p.rows[0].reason, "bad") && p.rows[0].refused_at == 5000, "with the reason");
    struct submission_query of = {.refused = true, .limit = 9, .source = SLICE("amqp:q")};
    must(w->s->ops->submissions->list(w->s, &of, &w->a, &p, &w->e), w->e.text);
    CHECK(p.count == 1 && slice_is(p.rows[0].id, "b") && !p.more, "of one source");
    int64_t b_seq = p.rows[0].seq;
    of.brief = true;
    must(w->s->ops->submissions->list(w->s, &of, &w->a, &p, &w->e), w->e.text);
    CHECK(p.count == 1 && p.rows[0].seq == b_seq && slice_is(p.rows[0].source, "amqp:q"), "brief");

    CHECK(run_verb(w, (struct submission_verb){.seq = b_seq}).count == 1 && audits(w) == 1, "one");
    waiting_are(w, "b waits");
    struct submission_verb none = {.seq = b_seq, .drop = true};
    CHECK(w->s->ops->submissions->apply(w->s, &none, &w->e) == ERR_NOT_FOUND, "it waits");
    CHECK(run_verb(w, (struct submission_verb){.drop = true, .up_to_seq = b_seq}).count == 1, "a");
    refused_are(w, "c: bad");
    struct submission_verb rest = run_verb(w, (struct submission_verb){.source = SLICE("sql")});
    CHECK(rest.count == 1 && !rest.more && audits(w) == 3, "the rest");
    waiting_are(w, "b c waits");
    CHECK(run_verb(w, (struct submission_verb){.drop = true}).count == 0 && audits(w) == 3,
          "nothing was done");
}

/* A queue brings it again to whoever was killed before it was settled. */
static void of_a_source_and_key_there_is_one(void **state)
{
    struct world *w = *state;
    struct submission_row row = a_submission("a");

    row.source = SLICE("amqp:orders");
    row.key = SLICE("k");
    row.refused_at = 1;
    row.reason = SLICE("first");
    put(w, row);
    row.reason = SLICE("again");
    put(w, row);
    refused_are(w, "a: first");
    row.source = SLICE("amqp:others");
    put(w, row);
    row.source = SLICE("amqp:orders");
    row.key = SLICE("l");
    put(w, row);
    row.key = SLICE_NONE;
    put(w, row);
    put(w, row);
    refused_are(w, "a: again; a: again; a: again; a: again; a: first");
}

static void numbers_are_not_used_twice(void **state)
{
    struct world *w = *state;

    put(w, a_submission("a"));
    int64_t first = seq_of(w, "a");
    const struct submission_verdict v = {.seq = first};
    must(w->s->ops->submissions->settle(w->s, &v, 1, &w->e), w->e.text);
    world_restart(w);
    put(w, a_submission("b"));
    CHECK(seq_of(w, "b") > first, "another number");
}

static void definitions_are_described_once(void **state)
{
    struct world *w = *state;
    const struct workflow_inputs is = {SLICE("order"), 1, SLICE("null")};
    struct workflow_row *rows = NULL;
    int64_t version = 0;
    size_t count = 0;
    bool is_new;

    for (int i = 0; i < 2; i++)
        must(w->s->ops->workflow_put(w->s, SLICE("order"), i ? SLICE("B") : SLICE("A"), 1, NULL,
                                     &version, &is_new, &w->e),
             w->e.text);
    must(w->s->ops->submissions->describe(w->s, &is, 1, &w->e), w->e.text);
    must(w->s->ops->workflow_list(w->s, &w->a, &rows, &count, &w->e), w->e.text);
    CHECK(count == 2 && rows[0].described && !rows[1].described, "the one that was");
}

static void a_survey_tells_of_them(void **state)
{
    struct world *w = *state;
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .now = 1000,
                       .length_ms = 3000};

    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), w->e.text);
    CHECK(!v.submissions, "there is none");
    refuse(w, "refused", "sql");
    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), w->e.text);
    CHECK(!v.submissions, "none waits");
    put(w, a_submission("a"));
    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), w->e.text);
    CHECK(v.submissions, "one waits");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(what_was_put_in_is_taken_as_it_was),
        ON_ALL(the_oldest_are_taken_first),
        ON_ALL(a_batch_has_so_many_bytes),
        ON_ALL(nodes_divide_them),
        ON_ALL(it_goes_with_the_task_that_it_becomes),
        ON_ALL(it_becomes_a_task_once),
        ON_ALL(a_batch_tells_those_that_are_gone_from_the_others),
        ON_ALL(it_is_refused_or_settled),
        ON_ALL(refused_ones_are_tried_again_or_dropped),
        ON_ALL(of_a_source_and_key_there_is_one),
        ON_ALL(numbers_are_not_used_twice),
        ON_ALL(definitions_are_described_once),
        ON_MEMORY(a_survey_tells_of_them),
        ON_POSTGRES(a_survey_tells_of_them),
    };
    return cmocka_run_group_tests_name("store submission", tests, NULL, NULL);
}
