/*
 * What a state store promises to nodes and boots: who may take over what, leases, fences. Held
 * against every body of it.
 */

#include "store_world.h"

#include <time.h>

static void insert_owned(struct world *w, const char *id, const char *owner)
{
    struct task_row row = a_row(id);

    row.state = TASK_COMPENSATING;
    row.direction = DIRECTION_UNDO;
    row.locked_by = slice_of(owner);
    row.started_at = 3;
    must(insert_row(w, row), id);
}

static void what_older_boots_held_is_taken_over_as_it_is(void **state)
{
    struct world *w = *state;

    while (w->s->ops->boot(w->s) < 10)
        world_restart(w);
    insert_owned(w, "of-9", "n1/9");
    insert_owned(w, "of-us", "n1/10");
    insert_owned(w, "of-2", "n1/2");
    insert_owned(w, "of-1", "n1/1");
    insert_owned(w, "newer", "n1/100");
    insert_owned(w, "neighbour", "n2/1");
    insert_owned(w, "alike", "n11/1");
    insert_ranked(w, "nobody's", "a", 1);

    struct claim c = claim_of(w, CLAIM_BOOT, NULL, 2, 777);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-1", "of-2"}, 2, true);
    CHECK(c.rows[0].state == TASK_COMPENSATING && c.rows[0].started_at == 3, "as they are");
    CHECK(c.rows[0].revision == 2 && !c.rows[0].waiting_for.ptr, "but ours");
    struct task_row seen = fetch(w, "of-1");
    rows_equal(&seen, &c.rows[0], "the same in the store");
    c = claim_of(w, CLAIM_BOOT, NULL, 2, 777);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-9"}, 1, false);
    c = claim_of(w, CLAIM_BOOT, NULL, 2, 777);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    CHECK(fetch(w, "of-us").revision == 1, "ours were left alone");
}

/* --- fence and lease --- */

/* By the store's clock, or by the one that the test keeps for it. */
static int64_t now_of(struct world *w)
{
    return w->s->ops->now ? w->s->ops->now(w->s) : w->now;
}

static struct lease try_lease(struct world *w, const char *name, const char *holder,
                              int64_t length_ms)
{
    const struct lease_try want = {.name = slice_of(name),
                                   .holder = slice_of(holder),
                                   .now = now_of(w),
                                   .length_ms = length_ms};
    struct lease l;

    must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), "lease");
    return l;
}

/* Until a lease that ends then has run out. What the store says of its clock may be off a little.
 */
static void wait_until(struct world *w, int64_t until)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    w->now = max_i64(w->now, until);
    while (now_of(w) < until + (w->s->ops->now ? 100 : 0))
        (void)nanosleep(&nap, NULL);
}

static void a_batch_of_a_deposed_leader_does_nothing(void **state)
{
    struct world *w = *state;
    struct lease l;

    w->now = 100;
    l = try_lease(w, "supervisor", "n1/1", 100);
    CHECK(slice_is(l.holder, "n1/1") && l.epoch > 0, "taken");
    CHECK(w->s->ops->now || l.until == 200, "%" PRId64, l.until);
    struct fence fence = {SLICE("supervisor"), l.epoch};
    struct change c = {.kind = CHANGE_INSERT, .row = a_row("x")};
    struct claim claim = claim_of(w, CLAIM_AGENT, "a", 1, 5);
    struct batch b = {
        .changes = &c, .change_count = 1, .claims = &claim, .claim_count = 1, .fence = &fence};

    fence.epoch++;
    CHECK(w->s->ops->commit(w->s, &b, &w->a, &w->e) == ERR_CONFLICT, "another epoch");
    CHECK(c.outcome == ERR_CONFLICT && claim.row_count == 0, "as a whole");
    CHECK(!exists(w, "x"), "nothing was stored");
    fence.epoch--;
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "its own epoch");
    CHECK(c.outcome == ERR_OK && claim.row_count == 1, "done");
}

