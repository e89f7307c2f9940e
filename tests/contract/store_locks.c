/* The contract of every store for locks of tasks: never more holders than a lock lets; whoever
 * waits for one is found by a claim as soon as there is room; what was not done moves no lock.
 * Each test runs on all stores (store_world.h). */

#include "contract/store_world.h"

#include <stdio.h>

#include "base/buf.h"

#define QUEUE WAITING_LOCK "w/k"

enum { CLAIMS_MOST = 20 };

static struct task_row locked_row(const char *id, int64_t max)
{
    struct task_row row = a_row(id);

    row.lock = SLICE("w/k");
    row.lock_max = max;
    return row;
}

static void insert_queued(struct world *w, const char *id, int64_t max, int64_t rank)
{
    struct task_row row = locked_row(id, max);

    row.waiting_for = SLICE(QUEUE);
    row.rank = rank;
    must(insert_row(w, row), id);
}

static struct change taking(const char *id, int64_t max)
{
    struct change c = {.kind = CHANGE_INSERT, .lock_move = LOCK_TAKE, .row = locked_row(id, max)};

    c.row.lock_since = 50;
    return c;
}

/* Claims until nothing is left: a body may take one of each lock at a time. Writes the ids, a space
 * behind each. */
static void claim_locks(struct world *w, struct buf *ids)
{
    struct claim c = {.more = true};

    for (int i = 0; c.more; i++) {
        CHECK(i < CLAIMS_MOST, "claims end");
        c = claim_of(w, CLAIM_LOCK, "", 9, 777);
        claim_commit(w, &c);
        for (size_t k = 0; k < c.row_count; k++) {
            char id[16];
            buf_fmt(ids, "%.*s ", SLICE_ARG(c.rows[k].id));
            (void)snprintf(id, sizeof id, "%.*s", SLICE_ARG(c.rows[k].id));
            struct task_row seen = fetch(w, id);
            rows_equal(&seen, &c.rows[k], "the row as it is after the claim");
            CHECK(seen.lock_since == 777 && seen.state == TASK_PROCESSING && seen.locked_by.ptr
                      && !seen.waiting_for.ptr,
                  "%s is claimed, with its lock", id);
        }
    }
}

static void claims_take(struct world *w, const char *ids)
{
    CLEANUP(buf_fini) struct buf got = {0};

    claim_locks(w, &got);
    CHECK(strcmp(got.len ? got.ptr : "", ids) == 0, "taken: %s instead of %s",
          got.len ? got.ptr : "nothing", ids);
}

/* "a b 2": its holders, and how many wait. */
static void holders_are(struct world *w, const char *expected)
{
    CLEANUP(buf_fini) struct buf got = {0};
    const struct lock_query all = {.limit = 10};
    const struct lock_query one = {.lock = SLICE("w/k"), .limit = 10};
    struct lock_page page;
    struct lock_page same;

    must(w->s->ops->locks->list(w->s, &all, &w->a, &page, &w->e), "list");
    must(w->s->ops->locks->list(w->s, &one, &w->a, &same, &w->e), "list");
    CHECK(page.count == same.count && !page.more && !same.more, "of any, and of this lock");
    for (size_t i = 0; i < page.count; i++) {
        CHECK(slice_is(page.holders[i].lock, "w/k"), "its lock");
        buf_fmt(&got, "%.*s ", SLICE_ARG(page.holders[i].task));
    }
    if (page.count > 0)
        buf_fmt(&got, "%d", (int)page.holders[0].waiting);
    CHECK(strcmp(got.len ? got.ptr : "", expected) == 0, "held by %s instead of %s",
          got.len ? got.ptr : "nobody", expected);
}

static enum err change_lock(struct world *w, const char *id, enum lock_move move, int64_t since,
                            enum task_state state)
{
    struct task_row row = fetch(w, id);

    row.revision++;
    row.state = state;
    row.locked_by = SLICE_NONE;
    row.lock_since = since;
    return put_change(w, (struct change){.kind = CHANGE_UPDATE, .lock_move = move, .row = row});
}

static void ends(struct world *w, const char *id)
{
    must(change_lock(w, id, LOCK_DROP, 0, TASK_PROCESSED), id);
}

