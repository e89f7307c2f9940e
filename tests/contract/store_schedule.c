/* The contract of every store for schedules: changed by revision together with their submissions,
 * and found when they are due. Each test names one promise and runs on all stores
 * (store_world.h). */

#include "store_world.h"

#include "base/buf.h"

static struct schedule_row a_schedule(const char *name)
{
    return (struct schedule_row){
        .name = slice_of(name),
        .revision = 1,
        .version = 1,
        .workflow = SLICE("w"),
        .text = SLICE("intact: 1"),
        .author = SLICE("ann"),
        .person = SLICE("Ann"),
        .stored_at = 1000,
        .next_at = 5000,
        .last_at = 4000,
        .doc = SLICE("{}"),
    };
}

static struct submission_row a_run(const char *id)
{
    return (struct submission_row){.source = SLICE(SCHEDULE_SOURCE),
                                   .key = slice_of(id),
                                   .id = slice_of(id),
                                   .workflow = SLICE("w"),
                                   .input = SLICE("{\"a\":1}"),
                                   .submitter = SLICE("Ann"),
                                   .submitted_at = 5000};
}

static enum err write_one(struct world *w, struct schedule_change c, bool wanted)
{
    enum err err = w->s->ops->schedules->write(w->s, &c, 1, NULL, &w->e);

    CHECK(err != ERR_OK || c.done == wanted, "%.*s at %d: %s", SLICE_ARG(c.row.name),
          (int)c.row.revision, c.done ? "done" : "not done");
    return err;
}

static void put(struct world *w, struct schedule_row row)
{
    must(write_one(w, (struct schedule_change){.row = row, .new_version = row.revision == 1}, true),
         w->e.text);
}

static struct schedule_page list(struct world *w, struct schedule_query q)
{
    struct schedule_page page = {0};

    q.limit = q.limit ? q.limit : 9;
    must(w->s->ops->schedules->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    return page;
}

static struct schedule_row get(struct world *w, const char *name)
{
    struct schedule_page page = list(w, (struct schedule_query){.name = slice_of(name)});

    CHECK(page.count == 1 && !page.more, "%s", name);
    return page.rows[0];
}

static struct schedule_look look(struct world *w, int64_t now, bool waiting, size_t limit)
{
    struct schedule_look l = {.now = now, .waiting = waiting, .limit = limit};

