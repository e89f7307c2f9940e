/* The contract of a state store for tasks, checked on every body (store_world.h). Each test names
 * one promise. Other files of this folder (store_*.c) have the other promises. */
#include "store_world.h"

#include <stdlib.h>

#include "base/prng.h"

/* --- changes --- */

static struct task_row full_row(const char *id)
{
    struct task_row row = a_row(id);

    row.version = 7;
    row.direction = DIRECTION_UNDO;
    row.priority = 9;
    row.complete_by = 11;
    row.wake_at = 12;
    row.not_before = 13;
    row.rank = -14;
    row.request = SLICE("{\"retry\":\"x\"}");
    row.failure_count = UINT32_MAX;
    row.submitted_at = 15;
    row.started_at = 16;
    row.paused_at = row.closed_at = 17;
    row.ended_at = INT64_C(253402300799999);
    row.reply_to = SLICE("http://localhost/x");
    row.tags = SLICE("{\"k\":\"v\",\"n\":1,\"b\":true,\"z\":null}");
    row.asked = SLICE(",cfo,finance,");
    return row;
}

static void an_inserted_row_is_read_as_it_was_written(void **state)
{
    struct world *w = *state;
    struct task_row row = full_row("x");

    must(insert_row(w, row), "insert");
    struct task_row seen = fetch(w, "x");
    CHECK(seen.seq > 0, "the store gives it a seq");
    row.seq = seen.seq;
    rows_equal(&row, &seen, "full row");

    row =
        (struct task_row){.id = SLICE("y"), .workflow = SLICE(""), .revision = 1, .doc = SLICE("")};
    must(insert_row(w, row), "insert");
    struct task_row bare = fetch(w, "y");
    CHECK(bare.seq > seen.seq, "seq grows");
    row.seq = bare.seq;
    rows_equal(&row, &bare, "bare row: NONE stays NONE, empty stays empty, 0 stays 0");
}

static void an_id_can_be_inserted_once(void **state)
{
    struct world *w = *state;
    struct task_row row = a_row("x");

    must(insert_row(w, row), "insert");
    row.doc = SLICE("{\"other\":1}");
    CHECK(insert_row(w, row) == ERR_CONFLICT, "the second one");
    CHECK(slice_is(fetch(w, "x").doc, "{\"steps\":[]}"), "the first one stands");
}

static void an_update_writes_what_may_change_and_nothing_else(void **state)
{
    struct world *w = *state;
    struct task_row old = a_row("x");
    struct task_row row = full_row("x");

    old.tags = SLICE("{}");
    must(insert_row(w, old), "insert");
    old.seq = fetch(w, "x").seq;
    row.revision = 2;
    row.state = TASK_COMPENSATING;
    row.locked_by = SLICE("n1/3");
    row.waiting_for = SLICE_NONE;
    must(update_row(w, row), "update");

    struct task_row seen = fetch(w, "x");
    row.seq = old.seq;
    row.workflow = old.workflow;
    row.version = old.version;
    row.submitted_at = old.submitted_at;
    row.reply_to = old.reply_to;
    row.tags = old.tags;
    rows_equal(&row, &seen, "update");

    row.revision = 3;
    row.doc = SLICE("{\"same state and owner\":1}");
    row.request = SLICE_NONE;
    must(update_row(w, row), "update that moves neither state nor owner");
    seen = fetch(w, "x");
    rows_equal(&row, &seen, "second update");
}

static void a_stale_revision_changes_nothing(void **state)
{
    struct world *w = *state;
    static const enum change_kind kinds[] = {CHANGE_UPDATE, CHANGE_REQUEST};

    must(insert_row(w, a_row("x")), "insert");
    struct task_row row = fetch(w, "x");
    row.revision = 2;
    must(update_row(w, row), "update");
    struct task_row before = fetch(w, "x");

    row.doc = SLICE("{\"late\":1}");
    row.request = SLICE("{}");
    for (size_t i = 0; i < 2 * COUNT_OF(kinds); i++)
        for (uint64_t revision = 2; revision < 6; revision++) {
            row.revision = revision;
            enum err want = revision == before.revision + 1 ? ERR_OK : ERR_CONFLICT;
            struct change c = {.kind = kinds[i / 2], .release = i % 2, .row = row};
            if (want == ERR_OK)
                continue;
            CHECK(put_change(w, c) == want, "revision %" PRIu64, revision);
        }
    struct task_row after = fetch(w, "x");
    rows_equal(&before, &after, "refused changes");

    row.id = SLICE("nobody");
    row.revision = 2;
    CHECK(update_row(w, row) == ERR_CONFLICT, "a row that is gone");
    CHECK(!exists(w, "nobody"), "is not made");
}