static void as_many_hold_it_as_it_lets(void **state)
{
    struct world *w = *state;

    insert_queued(w, "a", 2, 30);
    insert_queued(w, "b", 2, 10);
    insert_queued(w, "c", 2, 20);
    claims_take(w, "b c ");
    holders_are(w, "b c 1");
    claims_take(w, "");
    ends(w, "b");
    claims_take(w, "a ");
    holders_are(w, "a c 0");
    ends(w, "a");
    ends(w, "c");
    claims_take(w, "");
    holders_are(w, "");
}

/* Its end and the claim of the next one may be in the same batch. */
static void a_claim_sees_what_its_batch_gives_back(void **state)
{
    struct world *w = *state;

    insert_queued(w, "a", 1, 10);
    insert_queued(w, "b", 1, 20);
    claims_take(w, "a ");
    struct change end = {.kind = CHANGE_UPDATE, .lock_move = LOCK_DROP, .row = fetch(w, "a")};
    end.row.revision++;
    end.row.state = TASK_PROCESSED;
    end.row.locked_by = SLICE_NONE;
    end.row.lock_since = 0;
    struct claim c = claim_of(w, CLAIM_LOCK, "", 9, 777);
    struct batch b = {.changes = &end, .change_count = 1, .claims = &c, .claim_count = 1};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "commit");
    must(end.outcome, "the end");
    CHECK(c.row_count == 1 && slice_is(c.rows[0].id, "b"), "the next one");
    holders_are(w, "b 0");
}

static void who_does_not_wait_is_refused(void **state)
{
    struct world *w = *state;

    must(put_change(w, taking("a", 1)), "a");
    const struct audit audit = {.at = 1,
                                .actor = SLICE("me"),
                                .verb = SLICE("submit"),
                                .task = SLICE("b")};
    struct change refused = taking("b", 1);
    refused.audits = &audit;
    refused.audit_count = 1;
    refused.row.tags = SLICE("{\"k\":\"v\"}");
    struct batch b = {.changes = &refused, .change_count = 1};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "commit");
    CHECK(refused.outcome == ERR_TAKEN && slice_is(refused.lock_holder, "a"), "%s, by %.*s",
          err_text(refused.outcome), SLICE_ARG(refused.lock_holder));
    CHECK(!exists(w, "b"), "nothing of it was stored");
    holders_are(w, "a 0");
    CHECK(put_change(w, taking("a", 1)) == ERR_CONFLICT, "that it exists matters more");
    ends(w, "a");
    must(put_change(w, taking("b", 1)), "it is free");
    holders_are(w, "b 0");
}

static void one_batch_takes_it_once(void **state)
{
    struct world *w = *state;
    struct change c[3] = {taking("a", 2), taking("b", 2), taking("c", 2)};
    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};

    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "commit");
    must(c[0].outcome, "a");
    must(c[1].outcome, "b");
    CHECK(c[2].outcome == ERR_TAKEN && slice_is(c[2].lock_holder, "a"), "c");
    CHECK(!exists(w, "c"), "nothing of it was stored");
    holders_are(w, "a b 0");
}

/* The one that lets more may come later, or first. */
static void one_batch_takes_it_with_different_bounds(void **state)
{
    struct world *w = *state;
    struct change c[4] = {taking("a", 1), taking("b", 5), taking("c", 1), taking("d", 3)};
    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};

    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "commit");
    must(c[0].outcome, "a");
    must(c[1].outcome, "b");
    CHECK(c[2].outcome == ERR_TAKEN && slice_is(c[2].lock_holder, "a"), "c");
    must(c[3].outcome, "d");
    holders_are(w, "a b d 0");
}

static void what_was_not_done_moves_no_lock(void **state)
{
    struct world *w = *state;

    must(put_change(w, taking("a", 1)), "a");
    struct task_row row = fetch(w, "a");
    row.revision += 2; /* decided on another one */
    row.lock_since = 0;
    row.state = TASK_PROCESSED;
    CHECK(put_change(w, (struct change){.kind = CHANGE_UPDATE, .lock_move = LOCK_DROP, .row = row})
              == ERR_CONFLICT,
          "stale");
    holders_are(w, "a 0");
    CHECK(put_change(w, taking("b", 1)) == ERR_TAKEN, "it is held");
    ends(w, "a");
    row = fetch(w, "a");
    row.lock_since = 60;
    row.state = TASK_COMPENSATING;
    row.direction = DIRECTION_UNDO;
    CHECK(put_change(w, (struct change){.kind = CHANGE_UPDATE, .lock_move = LOCK_TAKE, .row = row})
              == ERR_CONFLICT,
          "stale, too");
    holders_are(w, "");
    must(put_change(w, taking("b", 1)), "it is free");
}

