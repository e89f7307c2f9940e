/*
 * A server whose files lose their names while it runs, or whose wall clock was set back while it
 * was stopped. The server cannot distinguish a clock that was set back from recorded times in the
 * future, which need no change of the clock.
 */

#include "../e2e/kit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/when.h"

enum { LOCK_TIME_AT = 11 /* where the time stands in the lock file */ };

static struct node node;
static const char *const *flags =
    FLAGS("--scan-every", "50ms", "--grace", "200ms", "--drain", "200ms");

static int start(void **state)
{
    (void)state;
    node_init(&node);
    node_start(&node, flags);
    (void)define(&node, "one",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
                 "\"action\": \"x\", \"complete_by\": \"10m\", \"undo\": \"none\"}]");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    node_fini(&node);
    return 0;
}

static void path_of(char *ret, size_t size, const char *name)
{
    (void)snprintf(ret, size, "%s/%s", node.data, name);
}

static void move(const char *from, const char *to)
{
    char x[120];
    char y[120];

    path_of(x, sizeof x, from);
    path_of(y, sizeof y, to);
    CHECK(rename(x, y) == 0, "%s to %s", x, y);
}

static void wait_until_ready_is(int status, struct reply *r)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        get(&node, r, "/readyz");
        if (r->status == status)
            return;
        CHECK(steady_ms() < until, "readyz stays %d: %.*s", r->status, SLICE_ARG(r->body));
        sleep_ms(20);
    }
}

static unsigned logged(const char *text)
{
    FILE *f = fopen(node.log, "r");
    char line[2000];
    unsigned count = 0;

    while (f && fgets(line, sizeof line, f))
        count += strstr(line, text) != NULL;
    if (f)
        (void)fclose(f);
    return count;
}

static void wait_until_logged(const char *text, unsigned count)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (logged(text) < count) {
        CHECK(steady_ms() < until, "%u times %s", logged(text), text);
        sleep_ms(20);
    }
}

/* ---- names ---- */

static void a_file_moved_away_is_noticed_and_may_come_back(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "before");
    move("intact.db", "elsewhere");
    wait_until_ready_is(503, &r); /* nobody asks for anything */
    CHECK(strstr(text_at(&r, "detail"), "moved, removed or replaced"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"meanwhile\"}");
    CHECK(r.status == 503, "%d %.*s", r.status, SLICE_ARG(r.body));
    move("elsewhere", "intact.db");
    wait_until_ready_is(200, &r);
    submit(&node, "one", "meanwhile");
    node_kill(&node);
    node_start(&node, flags);
    task_of(&node, &r, "before");
    task_of(&node, &r, "meanwhile");
}

/* Each scan fails as long as it is away. */
static void an_outage_is_told_when_it_is_noticed_and_when_it_is_over(void **state)
{
    REPLY r = {0};
    unsigned noticed = logged("event=time_lost ");
    unsigned over = logged("event=time_lost_over ");
    unsigned troubles = logged("event=store_trouble ");
    (void)state;

    move("intact.db", "elsewhere");
    wait_until_logged("event=time_lost ", noticed + 1);
    sleep_ms(500); /* for ten scans */
    move("elsewhere", "intact.db");
    wait_until_ready_is(200, &r);
    wait_until_logged("event=time_lost_over ", over + 1);
    /* told once, not with every scan; a machine that stands still has outages of its own */
    unsigned outages = logged("event=time_lost ") - noticed;
    CHECK(outages < 5, "%u outages", outages);
    CHECK(logged("event=time_lost_over ") - over <= outages, "%u outages", outages);
    assert_int_equal(logged("event=store_trouble "), troubles + 1);
    assert_int_equal(logged("event=scan_failed "), 0);
}

static void a_file_removed_is_missed_at_the_next_start(void **state)
{
    CLEANUP(buf_fini) struct buf err = {0};
    REPLY r = {0};
    char path[120];
    (void)state;

    submit(&node, "one", "one-more");
    path_of(path, sizeof path, "intact.db");
    move("intact.db", "elsewhere"); /* to us; to the server it is removed */
    wait_until_ready_is(503, &r);
    node_kill(&node);
    int status = serve_briefly(FLAGS("--data", node.data, "--listen", "127.0.0.1:0"), &err);
    assert_int_equal(status, 1);
    CHECK(strstr(err.ptr, "intact.db is missing") && strstr(err.ptr, node.data), "%s", err.ptr);
    CHECK(access(path, F_OK) != 0, "a new one was made");
    move("elsewhere", "intact.db");
    node_start(&node, flags);
    task_of(&node, &r, "one-more");
}

