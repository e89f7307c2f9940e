/* The contract of every store for messages: stored with their change, read in order, settled,
 * set aside, retried and dropped. Each test names one promise and runs on all stores
 * (store_world.h). */

#include "store_world.h"

#include "base/buf.h"
#include "store/codec/envelope.h"

enum { LIMIT = 100 };

static struct message a_message(const char *name, const char *target)
{
    return (struct message){.name = slice_of(name),
                            .target = slice_of(target),
                            .body = SLICE("{\"id\":\"ü\"}"),
                            .created_at = 1000};
}

static void tell(struct world *w, const char *task, const char *name, const char *target)
{
    struct message m = a_message(name, target);
    struct task_row row = a_row(task);
    struct change c = {.kind = CHANGE_INSERT, .row = row, .messages = &m, .message_count = 1};

    if (exists(w, task)) {
        c.kind = CHANGE_UPDATE;
        c.row.revision = fetch(w, task).revision + 1;
    }
    must(put_change(w, c), "a change with a message");
}

static struct outbox_read read_of(struct world *w, const char *target, int64_t after)
{
    struct outbox_read r = {.target = slice_of(target),
                            .after_seq = after,
                            .limit = LIMIT,
                            .bytes_max = SIZE_MAX};

    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read messages");
    return r;
}

/* Either the ones of a target that were set aside, or the others: "task/name tries@retry". */
static void messages_are(struct world *w, const char *target, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct outbox_read r = read_of(w, target, 0);

    for (size_t i = 0; i < r.count; i++) {
        const struct message *m = &r.messages[i];
        buf_fmt(&b, "%.*s/%.*s", SLICE_ARG(m->task), SLICE_ARG(m->name));
        if (m->aside)
            buf_fmt(&b, " %u@%" PRId64, m->tries, m->retry_at);
        buf_fmt(&b, ";");
        CHECK(m->aside == (target != NULL), "where it is");
        CHECK(i == 0 || m->seq > r.messages[i - 1].seq, "the oldest first");
    }
    CHECK(slice_is(buf_view(&b), want) || (!b.len && !*want), "they are %s",
          b.ptr ? b.ptr : "none");
}

static int64_t seq_of(struct world *w, const char *target, const char *task, const char *name)
{
    struct outbox_read r = read_of(w, target, 0);

    for (size_t i = 0; i < r.count; i++)
        if (slice_is(r.messages[i].task, task) && slice_is(r.messages[i].name, name))
            return r.messages[i].seq;
    CHECK(false, "%s/%s is there", task, name);
    return 0;
}

static void settle(struct world *w, struct settlement s)
{
    must(w->s->ops->outbox->settle(w->s, &s, 1, NULL, &w->e), "settle");
}

static void set_aside(struct world *w, const char *task, const char *name, enum settle_kind kind)
{
    settle(w, (struct settlement){.seq = seq_of(w, NULL, task, name),
                                  .kind = kind,
                                  .tries = 1,
                                  .retry_at = kind == SETTLE_DEAD ? 0 : 2000,
                                  .story = SLICE("it is away")});
}

static void a_message_is_stored_with_its_change(void **state)
{
    struct world *w = *state;
    struct message two[2] = {a_message("1/received", "u"), a_message("1/started", "u")};
    struct change c = {.kind = CHANGE_INSERT,
                       .row = a_row("x"),
                       .messages = two,
                       .message_count = 2};

    must(put_change(w, c), "insert");
    CHECK(put_change(w, c) == ERR_CONFLICT, "again");
    c.kind = CHANGE_UPDATE;
    c.row.revision = 5;
    CHECK(put_change(w, c) == ERR_CONFLICT, "of another revision");
    messages_are(w, NULL, "x/1/received;x/1/started;");
    struct message m = read_of(w, NULL, 0).messages[1];
    CHECK(slice_is(m.task, "x") && slice_is(m.target, "u") && m.created_at == 1000, "what it says");
    CHECK(slice_is(m.body, "{\"id\":\"ü\"}"), "the body");
    c.row.revision = 2;
    two[0].body = SLICE_NONE;
    CHECK(put_change(w, c) == ERR_INVALID, "without a body");
    CHECK(fetch(w, "x").revision == 1, "nothing of that change is stored");
    world_restart(w);
    messages_are(w, NULL, "x/1/received;x/1/started;");
}