/* The undo of a task that has ended, and one that is opened again. */
static void a_change_takes_it_or_is_not_done(void **state)
{
    struct world *w = *state;

    must(put_change(w, taking("a", 1)), "a");
    ends(w, "a");
    must(put_change(w, taking("b", 1)), "b");
    uint64_t before = fetch(w, "a").revision;
    CHECK(change_lock(w, "a", LOCK_TAKE, 60, TASK_ERROR) == ERR_TAKEN, "it is held");
    CHECK(fetch(w, "a").revision == before && fetch(w, "a").state == TASK_PROCESSED, "as it was");
    ends(w, "b");
    must(change_lock(w, "a", LOCK_TAKE, 60, TASK_ERROR), "it is free");
    holders_are(w, "a 0");
}

static void who_is_paused_is_passed_over(void **state)
{
    struct world *w = *state;
    struct task_row row = locked_row("a", 1);

    row.waiting_for = SLICE_NONE;
    row.rank = 10;
    row.paused_at = 5;
    must(insert_row(w, row), "a");
    insert_queued(w, "b", 1, 20);
    claims_take(w, "b ");
    ends(w, "b");
    claims_take(w, "");
    row = fetch(w, "a");
    row.revision++;
    row.paused_at = 0;
    row.waiting_for = SLICE(QUEUE);
    must(update_row(w, row), "resume");
    claims_take(w, "a ");
    holders_are(w, "a 0");
}

static void insert_replacing(struct world *w, const char *id, const char *workflow, int64_t rank)
{
    struct task_row row = locked_row(id, 1);

    row.workflow = slice_of(workflow);
    row.lock_mode = LOCK_REPLACES;
    row.waiting_for = SLICE(QUEUE);
    row.rank = rank;
    must(insert_row(w, row), id);
}

/* "-a b ": in this order, "-" before those that were replaced. A limit of 1: one after the other.
 */
static void claims_take_and_replace(struct world *w, size_t limit, const char *expected)
{
    CLEANUP(buf_fini) struct buf got = {0};
    struct claim c = {.more = true};

    for (int i = 0; c.more; i++) {
        CHECK(i < CLAIMS_MOST, "claims end");
        c = claim_of(w, CLAIM_LOCK, "", limit, 777);
        claim_commit(w, &c);
        CHECK(c.row_count <= limit, "%zu", c.row_count);
        for (size_t k = 0; k < c.row_count; k++) {
            const struct task_row *row = &c.rows[k];
            bool replaced = row->lock_mode == LOCK_REPLACED;
            CHECK(row->lock_since == (replaced ? 0 : 777) && row->state == TASK_PROCESSING
                      && row->locked_by.ptr && !row->waiting_for.ptr,
                  "%.*s", SLICE_ARG(row->id));
            buf_fmt(&got, "%s%.*s ", replaced ? "-" : "", SLICE_ARG(row->id));
        }
    }
    CHECK(strcmp(got.len ? got.ptr : "", expected) == 0, "taken: %s instead of %s",
          got.len ? got.ptr : "nothing", expected);
}

static void the_newest_replaces_those_that_wait(void **state)
{
    struct world *w = *state;

    must(put_change(w, taking("a", 1)), "a");
    insert_replacing(w, "b", "o", 10);
    claims_take_and_replace(w, 9, "");
    insert_replacing(w, "c", "o", 30);
    insert_replacing(w, "d", "other", 40);
    insert_queued(w, "e", 1, 50);
    claims_take_and_replace(w, 9, "-b ");
    CHECK(fetch(w, "b").lock_mode == LOCK_REPLACED, "that is in its row");
    insert_replacing(w, "f", "o", 20);
    insert_replacing(w, "g", "o", 60);
    claims_take_and_replace(w, 1, "-c -f ");
    holders_are(w, "a 3");
    CHECK(fetch(w, "c").started_at == 0, "nothing of it began");
    ends(w, "a");
    claims_take_and_replace(w, 9, "d ");
    CHECK(fetch(w, "d").started_at == 777, "it began");
    ends(w, "d");
    claims_take_and_replace(w, 9, "e ");
    ends(w, "e");
    insert_replacing(w, "h", "o", 70);
    claims_take_and_replace(w, 9, "-g h ");
    holders_are(w, "h 0");
}