static void wake_at_moves_only_if_it_is_said_to(void **state)
{
    struct world *w = *state;
    struct task_row row = a_row("x");
    struct row_page page;

    row.wake_at = 50;
    must(insert_row(w, row), "insert");
    row.revision = 2;
    row.wake_at = 70;
    must(put_change(w, (struct change){.kind = CHANGE_UPDATE, .row = row}), "update");
    CHECK(fetch(w, "x").wake_at == 50, "left alone");
    row.revision = 3;
    must(update_row(w, row), "update");
    CHECK(fetch(w, "x").wake_at == 70, "moved");
    must(w->s->ops->overdue(w->s, 60, 0, 0, 10, &w->a, &page, &w->e), "overdue");
    CHECK(page.count == 0, "not due at its old time");
    row.revision = 4;
    row.wake_at = 0;
    must(update_row(w, row), "update");
    CHECK(fetch(w, "x").wake_at == 0, "gone");
}

static void a_request_is_written_beside_what_runs(void **state)
{
    struct world *w = *state;
    struct task_row row = a_row("x");

    must(insert_row(w, row), "insert");
    row.revision = 2;
    row.state = TASK_PROCESSING;
    row.locked_by = SLICE("n1/1");
    row.waiting_for = SLICE_NONE;
    must(update_row(w, row), "update");
    struct task_row want = fetch(w, "x");

    struct task_row req = {.id = row.id,
                           .revision = 3,
                           .request = SLICE("{\"r\":1}"),
                           .wake_at = 99};
    must(put_change(w, (struct change){.kind = CHANGE_REQUEST, .row = req}), "request");
    want.revision = 3;
    want.request = req.request;
    want.wake_at = 99;
    struct task_row seen = fetch(w, "x");
    rows_equal(&want, &seen, "request without release");

    req = (struct task_row){.id = row.id, .revision = 4, .waiting_for = SLICE("b"), .rank = 3};
    must(put_change(w, (struct change){.kind = CHANGE_REQUEST, .release = true, .row = req}),
         "request with release");
    want.revision = 4;
    want.request = SLICE_NONE;
    want.wake_at = 0;
    want.state = TASK_PENDING;
    want.locked_by = SLICE_NONE;
    want.waiting_for = req.waiting_for;
    want.rank = 3;
    seen = fetch(w, "x");
    rows_equal(&want, &seen, "request with release");
}

static void each_change_of_a_batch_has_its_own_outcome(void **state)
{
    struct world *w = *state;
    static char big[ROW_SIZE_MAX + 1];
    struct change c[7] = {0};
    static const struct payload nothing = {0};

    memset(big, ' ', sizeof big);
    must(insert_row(w, a_row("old")), "insert");
    c[0] = (struct change){.kind = CHANGE_INSERT, .row = a_row("new-1")};
    c[1] = (struct change){.kind = CHANGE_INSERT, .row = a_row("old")};
    c[2] = (struct change){.kind = CHANGE_INSERT, .row = a_row("bad-tags")};
    c[2].row.tags = SLICE("{nonsense");
    c[3] = (struct change){.kind = CHANGE_INSERT, .row = a_row("too-big")};
    c[3].row.doc = (struct slice){big, sizeof big};
    c[4] = (struct change){.kind = CHANGE_UPDATE, .row = a_row("old")};
    c[4].row.revision = 2;
    c[5] = (struct change){.kind = CHANGE_INSERT, .row = a_row("no-payload")};
    c[5].row.payloads = &nothing;
    c[5].row.payload_count = 1;
    c[6] = (struct change){.kind = CHANGE_INSERT, .row = a_row("new-2")};
    static const enum err want[] = {ERR_OK, ERR_CONFLICT, ERR_INVALID, ERR_TOO_BIG,
                                    ERR_OK, ERR_INVALID,  ERR_OK};
    static const bool there[] = {true, true, false, false, true, false, true};

    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "the batch");
    for (size_t i = 0; i < COUNT_OF(c); i++) {
        CHECK(c[i].outcome == want[i], "change %zu: %s", i, err_text(c[i].outcome));
        CHECK(exists(w, c[i].row.id.ptr) == there[i], "change %zu", i);
    }
    CHECK(fetch(w, "old").revision == 2, "updated");
    CHECK(c[6].row.seq == fetch(w, "new-2").seq, "the change learns its seq");
}