static void numbers_rise_though_messages_go(void **state)
{
    struct world *w = *state;

    tell(w, "x", "1/received", "u");
    int64_t first = seq_of(w, NULL, "x", "1/received");
    settle(w, (struct settlement){.seq = first, .kind = SETTLE_DELETE});
    messages_are(w, NULL, "");
    tell(w, "x", "2/started", "u");
    CHECK(seq_of(w, NULL, "x", "2/started") > first, "a number is given once");
}

/* A batch with changes that are not made. A store may report the numbers that it gave; then they
 * are right. */
static void messages_of_a_batch_are_those_of_what_was_made(void **state)
{
    struct world *w = *state;
    struct message two[2] = {a_message("1/received", "u"), a_message("1/started", "u")};
    struct message other = a_message("1/received", "v");

    tell(w, "x", "0/before", "u");
    must(w->s->ops->outbox->settle(w->s,
                                   &(struct settlement){.seq = seq_of(w, NULL, "x", "0/before")}, 1,
                                   NULL, &w->e),
         "settle");
    struct change list[] = {
        {.kind = CHANGE_INSERT, .row = a_row("a"), .messages = two, .message_count = 2},
        {.kind = CHANGE_INSERT, .row = a_row("x"), .messages = two, .message_count = 2},
        {.kind = CHANGE_INSERT, .row = a_row("b"), .messages = &other, .message_count = 1},
        {.kind = CHANGE_INSERT, .row = a_row("c")},
    };
    struct batch b = {.changes = list, .change_count = COUNT_OF(list)};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "a batch");
    CHECK(list[0].outcome == ERR_OK && list[2].outcome == ERR_OK && list[3].outcome == ERR_OK,
          "made");
    CHECK(list[1].outcome == ERR_CONFLICT, "the id is taken");
    messages_are(w, NULL, "a/1/received;a/1/started;b/1/received;");
    CHECK(list[0].first_message == 0
              || (list[0].first_message == seq_of(w, NULL, "a", "1/received")
                  && list[0].first_message + 1 == seq_of(w, NULL, "a", "1/started")),
          "the numbers of the first");
    CHECK(list[2].first_message == 0 || list[2].first_message == seq_of(w, NULL, "b", "1/received"),
          "the number of the other");
}

static void what_is_known_is_not_read_again(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 5; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        tell(w, id, "1/received", "u");
    }
    struct outbox_read r = {.limit = 2, .bytes_max = SIZE_MAX};
    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read");
    CHECK(r.count == 2 && r.more, "a page");
    int64_t known[2] = {r.messages[0].seq, r.messages[1].seq};
    r = (struct outbox_read){.after_seq = known[1],
                             .known = known,
                             .known_count = 2,
                             .limit = LIMIT,
                             .bytes_max = SIZE_MAX};
    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read on");
    CHECK(r.count == 3 && !r.more && slice_is(r.messages[0].task, "t2"), "the others");
    r = (struct outbox_read){.limit = LIMIT, .bytes_max = 12};
    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read a few bytes");
    CHECK(r.count == 2 && r.more, "a page of so many bytes has %zu", r.count);
}

static void deleted_in_ranges_and_one_by_one(void **state)
{
    struct world *w = *state;
    struct settlement list[4] = {{0}};

    for (int i = 0; i < 6; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%d", i);
        tell(w, id, "1/received", "u");
    }
    struct outbox_read r = read_of(w, NULL, 0);
    list[0].seq = r.messages[0].seq;
    list[1].seq = r.messages[1].seq;
    list[2].seq = r.messages[2].seq;
    list[3].seq = r.messages[4].seq;
    list[2].kind = SETTLE_ASIDE;
    for (int i = 0; i < 2; i++)
        must(w->s->ops->outbox->settle(w->s, list, 4, NULL, &w->e), "settle, and again");
    messages_are(w, NULL, "t3/1/received;t5/1/received;");
    messages_are(w, "u", "t2/1/received 0@0;");
}

enum { MANY = 300 };

/* Messages of one transaction, as they are delivered: in any order, some not at all. Bodies that
 * are made of parts, as most are. */