/* Neither is one that is undone: it may wait for what runs on undo. */
static void who_is_undone_is_not_replaced(void **state)
{
    struct world *w = *state;

    must(put_change(w, taking("a", 1)), "a");
    insert_replacing(w, "b", "o", 10);
    struct task_row row = fetch(w, "b");
    row.revision++;
    row.direction = DIRECTION_UNDO;
    must(update_row(w, row), "b");
    insert_replacing(w, "c", "o", 20);
    claims_take_and_replace(w, 9, "");
    holders_are(w, "a 2");
    row = fetch(w, "c");
    row.revision++;
    row.direction = DIRECTION_UNDO;
    must(update_row(w, row), "c");
    insert_replacing(w, "d", "o", 30);
    claims_take_and_replace(w, 9, "");
    holders_are(w, "a 3");
}

/* The first of the queue decides by its own maximum. */
static void where_versions_differ_the_taker_counts(void **state)
{
    struct world *w = *state;

    insert_queued(w, "a", 2, 10);
    insert_queued(w, "b", 1, 20);
    insert_queued(w, "c", 2, 30);
    claims_take(w, "a ");
    ends(w, "a");
    claims_take(w, "b c ");
    holders_are(w, "b c 0");
}

/* The first of the queue leaves it, which holds up the next one by its bound. */
static void who_leaves_the_queue_lets_others_go_on(void **state)
{
    struct world *w = *state;

    must(put_change(w, taking("a", 1)), "a");
    insert_queued(w, "b", 1, 10);
    insert_queued(w, "c", 2, 20);
    insert_queued(w, "d", 3, 30);
    claims_take(w, "");
    struct task_row row = fetch(w, "b");
    row.revision++;
    row.waiting_for = SLICE_NONE;
    row.paused_at = 5;
    must(put_change(w, (struct change){.kind = CHANGE_UPDATE, .lock_move = LOCK_QUIT, .row = row}),
         "b is paused");
    claims_take(w, "c d ");
    holders_are(w, "a c d 0");
}

/* As the supervisor does where a complete-by has passed. */
static void who_is_released_from_the_queue_lets_others_go_on(void **state)
{
    struct world *w = *state;

    must(put_change(w, taking("a", 1)), "a");
    insert_queued(w, "b", 1, 10);
    insert_queued(w, "c", 2, 20);
    claims_take(w, "");
    struct task_row row = fetch(w, "b");
    row.revision++;
    row.request = SLICE("[]");
    row.waiting_for = WAITING_TIME;
    struct change c = {.kind = CHANGE_REQUEST, .lock_move = LOCK_QUIT, .row = row};
    CHECK(put_change(w, c) == ERR_INVALID, "it leaves nothing");
    c.release = true;
    must(put_change(w, c), "b is released");
    claims_take(w, "c ");
    holders_are(w, "a c 0");
}

static void insert_queued_for(struct world *w, const char *id, struct slice lock)
{
    CLEANUP(buf_fini) struct buf queue = {0};
    struct task_row row = locked_row(id, 100);

    buf_str(&queue, WAITING_LOCK);
    buf_slice(&queue, lock);
    row.lock = lock;
    row.waiting_for = buf_view(&queue);
    row.rank = 10;
    must(insert_row(w, row), id);
}

/* However many wait for another lock, and go on to do so. */
static void no_lock_is_looked_at_last_for_ever(void **state)
{
    struct world *w = *state;
    bool found = false;
    int count = 0;

    insert_queued_for(w, "z", SLICE("w/z"));
    for (int i = 0; !found; i++) {
        CHECK(i < CLAIMS_MOST, "it had its turn");
        for (int k = 0; k < 3; k++) {
            char id[16];
            (void)snprintf(id, sizeof id, "a-%d", count++);
            insert_queued_for(w, id, k == 1 ? SLICE("w/b") : SLICE("w/a"));
        }
        struct claim c = claim_of(w, CLAIM_LOCK, "", 1, 777);
        claim_commit(w, &c);
        for (size_t k = 0; k < c.row_count; k++)
            found |= slice_is(c.rows[k].id, "z");
    }
}

