/* Notices, in every body: a change deletes those on which it was decided, or nothing of it is done;
 * others are settled alone. Applications insert them by SQL in transactions of their own. */

#include "contract/store_world.h"

#include "base/buf.h"

static void put(struct world *w, const char *task, const char *body)
{
    const struct notice_row row = {.task = slice_of(task),
                                   .sender = SLICE("test"),
                                   .kind = NOTICE_SIGNAL,
                                   .at = 7,
                                   .body = slice_of(body)};

    must(w->s->ops->notices->put(w->s, &row, 1, &w->e), task);
}

static void write_rows(struct buf *b, const struct notice_read *n)
{
    for (size_t i = 0; i < n->count; i++) {
        const struct notice_row *row = &n->rows[i];
        buf_fmt(b, "%s%d:%.*s:%.*s", i ? " " : "", (int)row->seq, SLICE_ARG(row->task),
                SLICE_ARG(row->body));
        if (row->has_task)
            buf_fmt(b, ":%.*s", SLICE_ARG(row->owner.ptr ? row->owner : SLICE("nobody")));
        if (row->is_submitted)
            buf_str(b, ":submitted");
        if (row->refused_at)
            buf_fmt(b, ":%d:%.*s", (int)row->refused_at, SLICE_ARG(row->reason));
        CHECK(row->at == 7 && slice_is(row->sender, "test") && slice_eq(row->kind, NOTICE_SIGNAL),
              "all columns");
    }
    buf_str(b, n->more ? " ..." : "");
}

static void stand_after(struct world *w, int64_t after, size_t limit, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct notice_read n = {.after_seq = after, .limit = limit};

    must(w->s->ops->notices->read(w->s, &n, &w->a, &w->e), "read");
    write_rows(&b, &n);
    CHECK(slice_is(buf_view(&b), want), "there are: %s, expected: %s", b.ptr ? b.ptr : "", want);
}

static void stand(struct world *w, const char *want)
{
    stand_after(w, 0, 100, want);
}

static void refused(struct world *w, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct notice_read n = {.limit = 100};

    must(w->s->ops->notices->refused(w->s, &n, &w->a, &w->e), "refused");
    write_rows(&b, &n);
    CHECK(slice_is(buf_view(&b), want), "refused: %s, expected: %s", b.ptr ? b.ptr : "", want);
}

static void notices_stand_until_they_are_decided(void **state)
{
    struct world *w = *state;

    stand(w, "");
    put(w, "one", "{}");
    put(w, "two", "[1]");
    must(insert_row(w, a_row("two")), "two");
    stand(w, "1:one:{} 2:two:[1]:nobody");
    stand_after(w, 0, 1, "1:one:{} ...");
    stand_after(w, 1, 1, "2:two:[1]:nobody");
    stand_after(w, 2, 1, "");
    world_restart(w);
    stand(w, "1:one:{} 2:two:[1]:nobody");
}

/* A page begins behind some that were left. */
static void the_next_page_has_none_that_is_behind_another(void **state)
{
    struct world *w = *state;
    const struct notice_verdict gone = {.seq = 1};
    const struct notice_verdict no = {.seq = 2, .refused_at = 9, .reason = SLICE("so")};

    put(w, "one", "1");
    put(w, "two", "2");
    put(w, "one", "3");
    put(w, "two", "4");
    put(w, "three", "5");
    stand_after(w, 1, 100, "2:two:2 4:two:4 5:three:5");
    stand_after(w, 2, 1, "5:three:5");
    must(w->s->ops->notices->settle(w->s, &gone, 1, &w->e), "settle");
    stand_after(w, 2, 1, "3:one:3 ...");
    must(w->s->ops->notices->settle(w->s, &no, 1, &w->e), "settle");
    stand_after(w, 2, 100, "3:one:3 4:two:4 5:three:5");
}

static size_t so_many(struct world *w, struct notice_read n, bool *ret_more)
{
    must(w->s->ops->notices->read(w->s, &n, &w->a, &w->e), "read");
    *ret_more = n.more;
    return n.count;
}

/* The first one is read whatever it has. */
static void a_page_has_so_many_bytes(void **state)
{
    struct world *w = *state;
    bool more = false;

    for (int i = 0; i < 5; i++)
        put(w, "one", "[123456789]");
    CHECK(so_many(w, (struct notice_read){.limit = 9, .bytes_max = 1}, &more) == 1 && more, "one");
    CHECK(so_many(w, (struct notice_read){.limit = 9, .bytes_max = 40}, &more) == 3 && more,
          "three");
    CHECK(so_many(w, (struct notice_read){.limit = 9, .bytes_max = 400}, &more) == 5 && !more,
          "all");
    CHECK(so_many(w, (struct notice_read){.limit = 2, .bytes_max = 400}, &more) == 2 && more,
          "two");
}

enum { PARTS = 3, PATIENCE = 1000, LATE = 2000000000 };