static void a_thousand_changes_are_one_batch(void **state)
{
    struct world *w = *state;
    enum { N = 1000 };
    struct change *c = calloc(N, sizeof *c);
    char id[16];

    for (unsigned round = 1; round <= 2; round++) {
        for (unsigned i = 0; i < N; i++) {
            (void)snprintf(id, sizeof id, "t-%u", i);
            c[i].kind = round == 1 ? CHANGE_INSERT : CHANGE_UPDATE;
            c[i].row = a_row("");
            c[i].row.id = arena_copy(&w->a, slice_of(id));
            c[i].row.revision = round;
            c[i].row.rank = i;
        }
        struct batch b = {.changes = c, .change_count = N};
        must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "the batch");
        for (unsigned i = 0; i < N; i++)
            CHECK(c[i].outcome == ERR_OK, "change %u: %s", i, err_text(c[i].outcome));
    }
    for (unsigned i = 0; i < N; i++) {
        struct task_row row = fetch(w, c[i].row.id.ptr);
        CHECK(row.rank == i && row.revision == 2, "row %u", i);
    }
    free(c);
}

/* A database holds texts in UTF-8 without NULs: the rest it refuses, change by change. */
static void bytes_that_are_no_text_are_refused(void **state)
{
    struct world *w = *state;
    static const struct slice odd[] = {{"a\0b", 3},
                                       {"\xff", 1},
                                       {"\xc3\x28", 2},
                                       {"\xed\xa0\x80", 3}};
    struct task_row seen;

    for (size_t i = 0; i < COUNT_OF(odd); i++) {
        struct change c[3] = {{.kind = CHANGE_INSERT, .row = a_row("x")},
                              {.kind = CHANGE_INSERT, .row = a_row("good")},
                              {.kind = CHANGE_INSERT, .row = a_row("x")}};
        c[0].row.id = odd[i];
        c[2].row.doc = odd[i];
        struct batch b = {.changes = c, .change_count = COUNT_OF(c)};
        must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "the batch");
        CHECK(c[0].outcome == ERR_INVALID && c[2].outcome == ERR_INVALID, "text %zu", i);
        CHECK(c[1].outcome == (i == 0 ? ERR_OK : ERR_CONFLICT), "the others are not concerned");
        CHECK(w->s->ops->get(w->s, odd[i], &w->a, &seen, &w->e) == ERR_NOT_FOUND, "text %zu", i);
    }
    struct task_row row = a_row("\x01'\";--\n\\ %s {} \xc3\xa4 \xf0\x9f\x98\x80");
    row.doc = row.request = row.reply_to = row.waiting_for = row.id;
    must(insert_row(w, row), "insert");
    seen = fetch(w, row.id.ptr);
    row.seq = seen.seq;
    rows_equal(&row, &seen, "odd, but a text");
}

static void unusual_bytes_come_back_as_they_were(void **state)
{
    struct world *w = *state;
    static const char bytes[] = "\0\x01\xff\xfe'\";--\n\\ \xc3\x28 %s\0";
    struct slice odd = {bytes, sizeof bytes};
    struct task_row row = a_row("x");

    row.id = odd;
    row.workflow = odd;
    row.doc = odd;
    row.request = odd;
    row.reply_to = odd;
    row.waiting_for = odd;
    must(insert_row(w, row), "insert");
    CHECK(insert_row(w, row) == ERR_CONFLICT, "it is the same id");
    struct task_row other = row;
    other.id.len--;
    must(insert_row(w, other), "a shorter id is another one");
    struct task_row seen;
    must(w->s->ops->get(w->s, odd, &w->a, &seen, &w->e), "get");
    row.seq = seen.seq;
    rows_equal(&row, &seen, "odd bytes");

    struct claim c = claim_of(w, CLAIM_AGENT, "", 9, 1);
    c.agent = odd;
    claim_commit(w, &c);
    CHECK(c.row_count == 2, "claimed %zu by odd bytes", c.row_count);
}