static void locks_are_apart(void **state)
{
    struct world *w = *state;
    struct task_row row = locked_row("b", 1);

    insert_queued(w, "a", 1, 10);
    row.lock = SLICE("w/other");
    row.waiting_for = SLICE(WAITING_LOCK "w/other");
    must(insert_row(w, row), "b");
    claims_take(w, "a b ");
    const struct lock_query one = {.limit = 1};
    struct lock_page page;
    must(w->s->ops->locks->list(w->s, &one, &w->a, &page, &w->e), "list");
    CHECK(page.count == 1 && page.more && slice_is(page.holders[0].task, "a"), "a page");
    const struct lock_query rest = {.after_seq = page.holders[0].seq, .limit = 1};
    must(w->s->ops->locks->list(w->s, &rest, &w->a, &page, &w->e), "list");
    CHECK(page.count == 1 && !page.more && slice_is(page.holders[0].task, "b"), "the next one");
    const struct lock_query strange = {.lock = SLICE("w/\xff"), .limit = 1};
    must(w->s->ops->locks->list(w->s, &strange, &w->a, &page, &w->e), "no text");
    CHECK(page.count == 0 && !page.more, "nobody holds it");
}

static void who_holds_it_for_longest_is_told(void **state)
{
    struct world *w = *state;
    struct lock_held held;

    must(w->s->ops->locks->held(w->s, SLICE("w/k"), &w->a, &held, &w->e), "nobody");
    CHECK(held.count == 0 && held.since == 0, "nobody");
    must(w->s->ops->locks->held(w->s, SLICE("w/\xff"), &w->a, &held, &w->e), "no text");
    CHECK(held.count == 0, "nobody");
    for (int i = 0; i < 200; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        struct change c = taking(id, 1000);
        c.row.lock_since = i == 150 ? 40 : 50 + i;
        must(put_change(w, c), id);
    }
    must(w->s->ops->locks->held(w->s, SLICE("w/k"), &w->a, &held, &w->e), "200");
    CHECK(held.count == 200 && held.since == 40 && slice_is(held.task, "t-150"), "%d: %.*s",
          (int)held.count, SLICE_ARG(held.task));
}

/* It has a start time, or its complete-by has passed. */
static void who_lacks_its_lock_does_not_start(void **state)
{
    struct world *w = *state;
    struct task_row row = locked_row("a", 1);

    row.waiting_for = WAITING_TIME;
    row.rank = 10;
    must(insert_row(w, row), "a");
    struct change b = taking("b", 1);
    b.row.waiting_for = WAITING_TIME;
    b.row.rank = 20;
    must(put_change(w, b), "b");
    struct claim c = claim_of(w, CLAIM_TIME, "time", 9, 777);
    claim_commit(w, &c);
    CHECK(c.row_count == 2 && c.rows[0].started_at == 0 && fetch(w, "a").started_at == 0, "a");
    CHECK(c.rows[1].started_at == 777 && fetch(w, "b").started_at == 777, "b has its lock");
}

static void locks_outlive_the_node(void **state)
{
    struct world *w = *state;

    insert_queued(w, "a", 1, 10);
    claims_take(w, "a ");
    insert_queued(w, "b", 1, 20);
    world_restart(w);
    claims_take(w, "");
    holders_are(w, "a 1");
    ends(w, "a");
    world_restart(w);
    claims_take(w, "b ");
}

/* A node learns of others' changes once a second. */
static void a_survey_tells_of_locks_with_room(void **state)
{
    struct world *w = *state;
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .now = 10,
                       .length_ms = 3000};

    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    CHECK(!v.locks, "nobody waits");
    insert_queued(w, "a", 1, 10);
    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    CHECK(v.locks, "somebody waits");
    claims_take(w, "a ");
    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    CHECK(!v.locks, "nobody waits any more");
}