    must(w->s->ops->schedules->look(w->s, &l, &w->a, &w->e), w->e.text);
    return l;
}

static size_t submissions(struct world *w)
{
    const struct submission_query q = {.source = SLICE(SCHEDULE_SOURCE), .limit = 99};
    struct submission_page page;

    must(w->s->ops->submissions->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    for (size_t i = 0; i < page.count; i++)
        CHECK(slice_is(page.rows[i].submitter, "Ann"), "for whom it is");
    return page.count;
}

static void a_schedule_is_kept_and_fenced_by_its_revision(void **state)
{
    struct world *w = *state;
    struct schedule_row row = a_schedule("nightly");
    const struct audit audit = {.at = 5, .actor = SLICE("ann"), .verb = SLICE("schedule.put")};
    const struct audit_query all = {.limit = 9};
    struct audit_page audits;
    struct schedule_version_row version;

    must(write_one(w, (struct schedule_change){row, true, NULL, 0, &audit, false}, true), "new");
    must(write_one(w, (struct schedule_change){row, true, NULL, 0, &audit, false}, false), "again");
    row = get(w, "nightly");
    row.revision = 3;
    must(write_one(w, (struct schedule_change){.row = row}, false), "of another revision");
    row.revision = 2;
    row.version = 2;
    row.text = SLICE("intact: 1 # new");
    row.paused_at = 6000;
    row.next_at = 0;
    row.waiting_at = 7000;
    row.run = SLICE("nightly@x");
    row.gap_at = 8000;
    row.doc = SLICE("{\"fired\":1}");
    must(write_one(w, (struct schedule_change){.row = row, .new_version = true}, true), "next");
    must(write_one(w, (struct schedule_change){.row = row}, false), "twice");
    world_restart(w);
    struct schedule_row got = get(w, "nightly");
    CHECK(got.revision == 2 && got.version == 2 && got.stored_at == 1000 && got.paused_at == 6000
              && got.next_at == 0 && got.last_at == 4000 && got.waiting_at == 7000
              && got.gap_at == 8000 && !got.waits && !got.run_is_open,
          "numbers");
    CHECK(slice_is(got.workflow, "w") && slice_eq(got.text, row.text) && slice_is(got.author, "ann")
              && slice_is(got.person, "Ann") && slice_is(got.run, "nightly@x")
              && slice_eq(got.doc, row.doc),
          "texts");
    must(w->s->ops->schedules->version(w->s, row.name, 1, &w->a, &version, &w->e), "version 1");
    CHECK(slice_is(version.text, "intact: 1") && slice_is(version.author, "ann")
              && version.stored_at == 1000 && slice_eq(version.name, row.name),
          "version 1");
    must(w->s->ops->schedules->version(w->s, row.name, 2, &w->a, &version, &w->e), "version 2");
    CHECK(slice_eq(version.text, row.text), "version 2");
    CHECK(w->s->ops->schedules->version(w->s, row.name, 3, &w->a, &version, &w->e) == ERR_NOT_FOUND,
          "version 3");
    must(w->s->ops->audit_list(w->s, &all, &w->a, &audits, &w->e), "audit");
    CHECK(audits.count == 1, "what was not done is not audited: %zu", audits.count);
}

static void submissions_come_with_their_change_or_not_at_all(void **state)
{
    struct world *w = *state;
    const struct submission_row runs[] = {a_run("s@1"), a_run("s@2")};
    struct schedule_change list[3] = {0};

    put(w, a_schedule("a"));
    put(w, a_schedule("b"));
    list[0] = (struct schedule_change){.row = get(w, "a"),
                                       .submissions = &runs[0],
                                       .submission_count = 1};
    list[1] = (struct schedule_change){.row = get(w, "b"),
                                       .submissions = &runs[1],
                                       .submission_count = 1};
    list[0].row.revision = 2;
    list[1].row.revision = 9;
    must(w->s->ops->schedules->write(w->s, list, 2, NULL, &w->e), w->e.text);
    CHECK(list[0].done && !list[1].done, "by its revision");
    CHECK(submissions(w) == 1, "%zu", submissions(w));
    CHECK(get(w, "a").revision == 2 && get(w, "b").revision == 1, "revisions");
    list[0].row.revision = 3;
    list[0].submissions = runs;
    list[0].submission_count = 2;
    must(w->s->ops->schedules->write(w->s, list, 1, NULL, &w->e), w->e.text);
    CHECK(submissions(w) == 2, "a known key is not inserted again: %zu", submissions(w));
    list[0].row.revision = 4;
    must(w->s->ops->schedules->write(w->s, list, 1, NULL, &w->e), w->e.text);
    CHECK(submissions(w) == 2 && get(w, "a").revision == 4, "%zu", submissions(w));
}

static void a_lost_lease_changes_nothing(void **state)
{
    struct world *w = *state;
    const struct lease_try want = {.name = SLICE(SUPERVISOR_LEASE),
                                   .holder = SLICE("n1/1"),
                                   .now = w->now,
                                   .length_ms = 9000};
    struct lease lease;
    const struct submission_row run = a_run("s@1");

    put(w, a_schedule("a"));
    must(w->s->ops->lease(w->s, &want, &w->a, &lease, &w->e), "lease");
    struct fence fence = {SLICE(SUPERVISOR_LEASE), lease.epoch + 1};
    struct schedule_change c = {.row = get(w, "a"), .submissions = &run, .submission_count = 1};
    c.row.revision = 2;
    CHECK(w->s->ops->schedules->write(w->s, &c, 1, &fence, &w->e) == ERR_CONFLICT, "%s", w->e.text);
    CHECK(submissions(w) == 0 && get(w, "a").revision == 1, "nothing");
    fence.epoch = lease.epoch;
    must(w->s->ops->schedules->write(w->s, &c, 1, &fence, &w->e), w->e.text);
    CHECK(c.done && submissions(w) == 1, "with the lease");
}

static void what_is_due_is_found_in_its_order(void **state)
{
    struct world *w = *state;
    static const int64_t at[] = {3000, 1000, 0, 2000, 9000};

    for (size_t i = 0; i < COUNT_OF(at); i++) {
        const char name[] = {(char)('a' + i), 0};
        struct schedule_row row = a_schedule(name);
        row.next_at = at[i];
        put(w, row);
    }
    struct schedule_look l = look(w, 500, true, 9);
    CHECK(l.count == 0 && !l.more && l.next_at == 1000 && l.wait_count == 0, "%d", (int)l.next_at);
    l = look(w, 3000, false, 9);
    CHECK(l.count == 3 && !l.more && l.next_at == 9000, "%zu", l.count);
    CHECK(slice_is(l.rows[0].name, "b") && slice_is(l.rows[1].name, "d")
              && slice_is(l.rows[2].name, "a"),
          "order");
    l = look(w, 3000, false, 2);
    CHECK(l.count == 2 && l.more && slice_is(l.rows[1].name, "d"), "%zu", l.count);
    l = look(w, 9999, false, 9);
    CHECK(l.count == 4 && l.next_at == 0, "%d", (int)l.next_at);
}

/* Its run waits to become a task, is one, and ends. */
static void one_that_waits_is_found_when_its_run_has_ended(void **state)
{
    struct world *w = *state;
    const struct submission_row run = a_run("s@1");
    struct schedule_row row = a_schedule("s");
    struct submission_take take = {.limit = 9, .now = w->now};

    row.next_at = 0;
    put(w, row);
    row = get(w, "s");
    row.revision = 2;
    row.run = run.id;
    row.waits = true;
    must(write_one(w,
                   (struct schedule_change){.row = row, .submissions = &run, .submission_count = 1},
                   true),
         w->e.text);
    struct schedule_look l = look(w, 9000, true, 9);
    CHECK(l.count == 0 && l.wait_count == 1, "it waits to become a task");
    CHECK(get(w, "s").run_is_open, "so it is open");
    must(w->s->ops->submissions->take(w->s, &take, &w->a, &w->e), "take");
    CHECK(take.count == 1, "%zu", take.count);
    struct task_row task = a_row("s@1");
    must(put_change(w, (struct change){.kind = CHANGE_INSERT,
                                       .row = task,
                                       .submission = take.rows[0].seq}),
         "the task");
    CHECK(look(w, 9000, true, 9).count == 0 && get(w, "s").run_is_open, "it is a task");
    task = fetch(w, "s@1");
    task.revision++;
    task.state = TASK_ERROR;
    task.ended_at = 9000;
    must(update_row(w, task), "error");
    CHECK(look(w, 9000, true, 9).count == 0 && get(w, "s").run_is_open, "it stopped in error");
    task.revision++;
    task.closed_at = 9100;
    must(update_row(w, task), "closed");
    CHECK(!get(w, "s").run_is_open, "it was closed");
    CHECK(look(w, 9000, false, 9).count == 0, "nobody looks");
    l = look(w, 9000, true, 9);
    CHECK(l.count == 1 && !l.more && !l.rows[0].run_is_open, "%zu", l.count);
    row.revision = 3;
    row.next_at = 9000;
    put(w, row);
    l = look(w, 9000, true, 9);
    CHECK(l.count == 1, "once, though it is due by time, too: %zu", l.count);
}

static void a_refused_run_is_not_open(void **state)
{
    struct world *w = *state;
    const struct submission_row run = a_run("s@1");
    struct submission_take take = {.limit = 9, .now = w->now};
    struct schedule_row row = a_schedule("s");

    put(w, row);
    row = get(w, "s");
    row.revision = 2;
    row.run = run.id;
    must(write_one(w,
                   (struct schedule_change){.row = row, .submissions = &run, .submission_count = 1},
                   true),
         w->e.text);
    CHECK(get(w, "s").run_is_open, "it waits");
    must(w->s->ops->submissions->take(w->s, &take, &w->a, &w->e), "take");
    const struct submission_verdict no = {take.rows[0].seq, 9000, SLICE("no")};
    must(w->s->ops->submissions->settle(w->s, &no, 1, &w->e), "settle");
    CHECK(!get(w, "s").run_is_open, "it was refused");
}

static void schedules_are_listed_by_name(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"b", "a", "d", "c"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct schedule_row row = a_schedule(names[i]);
        row.gap_at = (int64_t)i * 1000;
        put(w, row);
    }
    struct schedule_page page = list(w, (struct schedule_query){.limit = 3});
    CHECK(page.count == 3 && page.more && slice_is(page.rows[2].name, "c"), "%zu", page.count);
    page = list(w, (struct schedule_query){.after_name = SLICE("c"), .limit = 3});
    CHECK(page.count == 1 && !page.more && slice_is(page.rows[0].name, "d"), "%zu", page.count);
    page = list(w, (struct schedule_query){.gaps_since = 2000});
    CHECK(page.count == 2 && slice_is(page.rows[0].name, "c"), "%zu", page.count);
    page = list(w, (struct schedule_query){.name = SLICE("e")});
    CHECK(page.count == 0, "%zu", page.count);
}

static void a_removed_one_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct schedule_version_row version;
    const struct audit audit = {.at = 5, .actor = SLICE("ann"), .verb = SLICE("schedule.delete")};
    const struct audit_query all = {.limit = 9};
    struct audit_page audits;