static void payloads_are_kept_with_their_task(void **state)
{
    struct world *w = *state;
    enum { BIG = 300000 };
    char *text = malloc(BIG);
    struct task_row row = a_row("x");

    memset(text, '7', BIG);
    struct payload first[] = {{2, {text, BIG}}, {1, SLICE("\"one\"")}};
    struct payload second[] = {{3, SLICE("")}, {PAYLOAD_NUMBER_MAX, SLICE("\"last\"")}};
    row.payloads = first;
    row.payload_count = COUNT_OF(first);
    must(insert_row(w, row), "insert");
    must(insert_row(w, a_row("y")), "a neighbour without any");
    row.revision = 2;
    row.payloads = second;
    row.payload_count = COUNT_OF(second);
    must(update_row(w, row), "update");

    struct task_row seen = fetch(w, "x");
    static const uint32_t numbers[] = {1, 2, 3, PAYLOAD_NUMBER_MAX};
    CHECK(seen.payload_count == 4, "all of them: %zu", seen.payload_count);
    for (size_t i = 0; i < 4; i++)
        CHECK(seen.payloads[i].number == numbers[i], "in order");
    CHECK(seen.payloads[1].json.len == BIG && memcmp(seen.payloads[1].json.ptr, text, BIG) == 0,
          "the long one");
    CHECK(fetch(w, "y").payload_count == 0, "none of the neighbour's");

    struct claim c = claim_of(w, CLAIM_AGENT, "a", 1, 5);
    claim_commit(w, &c);
    CHECK(c.row_count == 1 && c.rows[0].payload_count == 4, "a claim reads them");

    row.revision = 4;
    row.payloads = first;
    CHECK(update_row(w, row) == ERR_INVALID, "a number is given once");
    CHECK(fetch(w, "x").revision == 3, "and the change as a whole did nothing");
    struct payload beyond = {PAYLOAD_NUMBER_MAX + 1, SLICE("1")};
    row.payloads = &beyond;
    row.payload_count = 1;
    CHECK(update_row(w, row) == ERR_INVALID, "beyond the last number");
    free(text);
}

static void a_store_outside_its_caller_keeps_copies(void **state)
{
    struct world *w = *state;
    char id[] = "x";
    char doc[] = "{}";
    struct task_row row = a_row(id);

    row.doc = slice_of(doc);
    must(insert_row(w, row), "insert");
    id[0] = 'z';
    doc[0] = 'z';
    CHECK(slice_is(fetch(w, "x").doc, "{}"), "unharmed");
    struct task_row seen = fetch(w, "x");
    row = seen;
    row.revision = 2;
    row.doc = SLICE("{\"n\":2}");
    must(update_row(w, row), "update");
    CHECK(slice_is(seen.doc, "{}"), "what was read stays as it was read");
}

/* --- claims --- */

static void a_claim_takes_the_least_ranks_of_its_agent(void **state)
{
    struct world *w = *state;

    insert_ranked(w, "late", "a", 30);
    insert_ranked(w, "other", "b", 1);
    insert_ranked(w, "first", "a", -5);
    insert_ranked(w, "same-1", "a", 20);
    insert_ranked(w, "same-2", "a", 20);
    insert_ranked(w, "sleeps", "time", 0);

    struct claim c = claim_of(w, CLAIM_AGENT, "a", 2, 777);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"first", "same-1"}, 2, true);
    CHECK(c.next_rank == 0, "next_rank is of CLAIM_TIME");
    struct task_row seen = fetch(w, "first");
    rows_equal(&seen, &c.rows[0], "the row as it is after the claim");
    CHECK(seen.state == TASK_PROCESSING && seen.revision == 2, "claimed");
    CHECK(slice_eq(seen.locked_by, c.locked_by) && !seen.waiting_for.ptr, "owned");
    CHECK(seen.started_at == 777 && seen.rank == -5, "started");

    c = claim_of(w, CLAIM_AGENT, "a", 2, 778);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"same-2", "late"}, 2, false);
    c = claim_of(w, CLAIM_AGENT, "a", 2, 778);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    c = claim_of(w, CLAIM_AGENT, "b", 0, 778);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, true);
}

static void a_claim_keeps_direction_and_first_start(void **state)
{
    struct world *w = *state;
    struct task_row row = a_row("x");

    row.direction = DIRECTION_UNDO;
    row.started_at = 5;
    must(insert_row(w, row), "insert");
    struct claim c = claim_of(w, CLAIM_AGENT, "a", 1, 777);
    claim_commit(w, &c);
    CHECK(c.rows[0].state == TASK_COMPENSATING && c.rows[0].started_at == 5, "compensating");
    struct task_row seen = fetch(w, "x");
    rows_equal(&seen, &c.rows[0], "the same in the store");
}

