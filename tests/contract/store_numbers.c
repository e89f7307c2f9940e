/*
 * Numbers that a store assigns to rows: none is reused while a client may know it, even after
 * tables were emptied and nodes restarted. A cursor, a settlement and a payload keep their meaning.
 */

#include "store_world.h"

/* ---- tasks, submissions, operations, alerts, audits: never twice ---- */

static void insert_ended(struct world *w, const char *id)
{
    struct task_row row = a_row(id);

    row.state = TASK_PROCESSED;
    row.ended_at = 2000;
    row.waiting_for = SLICE_NONE;
    must(insert_row(w, row), id);
}

/* After another one: if the store keeps the newest, there is one that goes. */
static int64_t next_task(struct world *w, const char *id)
{
    char other[80];

    (void)snprintf(other, sizeof other, "%s-before", id);
    insert_ended(w, other);
    insert_ended(w, id);
    return fetch(w, id).seq;
}

/* All that ended. */
static void retire_all(struct world *w)
{
    const struct retire_rule rule = {.states = 1U << TASK_PROCESSED, .ended_before = 5000};
    struct retire_look l = {.rules = &rule, .rule_count = 1, .scan_max = 100};
    bool gone[100];

    must(w->s->ops->retention->look(w->s, &l, &w->a, &w->e), w->e.text);
    struct retire r = {.tasks = l.found, .task_count = l.found_count, .gone = gone};
    must(w->s->ops->retention->retire(w->s, &r, &w->e), w->e.text);
    CHECK(l.found_count > 0, "nothing was deleted");
}

static int64_t next_submission(struct world *w, const char *id)
{
    const struct submission_row row = {.source = SLICE("sql"),
                                       .id = slice_of(id),
                                       .workflow = SLICE("order"),
                                       .submitted_at = 1000};
    struct submission_take t = {.limit = 100, .now = w->now};

    must(w->s->ops->submissions->put(w->s, &row, 1, &w->e), w->e.text);
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), w->e.text);
    CHECK(t.count > 0, "none waits");
    return t.rows[t.count - 1].seq;
}

static void settle_submissions(struct world *w)
{
    struct submission_take t = {.limit = 100, .now = w->now};

    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), w->e.text);
    for (size_t i = 0; i < t.count; i++) {
        const struct submission_verdict gone = {.seq = t.rows[i].seq};
        must(w->s->ops->submissions->settle(w->s, &gone, 1, &w->e), w->e.text);
    }
}

static int64_t next_operation(struct world *w, const char *id)
{
    const struct operation_row row = {.id = slice_of(id),
                                      .revision = 1,
                                      .state = SLICE("ended"),
                                      .verb = SLICE("retry"),
                                      .actor = SLICE("ann"),
                                      .reason = SLICE("why"),
                                      .started_at = 5000,
                                      .doc = SLICE("{}")};
    const struct operation_query newest = {.limit = 1};
    struct operation_page page = {0};

    must(w->s->ops->operations->put(w->s, &row, NULL, &w->e), w->e.text);
    must(w->s->ops->operations->list(w->s, &newest, &w->a, &page, &w->e), w->e.text);
    CHECK(page.count == 1 && slice_is(page.rows[0].id, id), "%s is the newest", id);
    return page.rows[0].seq;
}

static int64_t next_alert(struct world *w, const char *id)
{
    const struct alert_row row = {.id = slice_of(id),
                                  .key = slice_of(id),
                                  .doc = SLICE("{}"),
                                  .opened_at = 1000,
                                  .resolved_at = 2000};
    const struct alert_query newest = {.limit = 1};
    struct alert_page page = {0};

    must(w->s->ops->alerts->put(w->s, &row, &w->e), w->e.text);
    must(w->s->ops->alerts->list(w->s, &newest, &w->a, &page, &w->e), w->e.text);
    CHECK(page.count == 1 && slice_is(page.rows[0].id, id), "%s is the newest", id);
    return page.rows[0].seq;
}

static int64_t next_audit(struct world *w, const char *id)
{
    const struct audit done = {.at = 7, .actor = SLICE("ann"), .verb = SLICE("retry")};
    const struct audit_query newest = {.limit = 1};
    struct audit_page page = {0};

    must(put_change(w, (struct change){.kind = CHANGE_INSERT,
                                       .row = a_row(id),
                                       .audits = &done,
                                       .audit_count = 1}),
         id);
    must(w->s->ops->audit_list(w->s, &newest, &w->a, &page, &w->e), w->e.text);
    CHECK(page.count == 1, "none");
    return page.seqs[0];
}

static void nothing_goes(struct world *w)
{
    (void)w;
}

static void no_number_is_given_twice(void **state)
{
    static const struct {
        const char *what;
        int64_t (*next)(struct world *w, const char *id);
        void (*empty)(struct world *w);
    } kinds[] = {
        {"task", next_task, retire_all},
        {"submission", next_submission, settle_submissions},
        {"operation", next_operation, nothing_goes},
        {"alert", next_alert, nothing_goes},
        {"audit", next_audit, nothing_goes},
    };
    struct world *w = *state;

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        int64_t last = 0;
        for (int n = 0; n < 6; n++) {
            char id[60];
            (void)snprintf(id, sizeof id, "%s-%d", kinds[i].what, n);
            int64_t seq = kinds[i].next(w, id);
            CHECK(seq > last, "%s: %" PRId64 " after %" PRId64, id, seq, last);
            last = seq;
            if (n % 3 != 1) /* two at once, too */
                kinds[i].empty(w);
            if (n % 2)
                world_restart(w);
        }
    }
}