/* ---- the clock ---- */

/* The server stands still; this is what it will find. */
static void used_until(int64_t at)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char path[120];

    path_of(path, sizeof path, "lock");
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    time_write(&b, at);
    buf_byte(&b, '\n');
    CHECK(fd >= 0 && pwrite(fd, b.ptr, b.len, LOCK_TIME_AT) == (ssize_t)b.len, "%s", path);
    (void)close(fd);
}

static int64_t submitted_at(const char *id)
{
    REPLY r = {0};

    submit(&node, "one", id);
    task_of(&node, &r, id);
    return time_at(&r, "submitted_at");
}

/* Makes it write until its time, which it notes now and then, is noted as that or later. */
static void until_noted(int64_t at)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char path[120];

    path_of(path, sizeof path, "lock");
    for (int64_t noted = 0, i = 0; noted < at; i++) {
        char line[30] = "";
        char id[32];
        CHECK(steady_ms() < until, "its time is not noted");
        (void)snprintf(id, sizeof id, "noted-%" PRId64, i);
        (void)submitted_at(id);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0 && pread(fd, line, 24, LOCK_TIME_AT) == 24, "%s", path);
        (void)close(fd);
        CHECK(time_parse(slice_of(line), &noted), "\"%s\" is no time", line);
    }
}

static void time_goes_on_from_where_it_stood(void **state)
{
    REPLY r = {0};
    int64_t ahead = now_ms() + MS_PER_H;
    (void)state;

    node_kill(&node);
    used_until(ahead);
    node_start(&node, flags);
    assert_int_equal(logged("event=clock_behind "), 1);
    assert_int_equal(logged("going_by=store"), 1);
    int64_t first = submitted_at("ahead-1");
    CHECK(first >= ahead && first < ahead + MS_PER_H / 2, "%" PRId64, first);
    fetch(&node, &r, "ag", "i"); /* a request that is not answered: it falls due by that clock */
    until_noted(first);
    node_kill(&node);
    node_start(&node, flags);
    CHECK(submitted_at("ahead-2") >= first, "it went back");
    assert_int_equal(logged("going_by=store"), 2);
    assert_int_equal(logged("event=clock_jump "), 0);
}

static void the_time_of_the_files_will_do(void **state)
{
    int64_t ahead = now_ms() + 2 * MS_PER_H;
    struct timespec times[2] = {{0, UTIME_OMIT}, {ahead / 1000, ahead % 1000 * 1000000}};
    char path[120];
    (void)state;

    node_kill(&node);
    path_of(path, sizeof path, "lock");
    CHECK(unlink(path) == 0, "%s", path);
    path_of(path, sizeof path, "intact.db");
    CHECK(utimensat(AT_FDCWD, path, times, 0) == 0, "%s", path);
    node_start(&node, flags);
    assert_int_equal(logged("going_by=store"), 3);
    int64_t at = submitted_at("ahead-3");
    CHECK(at >= ahead, "%" PRId64 ", not %" PRId64, at, ahead);
}

static void a_past_more_than_a_day_ahead_is_not_believed(void **state)
{
    int64_t wall = now_ms();
    (void)state;

    node_kill(&node);
    used_until(wall + MS_PER_D + MS_PER_H);
    node_start(&node, flags);
    assert_int_equal(logged("going_by=clock"), 1);
    int64_t at = submitted_at("behind-1");
    CHECK(at >= wall && at < wall + MS_PER_H, "%" PRId64 ", not %" PRId64, at, wall);
    /* What is changed from now on is of this time, and then so is the next start. */
    int64_t until = steady_ms() + PATIENCE_MS;
    for (unsigned told = 0; told != logged("event=clock_behind ");) {
        char id[32];
        CHECK(steady_ms() < until, "its time is not kept");
        (void)snprintf(id, sizeof id, "behind-%" PRId64, steady_ms());
        (void)submitted_at(id);
        sleep_ms(300);
        told = logged("event=clock_behind ");
        node_kill(&node);
        node_start(&node, flags);
    }
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_moved_away_is_noticed_and_may_come_back),
        cmocka_unit_test(an_outage_is_told_when_it_is_noticed_and_when_it_is_over),
        cmocka_unit_test(a_file_removed_is_missed_at_the_next_start),
        cmocka_unit_test(time_goes_on_from_where_it_stood),
        cmocka_unit_test(the_time_of_the_files_will_do),
        cmocka_unit_test(a_past_more_than_a_day_ahead_is_not_believed),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