static void only_pending_unlocked_tasks_are_claimed(void **state)
{
    struct world *w = *state;
    static const enum task_state states[] = {TASK_PROCESSING, TASK_PROCESSED, TASK_COMPENSATING,
                                             TASK_COMPENSATED, TASK_ERROR};
    char id[2] = "0";

    for (size_t i = 0; i < COUNT_OF(states); i++, id[0]++) {
        struct task_row row = a_row(id);
        row.state = states[i];
        must(insert_row(w, row), "insert");
    }
    struct task_row row = a_row("locked");
    row.locked_by = SLICE("n2/9");
    must(insert_row(w, row), "insert");
    struct claim c = claim_of(w, CLAIM_AGENT, "a", 9, 1);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
}

static void sleepers_are_claimed_when_they_are_due(void **state)
{
    struct world *w = *state;

    insert_ranked(w, "at-30", "time", 30);
    insert_ranked(w, "at-10", "time", 10);
    insert_ranked(w, "at-20", "time", 20);
    insert_ranked(w, "agent", "a", 1);

    struct claim c = claim_of(w, CLAIM_TIME, "time", 9, 9);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    CHECK(c.next_rank == 10, "next is %" PRId64, c.next_rank);
    c = claim_of(w, CLAIM_TIME, "time", 1, 20);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"at-10"}, 1, true);
    CHECK(c.next_rank == 20, "next is %" PRId64, c.next_rank);
    c = claim_of(w, CLAIM_TIME, "time", 9, 20);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"at-20"}, 1, false);
    CHECK(c.next_rank == 30, "next is %" PRId64, c.next_rank);
    c = claim_of(w, CLAIM_TIME, "time", 9, 30);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"at-30"}, 1, false);
    CHECK(c.next_rank == 0, "nothing sleeps");
}

static void a_claim_sees_the_changes_of_its_batch(void **state)
{
    struct world *w = *state;
    struct change c[2] = {{.kind = CHANGE_INSERT, .row = a_row("x")},
                          {.kind = CHANGE_INSERT, .row = a_row("y")}};
    struct claim claims[2] = {claim_of(w, CLAIM_AGENT, "a", 1, 5),
                              claim_of(w, CLAIM_AGENT, "a", 5, 5)};
    struct batch b = {.changes = c, .change_count = 2, .claims = claims, .claim_count = 2};

    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "the batch");
    claimed(&claims[0], (const char *const[]){"x"}, 1, true);
    claimed(&claims[1], (const char *const[]){"y"}, 1, false);
}

/* --- reading --- */

static void what_is_overdue_comes_in_pages_earliest_first(void **state)
{
    struct world *w = *state;
    struct prng p = {5};
    char id[16];
    int64_t at = 0;
    int64_t seq = 0;
    size_t seen = 0;
    size_t due = 0;
    struct row_page page = {.more = true};

    for (unsigned i = 0; i < 200; i++) {
        struct task_row row = a_row(id);
        (void)snprintf(id, sizeof id, "t-%u", i);
        row.id = slice_of(id);
        row.wake_at = prng_below(&p, 10); /* 0: none; many at the same time */
        due += row.wake_at >= 1 && row.wake_at <= 7;
        must(insert_row(w, row), id);
    }
    while (page.more) {
        must(w->s->ops->overdue(w->s, 7, at, seq, 13, &w->a, &page, &w->e), "page");
        CHECK(page.count == 13 || !page.more, "full pages");
        for (size_t i = 0; i < page.count; i++, seen++) {
            const struct task_row *row = &page.rows[i];
            CHECK(row->wake_at > at || (row->wake_at == at && row->seq > seq), "in order");
            CHECK(row->wake_at <= 7, "due");
            at = row->wake_at;
            seq = row->seq;
        }
    }
    CHECK(seen == due, "saw %zu of %zu", seen, due);
    must(w->s->ops->overdue(w->s, 0, 0, 0, 13, &w->a, &page, &w->e), "nothing");
    CHECK(page.count == 0 && !page.more, "nothing is due at 0");
}