static void tell_many(struct world *w)
{
    struct change *list = arena_alloc(&w->a, MANY * sizeof *list);
    struct message *messages = arena_alloc(&w->a, MANY * sizeof *messages);
    struct batch b = {.changes = list, .change_count = MANY};

    for (int i = 0; i < MANY; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t%03d", i);
        struct message *m = &messages[i];
        *m = (struct message){.task = arena_copy(&w->a, slice_of(id)),
                              .name = SLICE("1/received"),
                              .target = i % 100 == 99 ? SLICE("v") : SLICE("u"),
                              .source = SLICE("/\"ä\""),
                              .sequence = 4097,
                              .created_at = 1000 + i};
        m->data = SLICE("{\"state\":[1,\"\\n\"]}");
        list[i] = (struct change){.kind = CHANGE_INSERT, .messages = m, .message_count = 1};
        list[i].row = a_row(arena_copy(&w->a, slice_of(id)).ptr);
    }
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "a batch");
}

static void every_one_of_many_is_settled_for_itself(void **state)
{
    struct world *w = *state;
    bool gone[MANY] = {false};
    size_t left = MANY;

    tell_many(w);
    struct outbox_read all = {.limit = MANY + 1, .bytes_max = SIZE_MAX};
    must(w->s->ops->outbox->read(w->s, &all, &w->a, &w->e), "read");
    CHECK(all.count == MANY && !all.more, "all are there: %zu", all.count);
    for (int i = 0; i < MANY; i++) {
        CLEANUP(buf_fini) struct buf body = {0};
        const struct message *m = &all.messages[i];
        struct message like = *m;
        like.source = SLICE("/\"ä\"");
        like.sequence = 4097;
        envelope_begin(&body, &like);
        buf_str(&body, "{\"state\":[1,\"\\n\"]}}");
        CHECK(slice_eq(m->body, buf_view(&body)), "the body: %.*s", SLICE_ARG(m->body));
    }
    struct outbox_census c;
    for (int round = 0; left > 0; round++) {
        struct settlement list[40];
        size_t aside = 0;
        size_t count = 0;
        size_t begin = (size_t)(round * 7 % MANY);
        for (size_t i = begin; i < begin + 40 && i < MANY; i++)
            if ((i + (size_t)round) % 3 != 0 || round > 100)
                list[count++] =
                    (struct settlement){.seq = all.messages[i].seq,
                                        .kind = i % 10 == 5 ? SETTLE_ASIDE : SETTLE_DELETE};
        must(w->s->ops->outbox->settle(w->s, list, count, NULL, &w->e), "settle");
        for (size_t i = 0; i < count; i++)
            for (size_t k = 0; k < MANY; k++)
                gone[k] |= all.messages[k].seq == list[i].seq;
        struct outbox_read r = {.limit = MANY, .bytes_max = SIZE_MAX};
        must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read again");
        left = 0;
        for (size_t k = 0; k < MANY; k++) {
            aside += gone[k] && k % 10 == 5;
            if (gone[k])
                continue;
            CHECK(left < r.count && r.messages[left].seq == all.messages[k].seq
                      && slice_eq(r.messages[left].body, all.messages[k].body),
                  "message %zu is still there", k);
            left++;
        }
        CHECK(r.count == left, "%zu are too many, %zu were not settled", r.count, left);
        must(w->s->ops->outbox->census(w->s, 1000, &c, &w->e), "census");
        CHECK(c.waiting == left + aside, "%" PRIu64 " are counted, %zu and %zu set aside are there",
              c.waiting, left, aside);
    }
    CHECK(c.waiting == MANY / 10, "those set aside are left: %" PRIu64, c.waiting);
    CHECK(read_of(w, "u", 0).count == MANY / 10, "each once");
    tell(w, "again", "1/received", "u");
    messages_are(w, NULL, "again/1/received;");
}