    put(w, a_schedule("a"));
    put(w, a_schedule("b"));
    struct schedule_row old = get(w, "a");
    must(w->s->ops->schedules->remove(w->s, SLICE("a"), &audit, &w->e), w->e.text);
    CHECK(w->s->ops->schedules->remove(w->s, SLICE("a"), &audit, &w->e) == ERR_NOT_FOUND, "again");
    CHECK(list(w, (struct schedule_query){0}).count == 1, "b is left");
    CHECK(w->s->ops->schedules->version(w->s, SLICE("a"), 1, &w->a, &version, &w->e)
              == ERR_NOT_FOUND,
          "its version");
    must(w->s->ops->schedules->version(w->s, SLICE("b"), 1, &w->a, &version, &w->e), "b's");
    put(w, a_schedule("a"));
    old.revision = 2;
    must(write_one(w, (struct schedule_change){.row = old}, false), "of the one before");
    must(w->s->ops->audit_list(w->s, &all, &w->a, &audits, &w->e), "audit");
    CHECK(audits.count == 1, "%zu", audits.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_schedule_is_kept_and_fenced_by_its_revision),
        ON_ALL(submissions_come_with_their_change_or_not_at_all),
        ON_ALL(a_lost_lease_changes_nothing),
        ON_ALL(what_is_due_is_found_in_its_order),
        ON_ALL(one_that_waits_is_found_when_its_run_has_ended),
        ON_ALL(a_refused_run_is_not_open),
        ON_ALL(schedules_are_listed_by_name),
        ON_ALL(a_removed_one_leaves_nothing),
    };
    return cmocka_run_group_tests_name("store schedule", tests, NULL, NULL);
}