static void a_lease_is_renewed_by_its_holder(void **state)
{
    struct world *w = *state;

    struct lease l = try_lease(w, "l", "n1/1", 30000);
    wait_until(w, now_of(w) + 50);
    struct lease again = try_lease(w, "l", "n1/1", 30000);
    CHECK(again.epoch == l.epoch && again.until > l.until, "the same epoch, and longer");
    if (!w->s->shared)
        return; /* a lock excludes everybody else */
    l = try_lease(w, "l", "n2/1", 100);
    CHECK(slice_is(l.holder, "n1/1") && l.until == again.until && l.epoch == again.epoch, "theirs");
    again = try_lease(w, "l", "n1/1", 1);
    CHECK(again.until < l.until, "it may become shorter");
    wait_until(w, again.until);
    l = try_lease(w, "l", "n2/1", 30000);
    CHECK(slice_is(l.holder, "n2/1") && l.epoch == again.epoch + 1, "another epoch");
    again = try_lease(w, "l", "n1/1", 30000);
    CHECK(slice_is(again.holder, "n2/1") && again.epoch == l.epoch, "too late");
    again = try_lease(w, "l", "n1/1", 0);
    CHECK(slice_is(again.holder, "n2/1") && again.until == l.until, "only a holder gives it up");
    (void)try_lease(w, "l", "n2/1", 0);
    again = try_lease(w, "l", "n1/1", 30000);
    CHECK(slice_is(again.holder, "n1/1") && again.epoch == l.epoch + 1, "it was given up");
    l = try_lease(w, "other", "n2/1", 30000);
    CHECK(slice_is(l.holder, "n2/1"), "leases have nothing to do with each other");
}

static void a_lease_lasts_for_its_length_by_the_stores_clock(void **state)
{
    struct world *w = *state;

    w->now = 1000;
    int64_t before = now_of(w);
    struct lease l = try_lease(w, "l", "n1/1", 20000);
    /* whatever a round trip may take on a busy machine: less than the length, and than an hour */
    CHECK(l.until >= before + 20000 - 1000 && l.until < before + 3600000, "%" PRId64,
          l.until - before);
}

static void who_is_wrong_about_the_time_cannot_steal_a_lease(void **state)
{
    struct world *w = *state;
    struct lease_try want = {.name = SLICE("l"), .holder = SLICE("n2/1"), .length_ms = 30000};
    struct lease l;

    if (!w->s->ops->now)
        return; /* it has no other clock than theirs */
    l = try_lease(w, "l", "n1/1", 30000);
    for (unsigned i = 0; i < 2; i++) {
        want.now = i ? 0 : l.until + 3600000;
        must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), "lease");
        CHECK(slice_is(l.holder, "n1/1"), "%u", i);
    }
    want.holder = SLICE("n1/1"); /* nor keep one for longer than it may be */
    want.now = l.until + 3600000;
    must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), "lease");
    CHECK(l.until < want.now, "%" PRId64, l.until);
}

static void a_lease_from_a_wrong_clock_has_run_out(void **state)
{
    struct world *w = *state;

    if (!w->s->shared)
        return;
    w->now = 3600000;
    struct lease l = try_lease(w, "l", "n1/1", LEASE_MAX_MS);
    w->now = 0; /* the clock was set right */
    if (w->s->ops->now)
        postgres_do(w, "UPDATE lease SET until = until + 3600000");
    struct lease taken = try_lease(w, "l", "n2/1", 1000);
    CHECK(slice_is(taken.holder, "n2/1") && taken.epoch == l.epoch + 1, "nobody waits for it");
}

static void the_stores_clock_goes_on(void **state)
{
    struct world *w = *state;

    if (!w->s->ops->now) {
        CHECK(!w->postgres, "the nodes of a database have to agree on one");
        return;
    }
    int64_t last = now_of(w);
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* the database is on this machine */
    CHECK(last > ((int64_t)ts.tv_sec - 60) * 1000 && last < ((int64_t)ts.tv_sec + 60) * 1000,
          "%" PRId64, last);
    for (unsigned i = 0; i < 100; i++) {
        (void)try_lease(w, "l", "n1/1", 1000);
        CHECK(now_of(w) >= last, "never backwards");
        last = now_of(w);
    }
    wait_until(w, last + 20);
}

static void a_lease_can_be_seized(void **state)
{
    struct world *w = *state;
    struct lease l = try_lease(w, "node/n1", "n1/1", 30000);
    struct lease_try want = {.name = SLICE("node/n1"),
                             .holder = SLICE("n1/2"),
                             .now = now_of(w),
                             .length_ms = 30000,
                             .seize = true};
    struct lease seized;

    must(w->s->ops->lease(w->s, &want, &w->a, &seized, &w->e), "seize");
    CHECK(slice_is(seized.holder, "n1/2"), "it is the newer boot's");
    CHECK(!w->s->shared || seized.epoch == l.epoch + 1, "under another epoch");
}