/* ---- messages: no other one's, wherever that is ---- */

static int64_t tell(struct world *w, const char *id, const char *target, size_t count)
{
    struct message m[4];
    struct change c = {.kind = CHANGE_INSERT,
                       .row = a_row(id),
                       .messages = m,
                       .message_count = count};
    struct outbox_query q = {.task = slice_of(id), .limit = 10};
    struct message_page page = {0};
    static const char *const names[] = {"1/a", "2/b", "3/c", "4/d"};

    for (size_t i = 0; i < count; i++)
        m[i] = (struct message){.name = slice_of(names[i]),
                                .target = slice_of(target),
                                .body = SLICE("{}"),
                                .created_at = 1000};
    must(put_change(w, c), id);
    must(w->s->ops->outbox->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    CHECK(page.count == count, "%s: %zu messages", id, page.count);
    return page.messages[0].seq;
}

static void settle(struct world *w, int64_t seq, enum settle_kind kind)
{
    const struct settlement s = {.seq = seq, .kind = kind, .tries = 1, .story = SLICE("away")};

    must(w->s->ops->outbox->settle(w->s, &s, 1, NULL, &w->e), w->e.text);
}

/* How many messages there are, each with a number of its own. */
static size_t all_messages(struct world *w)
{
    size_t count = 0;
    int64_t seqs[100];

    for (int dead = 0; dead < 2; dead++) {
        struct outbox_query q = {.dead = dead, .limit = 50};
        struct message_page page = {0};
        must(w->s->ops->outbox->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
        for (size_t i = 0; i < page.count; i++)
            seqs[count++] = page.messages[i].seq;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(seqs[i] != seqs[k], "two are %" PRId64, seqs[i]);
    return count;
}

/* Those that came last are set aside, are dead, or are done with: what is told after a start is
 * found, and set aside in its turn, and nothing takes the place of another. */
static void a_message_has_no_other_ones_number_after_a_start(void **state)
{
    static const enum settle_kind kinds[] = {SETTLE_ASIDE, SETTLE_DEAD, SETTLE_DELETE};
    struct world *w = *state;
    size_t kept = 0;

    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        for (int restarts = 0; restarts < 2; restarts++) {
            char id[2][40];
            (void)snprintf(id[0], sizeof id[0], "first-%zu-%d", i, restarts);
            (void)snprintf(id[1], sizeof id[1], "second-%zu-%d", i, restarts);
            int64_t last = tell(w, id[0], "t", 1);
            settle(w, last, kinds[i]);
            kept += kinds[i] != SETTLE_DELETE;
            if (restarts)
                world_restart(w);
            int64_t seq = tell(w, id[1], "t", 1);
            CHECK(seq > last || (restarts && kinds[i] == SETTLE_DELETE),
                  "%s: %" PRId64 " after %" PRId64, id[1], seq, last);
            CHECK(all_messages(w) == kept + 1, "%s: %zu messages", id[1], all_messages(w));
            settle(w, seq, SETTLE_ASIDE);
            kept++;
            CHECK(all_messages(w) == kept, "%s: it is still there", id[1]);
        }
}

/* Whoever reads what is new asks for what comes after the last number that it saw: that one may
 * have been delivered before the first message of this start is told. */
static void what_is_told_comes_after_what_was_read_since_the_start(void **state)
{
    struct world *w = *state;

    for (int n = 0; n < 3; n++) {
        char id[2][40];
        (void)snprintf(id[0], sizeof id[0], "read-%d", n);
        (void)snprintf(id[1], sizeof id[1], "told-%d", n);
        int64_t last = tell(w, id[0], "t", 2) + 1;
        world_restart(w);
        settle(w, last - 1, SETTLE_DELETE);
        settle(w, last, SETTLE_DELETE);
        int64_t seq = tell(w, id[1], "t", 1);
        CHECK(seq > last, "%s: %" PRId64 " after %" PRId64, id[1], seq, last);
        settle(w, seq, SETTLE_DELETE);
    }
}

/* Among the messages of one transaction the last ones are settled and the first is not; or all are,
 * or none. */
static void what_is_done_with_takes_nothing_along_that_comes_after_a_start(void **state)
{
    struct world *w = *state;

    for (int n = 0; n < 4; n++) {
        char id[2][40];
        (void)snprintf(id[0], sizeof id[0], "many-%d", n);
        (void)snprintf(id[1], sizeof id[1], "after-%d", n);
        int64_t first = tell(w, id[0], "t", 4);
        for (int i = 1; n < 3 && i < 4; i++)
            settle(w, first + i, i == n ? SETTLE_ASIDE : SETTLE_DELETE);
        if (n == 2)
            settle(w, first, SETTLE_DELETE);
        world_restart(w);
        size_t before = all_messages(w);
        int64_t seq = tell(w, id[1], "t", 2);
        CHECK(all_messages(w) == before + 2, "%s: both are found", id[1]);
        settle(w, seq, SETTLE_ASIDE);
        settle(w, seq + 1, SETTLE_DELETE);
        CHECK(all_messages(w) == before + 1, "%s: one is left", id[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(no_number_is_given_twice),
        ON_ALL(a_message_has_no_other_ones_number_after_a_start),
        ON_ALL(what_is_told_comes_after_what_was_read_since_the_start),
        ON_ALL(what_is_done_with_takes_nothing_along_that_comes_after_a_start),
    };
    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