static void listings_come_in_pages_newest_first(void **state)
{
    struct world *w = *state;
    struct prng p = {6};
    char id[16];
    enum task_state states[150];
    bool orders[150];

    for (unsigned i = 0; i < COUNT_OF(states); i++) {
        struct task_row row = a_row(id);
        (void)snprintf(id, sizeof id, "t-%u", i);
        row.id = slice_of(id);
        row.state = states[i] = (enum task_state)prng_below(&p, TASK_ERROR + 1);
        orders[i] = prng_chance(&p, 50);
        row.workflow = slice_of(orders[i] ? "order" : "refund");
        must(insert_row(w, row), id);
    }
    for (unsigned pick = 0; pick < 2 * (TASK_ERROR + 2); pick++) {
        struct list_query q = {.limit = 7};
        if (pick / 2 <= TASK_ERROR)
            q.states = 1U << (pick / 2);
        q.workflow = pick % 2 ? SLICE("order") : SLICE_NONE;
        struct row_page page = {.more = true};
        size_t at = COUNT_OF(states);
        while (page.more) {
            must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "page");
            for (size_t i = 0; i < page.count; i++) {
                do
                    CHECK(at-- > 0, "too many");
                while ((q.states && q.states != 1U << states[at]) || (pick % 2 && !orders[at]));
                (void)snprintf(id, sizeof id, "t-%zu", at);
                CHECK(slice_is(page.rows[i].id, id), "query %u: %.*s instead of %s", pick,
                      SLICE_ARG(page.rows[i].id), id);
            }
            q.before_seq = page.next_seq;
            CHECK(page.count == 7 || !page.more, "full pages");
        }
        while (at-- > 0)
            CHECK((q.states && q.states != 1U << states[at]) || (pick % 2 && !orders[at]),
                  "query %u left out %zu", pick, at);
    }
}

/* One task every ten minutes; of "city" every third, of "rare" one in all. */
static void insert_hours(struct world *w, unsigned count, unsigned rare)
{
    for (unsigned i = 0; i < count; i++) {
        char id[16];
        struct task_row row = a_row(id);
        (void)snprintf(id, sizeof id, "t-%u", i);
        row.id = slice_of(id);
        row.submitted_at = 1 + i * INT64_C(600000);
        row.state = i % 5 ? TASK_PROCESSED : TASK_PENDING;
        row.tags = i == rare    ? SLICE("{\"rare\":\"x\",\"city\":\"Bonn\"}")
                   : i % 3 == 0 ? SLICE("{\"city\":\"Bonn\"}")
                                : SLICE_NONE;
        must(insert_row(w, row), id);
    }
}

/* Goes through all pages: which tasks there are, as a bit each, newest first without repeating. */
static uint64_t all_pages(struct world *w, struct list_query q)
{
    struct row_page page = {.more = true};
    uint64_t seen = 0;
    int64_t last = INT64_MAX;

    while (page.more) {
        must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "page");
        CHECK(page.count <= q.limit, "a page of %zu", page.count);
        for (size_t i = 0; i < page.count; i++) {
            CHECK(page.rows[i].seq < last, "in order");
            last = page.rows[i].seq;
            unsigned long n = strtoul(page.rows[i].id.ptr + 2, NULL, 10);
            CHECK(n < 64, "there is none");
            seen |= UINT64_C(1) << n;
        }
        CHECK(!page.more
                  || (page.next_seq <= last && (!q.before_seq || page.next_seq < q.before_seq)),
              "the next page begins where this one ends");
        q.before_seq = page.next_seq;
    }
    return seen;
}

static uint64_t bits(unsigned from, unsigned to, unsigned step)
{
    uint64_t set = 0;

    for (unsigned i = from; i < to; i++)
        set |= i % step == 0 ? UINT64_C(1) << i : 0;
    return set;
}