static void tasks_of_a_node_without_lease_are_claimed(void **state)
{
    struct world *w = *state;

    insert_owned(w, "of-us", "n1/10");
    insert_owned(w, "of-the-living", "n2/3");
    insert_owned(w, "of-its-older-boot", "n2/2");
    insert_owned(w, "of-the-late", "n3/1");
    insert_owned(w, "of-the-unknown", "n4/1");
    insert_ranked(w, "nobody's", "a", 1);
    (void)try_lease(w, "node/n2", "n2/3", 30000);
    wait_until(w, try_lease(w, "node/n3", "n3/1", 1).until);
    while (w->s->ops->boot(w->s) < 10)
        world_restart(w);
    struct claim c = claim_of(w, CLAIM_NODE, NULL, 2, now_of(w));
    claim_commit(w, &c);
    if (!w->s->shared) {
        claimed(&c, NULL, 0, false);
        return;
    }
    claimed(&c, (const char *const[]){"of-its-older-boot", "of-the-late"}, 2, true);
    CHECK(c.rows[0].state == TASK_COMPENSATING && c.rows[0].started_at == 3, "as they are");
    CHECK(c.rows[0].revision == 2 && slice_is(c.rows[0].locked_by, "n1/10"), "but ours");
    c = claim_of(w, CLAIM_NODE, NULL, 2, now_of(w));
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-the-unknown"}, 1, false);
    c = claim_of(w, CLAIM_NODE, NULL, 2, w->s->ops->now ? INT64_C(1) << 50 : now_of(w));
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    (void)try_lease(w, "node/n2", "n2/3", 0);
    c = claim_of(w, CLAIM_NODE, NULL, 2, now_of(w));
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-the-living"}, 1, false);
}

static void requests_of_others_are_found(void **state)
{
    struct world *w = *state;
    struct row_page page;

    insert_owned(w, "x", "n1/1");
    insert_owned(w, "quiet", "n1/1");
    insert_owned(w, "theirs", "n2/1");
    for (size_t i = 0; i < 2; i++) {
        struct task_row row = fetch(w, i ? "theirs" : "x");
        row.revision++;
        row.request = SLICE("[]");
        must(put_change(w, (struct change){.kind = CHANGE_REQUEST, .row = row}), "request");
    }
    must(w->s->ops->requested(w->s, SLICE("n1/1"), 0, 9, &w->a, &page, &w->e), "requested");
    CHECK(page.count == w->s->shared && !page.more, "%zu", page.count);
    if (page.count) {
        int64_t seq = page.rows[0].seq;
        CHECK(slice_is(page.rows[0].id, "x") && slice_is(page.rows[0].request, "[]"), "it");
        must(w->s->ops->requested(w->s, SLICE("n1/1"), seq, 9, &w->a, &page, &w->e), "requested");
        CHECK(page.count == 0, "nothing is behind it");
    }
}

static void every_start_has_its_number(void **state)
{
    struct world *w = *state;
    unsigned char secret[32];

    memcpy(secret, w->s->ops->secret(w->s), sizeof secret);
    for (uint64_t boot = 1; boot < 5; boot++) {
        CHECK(w->s->ops->boot(w->s) == boot, "boot %" PRIu64, boot);
        CHECK(memcmp(secret, w->s->ops->secret(w->s), sizeof secret) == 0, "one secret for all");
        world_restart(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(what_older_boots_held_is_taken_over_as_it_is),
        ON_ALL(a_batch_of_a_deposed_leader_does_nothing),
        ON_ALL(a_lease_is_renewed_by_its_holder),
        ON_ALL(a_lease_lasts_for_its_length_by_the_stores_clock),
        ON_ALL(who_is_wrong_about_the_time_cannot_steal_a_lease),
        ON_ALL(a_lease_from_a_wrong_clock_has_run_out),
        ON_ALL(the_stores_clock_goes_on),
        ON_ALL(a_lease_can_be_seized),
        ON_ALL(tasks_of_a_node_without_lease_are_claimed),
        ON_ALL(requests_of_others_are_found),
        ON_ALL(every_start_has_its_number),
    };
    return cmocka_run_group_tests_name("store nodes", tests, NULL, NULL);
}