static void what_is_set_aside_is_found_by_its_target(void **state)
{
    struct world *w = *state;

    tell(w, "x", "1/received", "u");
    tell(w, "y", "1/received", "v");
    tell(w, "x", "2/started", "u");
    set_aside(w, "x", "1/received", SETTLE_ASIDE);
    set_aside(w, "x", "2/started", SETTLE_ASIDE);
    messages_are(w, NULL, "y/1/received;");
    messages_are(w, "u", "x/1/received 1@2000;x/2/started 1@2000;");
    messages_are(w, "v", "");
    int64_t first = seq_of(w, "u", "x", "1/received");
    CHECK(read_of(w, "u", first).count == 1, "from a number on");
    settle(w, (struct settlement){
                  .seq = first, .aside = true, .kind = SETTLE_ASIDE, .tries = 2, .retry_at = 3000});
    messages_are(w, "u", "x/1/received 2@3000;x/2/started 1@2000;");
    CHECK(slice_is(read_of(w, "u", 0).messages[0].story, "it is away"), "the story stays");
    settle(w, (struct settlement){.seq = first, .aside = true, .kind = SETTLE_DEAD, .tries = 3});
    messages_are(w, "u", "x/2/started 1@2000;");
    settle(w, (struct settlement){.seq = first, .kind = SETTLE_DELETE});
    settle(w, (struct settlement){.seq = seq_of(w, "u", "x", "2/started"),
                                  .aside = true,
                                  .kind = SETTLE_DELETE});
    messages_are(w, "u", "");
    struct outbox_census c;
    must(w->s->ops->outbox->census(w->s, 10, &c, &w->e), "census");
    CHECK(c.waiting == 1 && c.dead == 1 && c.oldest_at == 1000, "counts");
}

static void targets_are(struct world *w, bool dead, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct outbox_target *list = NULL;
    size_t count = 0;
    struct target_query q = {.dead = dead, .limit = LIMIT, .most = 2};

    must(w->s->ops->outbox->targets(w->s, &q, &w->a, &list, &count, &w->e), "targets");
    for (size_t i = 0; i < count; i++)
        buf_fmt(&b, "%.*s %" PRIu64 " %" PRId64 " %.*s;", SLICE_ARG(list[i].target), list[i].count,
                list[i].oldest_at, SLICE_ARG(list[i].story));
    CHECK(slice_is(buf_view(&b), want) || (!b.len && !*want), "they are %s",
          b.ptr ? b.ptr : "none");
    if (count < 2)
        return;
    q.after = list[0].target;
    q.limit = 1;
    must(w->s->ops->outbox->targets(w->s, &q, &w->a, &list, &count, &w->e), "the next target");
    CHECK(count == 1, "the one after the first");
}

static void targets_are_told_with_counts(void **state)
{
    struct world *w = *state;

    for (int i = 0; i < 3; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "%d/x", i);
        tell(w, "x", name, "u");
        set_aside(w, "x", name, SETTLE_ASIDE);
    }
    tell(w, "y", "1/x", "v");
    set_aside(w, "y", "1/x", SETTLE_ASIDE);
    tell(w, "y", "2/x", "v");
    set_aside(w, "y", "2/x", SETTLE_DEAD);
    targets_are(w, false, "u 2 1000 it is away;v 1 1000 it is away;");
    targets_are(w, true, "v 1 1000 it is away;");
}

static void list_is(struct world *w, struct outbox_query q, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct message_page p;

    q.limit = q.limit ? q.limit : LIMIT;
    must(w->s->ops->outbox->list(w->s, &q, &w->a, &p, &w->e), "list");
    for (size_t i = 0; i < p.count; i++)
        buf_fmt(&b, "%.*s/%.*s;", SLICE_ARG(p.messages[i].task), SLICE_ARG(p.messages[i].name));
    buf_fmt(&b, "%s", p.more ? "..." : "");
    CHECK(slice_is(buf_view(&b), want), "it is %s", b.ptr);
}

static void some_of_all_kinds(struct world *w)
{
    tell(w, "x", "1/a", "u");
    tell(w, "x", "2/b", "u");
    tell(w, "y", "1/a", "v");
    tell(w, "y", "2/b", "v");
    tell(w, "z", "1/a", "u");
    set_aside(w, "x", "1/a", SETTLE_DEAD);
    set_aside(w, "x", "2/b", SETTLE_ASIDE);
    set_aside(w, "y", "2/b", SETTLE_DEAD);
}

static void messages_are_listed_the_oldest_first(void **state)
{
    struct world *w = *state;

    some_of_all_kinds(w);
    list_is(w, (struct outbox_query){.waiting = true}, "x/2/b;y/1/a;z/1/a;");
    list_is(w, (struct outbox_query){.waiting = true, .limit = 2}, "x/2/b;y/1/a;...");
    list_is(w, (struct outbox_query){.dead = true}, "x/1/a;y/2/b;");
    list_is(w, (struct outbox_query){.waiting = true, .target = SLICE("u")}, "x/2/b;z/1/a;");
    list_is(w, (struct outbox_query){.dead = true, .target = SLICE("u")}, "x/1/a;");
    list_is(w, (struct outbox_query){.waiting = true, .task = SLICE("y")}, "y/1/a;");
    list_is(w, (struct outbox_query){.dead = true, .task = SLICE("y")}, "y/2/b;");
    list_is(w, (struct outbox_query){.waiting = true, .after_seq = seq_of(w, "u", "x", "2/b")},
            "y/1/a;z/1/a;");
}