/* However few rows a page may look at, all pages together show what there is. */
static void listings_are_narrowed_by_tags_and_times(void **state)
{
    const struct tag tags[] = {{SLICE("city"), SLICE("Bonn")}, {SLICE("rare"), SLICE("x")}};
    struct world *w = *state;
    const uint64_t tagged = bits(0, 60, 3) | UINT64_C(1) << 7;
    const uint32_t pending = 1U << TASK_PENDING, open = pending | 1U << TASK_ERROR;
    const int64_t from = 1 + 18 * INT64_C(600000), to = 1 + 31 * INT64_C(600000);
    /* clang-format off */
    const struct { const char *what; struct list_query q; uint64_t tasks; } cases[] = {
        {"all", {.states = 0}, bits(0, 60, 1)},
        {"pending", {.states = pending}, bits(0, 60, 5)},
        {"pending or error", {.states = open}, bits(0, 60, 5)},
        {"open, Bonn", {.states = open, .tags = tags, .tag_count = 1}, tagged & bits(0, 60, 5)},
        {"Bonn", {.tags = tags, .tag_count = 1}, tagged},
        {"rare, in Bonn", {.tags = tags, .tag_count = 2}, UINT64_C(1) << 7},
        {"rare", {.tags = tags + 1, .tag_count = 1}, UINT64_C(1) << 7},
        {"some hours", {.submitted_after = from, .submitted_before = to}, bits(18, 31, 1)},
        {"hours, pending", {.submitted_after = from, .submitted_before = to, .states = pending},
         bits(18, 31, 5)},
        {"of no workflow, pending", {.states = pending, .workflow = SLICE("no")}, 0},
        {"of no workflow", {.submitted_after = from, .workflow = SLICE("no")}, 0},
        {"of ids that begin so", {.id_prefix = SLICE("t-1")}, bits(10, 20, 1) | UINT64_C(2)},
        {"pending, of these ids", {.id_prefix = SLICE("t-1"), .states = open}, bits(10, 20, 5)},
        {"in Bonn, of ids that begin so",
         {.id_prefix = SLICE("t-1"), .states = open, .tags = tags, .tag_count = 1},
         bits(15, 16, 1)},
        {"a whole id is a beginning", {.id_prefix = SLICE("t-59")}, UINT64_C(1) << 59},
        {"of no id", {.id_prefix = SLICE("T-")}, 0},
    };
    /* clang-format on */

    insert_hours(w, 60, 7);
    for (size_t scan_max = 0; scan_max < 12; scan_max += 1 + scan_max / 3)
        for (size_t limit = 1; limit < 70; limit *= 4)
            for (size_t i = 0; i < COUNT_OF(cases); i++) {
                struct list_query q = cases[i].q;
                q.limit = limit;
                q.scan_max = scan_max;
                CHECK(all_pages(w, q) == cases[i].tasks, "%s", cases[i].what);
            }
}

/* Tasks that move from state to state between two pages stay where they are. */
static void pages_neither_repeat_nor_miss_what_moves(void **state)
{
    struct world *w = *state;
    struct prng p = {9};
    struct list_query q = {.limit = 7};
    struct row_page page = {.more = true};
    unsigned next = 60;

    insert_hours(w, 60, 0);
    while (page.more) {
        must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "page");
        for (size_t i = 0; i < page.count; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "t-%u", --next);
            CHECK(slice_is(page.rows[i].id, id), "%.*s instead of %s", SLICE_ARG(page.rows[i].id),
                  id);
        }
        q.before_seq = page.next_seq;
        for (unsigned i = 0; i < 20; i++) {
            char id[16];
            struct task_row row;
            (void)snprintf(id, sizeof id, "t-%u", prng_below(&p, 60));
            must(w->s->ops->get(w->s, slice_of(id), &w->a, &row, &w->e), id);
            row.revision++;
            row.state = (enum task_state)prng_below(&p, TASK_ERROR + 1);
            struct change c = {.kind = CHANGE_UPDATE, .row = row};
            struct batch b = {.changes = &c, .change_count = 1};
            must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "move");
            must(c.outcome, "move");
        }
    }
    CHECK(next == 0, "%u were left out", next);
}

static void what_is_not_there_is_not_found(void **state)
{
    struct world *w = *state;
    struct task_row row = a_row("x");
    struct workflow_row wf;

    CHECK(w->s->ops->get(w->s, SLICE("x"), &w->a, &row, &w->e) == ERR_NOT_FOUND, "task");
    CHECK(row.rank == 100, "out-parameters are left alone");
    CHECK(w->s->ops->workflow_get(w->s, SLICE("x"), 0, &w->a, &wf, &w->e) == ERR_NOT_FOUND,
          "workflow");
}

/* --- workflows --- */

static void put_workflow(struct world *w, const char *name, const char *text, int64_t version,
                         bool is_new)
{
    int64_t got = 0;
    bool got_new = !is_new;

    must(w->s->ops->workflow_put(w->s, slice_of(name), slice_of(text), 10 + version, NULL, &got,
                                 &got_new, &w->e),
         name);
    CHECK(got == version && got_new == is_new, "%s %s: version %" PRId64, name, text, got);
}