static void who_waits_waits_for_its_own_lock(void **state)
{
    struct world *w = *state;
    struct task_row row = locked_row("a", 1);

    row.waiting_for = SLICE(WAITING_LOCK "w/other");
    CHECK(insert_row(w, row) == ERR_INVALID, "another's");
    row.waiting_for = SLICE(QUEUE);
    row.lock_since = 5;
    CHECK(insert_row(w, row) == ERR_INVALID, "it holds it");
    row.lock_since = 0;
    must(insert_row(w, row), "it waits");
    row.revision++;
    CHECK(put_change(w, (struct change){.kind = CHANGE_UPDATE, .lock_move = LOCK_DROP, .row = row})
              == ERR_INVALID,
          "it has nothing to give back");
    row = a_row("b");
    CHECK(put_change(w, (struct change){.lock_move = LOCK_TAKE, .row = row}) == ERR_INVALID,
          "it has none");
}

/* It would take its lock along. */
static void who_holds_a_lock_is_not_deleted(void **state)
{
    struct world *w = *state;
    struct retire_rule rule = {.states = 1U << TASK_ERROR, .ended_before = 100000};
    struct retire_look l = {.rules = &rule, .rule_count = 1, .scan_max = 100};

    must(put_change(w, taking("a", 1)), "a");
    struct task_row row = fetch(w, "a");
    row.revision++;
    row.state = TASK_ERROR;
    row.ended_at = 2000;
    must(update_row(w, row), "a");
    must(insert_row(w, a_row("newest")), "SQLite keeps it, lest its number is given again");
    must(w->s->ops->retention->look(w->s, &l, &w->a, &w->e), w->e.text);
    CHECK(l.found_count == 0, "it holds its lock");
    must(change_lock(w, "a", LOCK_DROP, 0, TASK_ERROR), "a");
    l = (struct retire_look){.rules = &rule, .rule_count = 1, .scan_max = 100};
    must(w->s->ops->retention->look(w->s, &l, &w->a, &w->e), w->e.text);
    CHECK(l.found_count == 1, "it gave it back");
}

/* There may be very many queues: they stand before no agent. */
static void queues_are_no_agents(void **state)
{
    struct world *w = *state;
    struct census c;

    for (int i = 0; i < 2 * CENSUS_AGENTS; i++) {
        char id[32];
        char lock[32];
        (void)snprintf(id, sizeof id, "t-%d", i);
        (void)snprintf(lock, sizeof lock, WAITING_LOCK "w/%d", i);
        struct task_row row = locked_row(id, 1);
        row.waiting_for = slice_of(lock);
        row.lock = (struct slice){lock + sizeof WAITING_LOCK - 1,
                                  row.waiting_for.len - (sizeof WAITING_LOCK - 1)};
        must(insert_row(w, row), id);
    }
    must(insert_row(w, a_row("x")), "x");
    must(w->s->ops->counts->census(w->s, 1000, 100, &w->a, &c, &w->e), "census");
    CHECK(c.agent_count == 1 && slice_is(c.agents[0].agent, "a") && c.sleeping == 0, "one agent");
    CHECK(c.locked == 100, "as far as it counts: %d", (int)c.locked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(as_many_hold_it_as_it_lets),
        ON_ALL(a_claim_sees_what_its_batch_gives_back),
        ON_ALL(who_does_not_wait_is_refused),
        ON_ALL(one_batch_takes_it_once),
        ON_ALL(one_batch_takes_it_with_different_bounds),
        ON_ALL(what_was_not_done_moves_no_lock),
        ON_ALL(a_change_takes_it_or_is_not_done),
        ON_ALL(who_is_paused_is_passed_over),
        ON_ALL(the_newest_replaces_those_that_wait),
        ON_ALL(who_is_undone_is_not_replaced),
        ON_ALL(where_versions_differ_the_taker_counts),
        ON_ALL(who_leaves_the_queue_lets_others_go_on),
        ON_ALL(who_is_released_from_the_queue_lets_others_go_on),
        ON_ALL(no_lock_is_looked_at_last_for_ever),
        ON_ALL(locks_are_apart),
        ON_ALL(who_holds_it_for_longest_is_told),
        ON_ALL(who_lacks_its_lock_does_not_start),
        ON_ALL(locks_outlive_the_node),
        ON_MEMORY(a_survey_tells_of_locks_with_room),
        ON_POSTGRES(a_survey_tells_of_locks_with_room),
        ON_ALL(who_waits_waits_for_its_own_lock),
        ON_ALL(who_holds_a_lock_is_not_deleted),
        ON_SQLITE(queues_are_no_agents),
        ON_POSTGRES(queues_are_no_agents),
    };
    return cmocka_run_group_tests_name("locks of tasks", tests, NULL, NULL);
}