static uint64_t do_all(struct world *w, struct outbox_verb v)
{
    const struct audit audit = {.at = 5, .actor = SLICE("ann"), .verb = SLICE("outbox.retry")};
    uint64_t count = 0;

    v.now = 7000;
    v.limit = v.limit ? v.limit : LIMIT;
    v.audit = &audit;
    do {
        must(w->s->ops->outbox->apply(w->s, &v, &w->e), "do");
        count += v.count;
    } while (v.more);
    return count;
}

static size_t audits(struct world *w)
{
    const struct audit_query q = {.limit = 100};
    struct audit_page p;

    must(w->s->ops->audit_list(w->s, &q, &w->a, &p, &w->e), "audit");
    return p.count;
}

static void people_retry_and_drop(void **state)
{
    struct world *w = *state;

    some_of_all_kinds(w);
    CHECK(do_all(w, (struct outbox_verb){.target = SLICE("w")}) == 0, "there are none");
    CHECK(audits(w) == 0, "nothing was done");
    CHECK(do_all(w, (struct outbox_verb){.task = SLICE("x"), .name = SLICE("2/b")}) == 1, "one");
    messages_are(w, "u", "x/2/b 1@0;");
    CHECK(do_all(w, (struct outbox_verb){.task = SLICE("x"), .drop = true}) == 1, "dead ones only");
    list_is(w, (struct outbox_query){.dead = true}, "y/2/b;");
    CHECK(do_all(w, (struct outbox_verb){.limit = 1}) == 2, "all, in parts");
    messages_are(w, "v", "y/2/b 1@0;");
    CHECK(read_of(w, "v", 0).messages[0].since == 7000, "it is tried anew, for as long");
    CHECK(read_of(w, "u", 0).messages[0].since == 1000, "that one was waiting all the time");
    CHECK(audits(w) == 4, "each call that did something is written down");
}

static void only_who_leads_settles(void **state)
{
    struct world *w = *state;
    struct lease_try want = {.name = SLICE(SUPERVISOR_LEASE),
                             .holder = SLICE("n1/1"),
                             .now = 1,
                             .length_ms = 1000};
    struct lease lease;

    tell(w, "x", "1/a", "u");
    must(w->s->ops->lease(w->s, &want, &w->a, &lease, &w->e), "lease");
    struct fence fence = {SLICE(SUPERVISOR_LEASE), lease.epoch + 1};
    const struct settlement s = {.seq = seq_of(w, NULL, "x", "1/a"), .kind = SETTLE_DELETE};
    CHECK(w->s->ops->outbox->settle(w->s, &s, 1, &fence, &w->e) == ERR_CONFLICT, "not any more");
    messages_are(w, NULL, "x/1/a;");
    struct outbox_read r = {.limit = LIMIT, .bytes_max = SIZE_MAX, .fence = &fence};
    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read");
    CHECK(w->sqlite || r.count == 0, "nor is it shown any");
    fence.epoch = lease.epoch;
    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read");
    CHECK(r.count == 1, "who leads is shown all");
    must(w->s->ops->outbox->settle(w->s, &s, 1, &fence, &w->e), "it leads");
    messages_are(w, NULL, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_message_is_stored_with_its_change),
        ON_ALL(numbers_rise_though_messages_go),
        ON_ALL(messages_of_a_batch_are_those_of_what_was_made),
        ON_ALL(what_is_known_is_not_read_again),
        ON_ALL(deleted_in_ranges_and_one_by_one),
        ON_ALL(every_one_of_many_is_settled_for_itself),
        ON_ALL(what_is_set_aside_is_found_by_its_target),
        ON_ALL(targets_are_told_with_counts),
        ON_ALL(messages_are_listed_the_oldest_first),
        ON_ALL(people_retry_and_drop),
        ON_ALL(only_who_leads_settles),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