static void workflows_are_versioned_and_never_change(void **state)
{
    struct world *w = *state;
    struct workflow_row wf;
    struct workflow_row *list;
    size_t count;

    put_workflow(w, "order", "A", 1, true);
    put_workflow(w, "order", "A", 1, false);
    put_workflow(w, "order", "B", 2, true);
    put_workflow(w, "order", "A", 3, true);
    put_workflow(w, "audit", "A", 1, true);
    must(w->s->ops->workflow_get(w->s, SLICE("order"), 0, &w->a, &wf, &w->e), "newest");
    CHECK(wf.version == 3 && slice_is(wf.text, "A") && wf.created_at == 13, "newest");
    must(w->s->ops->workflow_get(w->s, SLICE("order"), 2, &w->a, &wf, &w->e), "second");
    CHECK(wf.version == 2 && slice_is(wf.text, "B") && slice_is(wf.name, "order"), "second");
    CHECK(w->s->ops->workflow_get(w->s, SLICE("order"), 4, &w->a, &wf, &w->e) == ERR_NOT_FOUND,
          "fourth");

    world_restart(w);
    must(w->s->ops->workflow_list(w->s, &w->a, &list, &count, &w->e), "list");
    static const char *const want[] = {"audit1A", "order1A", "order2B", "order3A"};
    CHECK(count == COUNT_OF(want), "%zu of them", count);
    for (size_t i = 0; i < count; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%.*s%" PRId64 "%.*s", SLICE_ARG(list[i].name),
                       list[i].version, SLICE_ARG(list[i].text));
        CHECK(strcmp(text, want[i]) == 0, "place %zu: %s", i, text);
    }
}

static void what_was_committed_is_there_after_a_restart(void **state)
{
    struct world *w = *state;
    struct task_row row = full_row("x");

    must(insert_row(w, row), "insert");
    must(insert_row(w, a_row("y")), "insert");
    row.revision = 2;
    must(update_row(w, row), "update");
    struct claim c = claim_of(w, CLAIM_AGENT, "a", 1, 5);
    claim_commit(w, &c);
    struct task_row before = fetch(w, "x");
    struct task_row other = fetch(w, "y");
    world_restart(w);
    struct task_row after = fetch(w, "x");
    rows_equal(&before, &after, "x");
    after = fetch(w, "y");
    rows_equal(&other, &after, "y");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(an_inserted_row_is_read_as_it_was_written),
        ON_ALL(an_id_can_be_inserted_once),
        ON_ALL(an_update_writes_what_may_change_and_nothing_else),
        ON_ALL(a_stale_revision_changes_nothing),
        ON_ALL(wake_at_moves_only_if_it_is_said_to),
        ON_ALL(a_request_is_written_beside_what_runs),
        ON_ALL(each_change_of_a_batch_has_its_own_outcome),
        ON_ALL(a_thousand_changes_are_one_batch),
        ON_MEMORY(unusual_bytes_come_back_as_they_were),
        ON_SQLITE(unusual_bytes_come_back_as_they_were),
        ON_POSTGRES(bytes_that_are_no_text_are_refused),
        ON_ALL(payloads_are_kept_with_their_task),
        ON_ALL(a_store_outside_its_caller_keeps_copies),
        ON_ALL(a_claim_takes_the_least_ranks_of_its_agent),
        ON_ALL(a_claim_keeps_direction_and_first_start),
        ON_ALL(only_pending_unlocked_tasks_are_claimed),
        ON_ALL(sleepers_are_claimed_when_they_are_due),
        ON_ALL(a_claim_sees_the_changes_of_its_batch),
        ON_ALL(what_is_overdue_comes_in_pages_earliest_first),
        ON_ALL(listings_come_in_pages_newest_first),
        ON_ALL(listings_are_narrowed_by_tags_and_times),
        ON_ALL(pages_neither_repeat_nor_miss_what_moves),
        ON_ALL(what_is_not_there_is_not_found),
        ON_ALL(workflows_are_versioned_and_never_change),
        ON_ALL(what_was_committed_is_there_after_a_restart),
    };
    return cmocka_run_group_tests_name("store contract", tests, NULL, NULL);
}