/* How many tasks a node reads notices of. */
static size_t read_by_part(struct world *w, uint32_t part, const char *me)
{
    bool more = false;
    return so_many(w,
                   (struct notice_read){.limit = 99,
                                        .parts = PARTS,
                                        .part = part,
                                        .me = slice_of(me),
                                        .patience_ms = PATIENCE,
                                        .now = LATE},
                   &more);
}

static void insert_at(struct world *w, const char *task, int64_t at)
{
    const struct notice_row row = {.task = slice_of(task),
                                   .sender = SLICE("test"),
                                   .kind = NOTICE_SIGNAL,
                                   .at = at,
                                   .body = SLICE("{}")};
    must(w->s->ops->notices->put(w->s, &row, 1, &w->e), task);
}

/* The store's clock is that of the machine, or `now`: `never` lies ahead of both. */
static void each_part_has_its_own(void **state)
{
    struct world *w = *state;
    const int64_t never = INT64_C(1) << 50;
    size_t sum = 0;
    char id[16];

    if (!w->s->ops->nodes)
        return; /* nobody shares it */
    for (int i = 0; i < 30; i++) {
        (void)snprintf(id, sizeof id, "t-%d", i);
        insert_at(w, id, never);
    }
    for (uint32_t part = 0; part < PARTS; part++) {
        size_t own = read_by_part(w, part, "n1/1");
        CHECK(own > 0 && own < 30, "%zu of part %u", own, part);
        sum += own;
    }
    CHECK(sum == 30, "each is of one part: %zu", sum);
    struct task_row row = a_row("t-0");
    row.state = TASK_PROCESSING;
    row.waiting_for = SLICE_NONE;
    row.locked_by = SLICE("n9/1");
    must(insert_row(w, row), "it is owned");
    sum = 0;
    for (uint32_t part = 0; part < PARTS; part++)
        sum += read_by_part(w, part, "n1/1");
    CHECK(sum == 29, "no other node reads it: %zu", sum);
    sum = 0;
    for (uint32_t part = 0; part < PARTS; part++)
        sum += read_by_part(w, part, "n9/1");
    CHECK(sum == 29 + PARTS, "its owner does: %zu", sum);
}

static void the_next_part_reads_what_waits_for_long(void **state)
{
    struct world *w = *state;
    size_t sum = 0;

    if (!w->s->ops->nodes)
        return;
    insert_at(w, "one", 7);
    for (uint32_t part = 0; part < PARTS; part++)
        sum += read_by_part(w, part, "n1/1");
    CHECK(sum == PARTS, "all do by now: %zu", sum);
}

/* The clocks of those who sent them may differ. */
static void no_part_reads_one_behind_one_that_it_does_not_read(void **state)
{
    struct world *w = *state;
    const int64_t never = INT64_C(1) << 50;
    size_t sum = 0;

    if (!w->s->ops->nodes)
        return;
    insert_at(w, "one", 7);
    insert_at(w, "one", never);
    insert_at(w, "one", 8);
    insert_at(w, "one", 7);
    for (uint32_t part = 0; part < PARTS; part++)
        sum += read_by_part(w, part, "n1/1");
    CHECK(sum == 4 + (PARTS - 1), "all by its own part, the first by others: %zu", sum);
}

static void of_each_task_it_is_known_since_when_it_is_told(void **state)
{
    struct world *w = *state;
    const struct slice ids[] = {SLICE("two"), SLICE("none"), SLICE("one"), SLICE("two")};
    int64_t at[4] = {1, 1, 1, 1};

    insert_at(w, "one", 30);
    insert_at(w, "one", 20);
    insert_at(w, "two", 10);
    insert_at(w, "two", 40);
    const struct notice_verdict no = {.seq = 3, .refused_at = 9, .reason = SLICE("so")};
    must(w->s->ops->notices->settle(w->s, &no, 1, &w->e), "settle");
    must(w->s->ops->notices->told(w->s, ids, COUNT_OF(ids), at, &w->e), "told");
    CHECK(at[0] == 40 && at[1] == 0 && at[2] == 20 && at[3] == 40, "%d %d %d %d", (int)at[0],
          (int)at[1], (int)at[2], (int)at[3]);
}

static void they_are_settled_alone(void **state)
{
    struct world *w = *state;
    const struct notice_verdict list[] = {{.seq = 1},
                                          {.seq = 2, .refused_at = 9, .reason = SLICE("so")},
                                          {.seq = 99}};

    put(w, "one", "1");
    put(w, "two", "2");
    put(w, "three", "3");
    for (int i = 0; i < 2; i++) { /* the second time changes nothing */
        must(w->s->ops->notices->settle(w->s, list, COUNT_OF(list), &w->e), "settle");
        stand(w, "3:three:3");
        refused(w, "2:two:2:9:so");
    }
    const struct notice_verdict late = {.seq = 2};
    must(w->s->ops->notices->settle(w->s, &late, 1, &w->e), "settle");
    refused(w, "2:two:2:9:so"); /* it is not to be decided any more */
}

static enum err change(struct world *w, const char *id, uint64_t revision, const int64_t *notices,
                       size_t count)
{
    struct task_row row = a_row(id);

    row.revision = revision;
    return put_change(w, (struct change){.kind = CHANGE_UPDATE,
                                         .row = row,
                                         .notices = notices,
                                         .notice_count = count});
}

static uint64_t revision_of(struct world *w, const char *id)
{
    struct task_row row;

    must(w->s->ops->get(w->s, slice_of(id), &w->a, &row, &w->e), id);
    return row.revision;
}

static void a_change_takes_its_notices_along(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("one")), "one");
    for (int i = 0; i < 4; i++)
        put(w, "one", "0");
    CHECK(change(w, "one", 9, (int64_t[]){1}, 1) == ERR_CONFLICT, "it has another revision");
    stand(w, "1:one:0:nobody 2:one:0:nobody 3:one:0:nobody 4:one:0:nobody");
    must(change(w, "one", 2, (int64_t[]){1, 3}, 2), "two of them");
    stand(w, "2:one:0:nobody 4:one:0:nobody");
    CHECK(change(w, "one", 3, (int64_t[]){2, 3}, 2) == ERR_CONFLICT, "one is gone");
    stand(w, "2:one:0:nobody 4:one:0:nobody");
    CHECK(revision_of(w, "one") == 2, "nothing was done");
    const struct notice_verdict v = {.seq = 4, .refused_at = 9, .reason = SLICE("so")};
    must(w->s->ops->notices->settle(w->s, &v, 1, &w->e), "settle");
    CHECK(change(w, "one", 3, (int64_t[]){4}, 1) == ERR_CONFLICT, "one was refused");
    must(change(w, "one", 3, (int64_t[]){2}, 1), "the last");
    stand(w, "");
    refused(w, "4:one:0:9:so");
    CHECK(revision_of(w, "one") == 3, "it was done once");
}

/* Each change of a batch has an outcome of its own. */
static void other_changes_of_the_batch_are_done(void **state)
{
    struct world *w = *state;
    struct change list[3];
    const int64_t gone[] = {77};
    const int64_t there[] = {1};
    const char *const ids[] = {"one", "two", "three"};

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        must(insert_row(w, a_row(ids[i])), ids[i]);
        list[i] = (struct change){.kind = CHANGE_UPDATE, .row = a_row(ids[i])};
        list[i].row.revision = 2;
    }
    put(w, "one", "0");
    list[0].notices = there;
    list[1].notices = gone;
    list[0].notice_count = list[1].notice_count = 1;
    struct batch b = {.changes = list, .change_count = COUNT_OF(list)};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "batch");
    CHECK(list[0].outcome == ERR_OK, "its notice is there");
    CHECK(list[1].outcome == ERR_CONFLICT, "its notice is not");
    CHECK(list[2].outcome == ERR_OK, "it has none");
    CHECK(revision_of(w, "one") == 2 && revision_of(w, "two") == 1 && revision_of(w, "three") == 2,
          "revisions");
    stand(w, "");
}

static void a_submission_of_its_task_is_seen(void **state)
{
    struct world *w = *state;
    const struct submission_row row = {.source = SLICE("sql"),
                                       .id = SLICE("one"),
                                       .workflow = SLICE("w"),
                                       .submitted_at = 1};

    put(w, "one", "1");
    put(w, "two", "2");
    must(w->s->ops->submissions->put(w->s, &row, 1, &w->e), "submission");
    stand(w, "1:one:1:submitted 2:two:2");
    must(insert_row(w, a_row("one")), "one");
    stand(w, "1:one:1:nobody 2:two:2");
}

static void a_survey_tells_of_them(void **state)
{
    struct world *w = *state;
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .now = 1000,
                       .length_ms = 3000};
    struct submission_take t = {.limit = 10};

    if (w->s->ops->nodes) {
        must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
        CHECK(!v.notices, "there is none");
    }
    put(w, "one", "1");
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), "take");
    if (w->s->ops->nodes) {
        must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
        CHECK(v.notices && v.signals_refused == 0, "there is one");
    } else {
        CHECK(t.notices && t.signals_refused == 0, "there is one");
    }
    const struct notice_verdict no = {.seq = 1, .refused_at = 9, .reason = SLICE("so")};
    must(w->s->ops->notices->settle(w->s, &no, 1, &w->e), "settle");
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), "take");
    if (w->s->ops->nodes)
        must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    CHECK((w->s->ops->nodes ? v.signals_refused : t.signals_refused) == 1, "it was refused");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(notices_stand_until_they_are_decided),
        ON_ALL(they_are_settled_alone),
        ON_ALL(the_next_page_has_none_that_is_behind_another),
        ON_ALL(a_page_has_so_many_bytes),
        ON_ALL(each_part_has_its_own),
        ON_ALL(the_next_part_reads_what_waits_for_long),
        ON_ALL(no_part_reads_one_behind_one_that_it_does_not_read),
        ON_ALL(of_each_task_it_is_known_since_when_it_is_told),
        ON_ALL(a_change_takes_its_notices_along),
        ON_ALL(other_changes_of_the_batch_are_done),
        ON_ALL(a_submission_of_its_task_is_seen),
        ON_ALL(a_survey_tells_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
