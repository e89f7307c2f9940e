/*
 * A hanging disk under clients that continue to send: the queues for the store are bounded,
 * requests beyond them are refused at once, and all accepted work is there when the disk returns.
 * Also a disk that cannot be read.
 */

#include "../e2e/kit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    LARGE = 4000000,
    LARGE_MAX = 16, /* of 64 MiB */
    REFUSED = 40,
    BATCHES = 8,
    BATCH_LINES = 2500,
    LINES_MAX = 4096, /* of all batches, that the server takes */
    ASKS_MAX = 16384, /* and with others */
    LINE_MAX = 16,    /* readings of a token that look at many */
    OVER = 20,
    AT_WORK_MAX = 4, /* that have left the line, and are being read */
    DEFINITION = 1900000,
    DEFINITIONS = 80,
    DEFINITIONS_MAX = 48, /* 64 MiB for the store, and 16 to be compiled */
};

static struct node node;
static char control[100];

static void write_control(const char *text)
{
    int fd = open(control, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_true(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    (void)close(fd);
}

/* Returns when the store's thread is stuck. */
static void stall(void)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char stalled[120];
    REPLY r = {0};

    (void)snprintf(stalled, sizeof stalled, "%s.stalled", control);
    write_control("stall\n");
    while (access(stalled, F_OK) != 0) { /* some readings may still pass */
        CHECK(steady_ms() < until, "it never stalls");
        (void)close(ask(&node, "GET", "/v1/tasks/nobody", NULL, SLICE_NONE));
        sleep_ms(5);
    }
    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
}

static int start(void **state)
{
    struct rlimit files = {4096, 4096};
    (void)state;

    (void)setrlimit(RLIMIT_NOFILE, &files); /* it may be enough as it is */
    (void)setenv("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=2", 1);
    node_init(&node);
    (void)snprintf(control, sizeof control, "%s/faults", node.home);
    (void)setenv("INTACT_FAULTS", control, 1);
    node_start(&node, FLAGS("--log", "error", "--drain", "20s", "--limit", "readings=16"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": "
                 "\"none\"}]");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    write_control("\n");
    node_stop(&node);
    node_fini(&node);
    return 0;
}

static bool has_answer(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void expect_overloaded(const struct reply *r)
{
    expect_problem(r, 503, "overloaded");
    CHECK(head_has(r, "\r\nRetry-After: 1\r\n"), "%.*s", SLICE_ARG(r->head));
}

/* A body that is announced while the others come finds the share of its token full. */
static void expect_no_room(const struct reply *r)
{
    CHECK(r->status == 503, "%d %.*s", r->status, SLICE_ARG(r->body));
    if (strcmp(text_at(r, "type"), "urn:intact:problem:busy") != 0)
        expect_overloaded(r);
}

static int ask_large(const char *id, int number)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "{\"workflow\": \"one\", \"id\": \"%s-%d\", \"input\": \"%0*d\"}", id, number,
            LARGE, 0);
    return ask(&node, "POST", "/v1/tasks", "application/json", buf_view(&b));
}

static int count_answers(const int *fds, int count)
{
    int n = 0;

    for (int i = 0; i < count; i++)
        n += has_answer(fds[i]);
    return n;
}

/* With a disk that stalls, all of them are tasks to be inserted. */
static int64_t tasks_in_memory(void)
{
    static const char name[] = "\nintact_tasks_in_memory ";
    REPLY r = {0};

    get(&node, &r, "/metrics");
    EXPECT(&r, 200);
    const char *text = strstr(r.body.ptr, name);
    CHECK(text, "%.*s", SLICE_ARG(r.body));
    return strtol(text + sizeof name - 1, NULL, 10);
}

/* What is taken is read beside the loop, one after the other and when others leave the processor,
 * and takes memory only then. */
static void wait_until_read(int64_t count)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    int64_t now = 0;

    while ((now = tasks_in_memory()) < count) {
        CHECK(steady_ms() < until, "%" PRId64 " tasks", now);
        sleep_ms(20);
    }
    assert_int_equal(now, count);
}

static void large_bodies_are_taken_as_far_as_there_is_room(void **state)
{
    int fds[LARGE_MAX + 4];
    int64_t until = steady_ms() + PATIENCE_MS;
    int64_t settled = 0;
    int taken = 0;
    REPLY r = {0};
    (void)state;

    stall();
    for (int i = 0; i < LARGE_MAX + 4; i++)
        fds[i] = ask_large("large", i);
    while (count_answers(fds, LARGE_MAX + 4) < 4)
        CHECK(steady_ms() < until, "%d answers", count_answers(fds, LARGE_MAX + 4));
    wait_until_read(LARGE_MAX);
    for (int i = 0; i < REFUSED; i++) {
        hear(ask_large("refused", i), &r);
        expect_overloaded(&r);
        if (i == 10)
            settled = node_resident_kb(&node);
    }
    int64_t last = node_resident_kb(&node);
    CHECK(last < settled + 2 * LARGE / 1024, "%" PRId64 " kB, then %" PRId64 " kB", settled, last);
    assert_int_equal(count_answers(fds, LARGE_MAX + 4), 4);

    write_control("\n");
    for (int i = 0; i < LARGE_MAX + 4; i++) {
        hear(fds[i], &r);
        taken += r.status == 201;
        if (r.status != 201)
            expect_no_room(&r);
    }
    assert_int_equal(taken, LARGE_MAX);
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task"), LARGE_MAX);
    hear(ask_large("refused", 0), &r);
    EXPECT(&r, 201);
}

static void send_batches(int fds[BATCHES])
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (int k = 0; k < BATCHES; k++) {
        buf_clear(&b);
        for (int i = 0; i < BATCH_LINES; i++)
            buf_fmt(&b, "{\"workflow\":\"one\",\"id\":\"batch-%d-%d\"}\n", k, i);
        fds[k] = ask(&node, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
    }
}

static int ask_small(int number)
{
    char body[80];

    (void)snprintf(body, sizeof body, "{\"workflow\": \"one\", \"id\": \"probe-%d\"}", number);
    return ask(&node, "POST", "/v1/tasks", "application/json", slice_of(body));
}

/* Until one is told that there are too many; what was taken is not to be lost. */
static int ask_until_refused(struct reply *ret)
{
    for (int i = 0; i < ASKS_MAX; i++) {
        int fd = ask_small(i);
        if (i % 256 == 0) /* so that those before it have been read */
            get(&node, ret, "/healthz");
        if (i > ASKS_MAX - LINES_MAX - 64)
            sleep_ms(2);
        if (has_answer(fd)) {
            hear(fd, ret);
            return i;
        }
        (void)close(fd);
    }
    CHECK(false, "never refused");
    return 0;
}

static void batches_wait_and_leave_room_for_others(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    int fds[BATCHES];
    REPLY r = {0};
    (void)state;

    stall();
    send_batches(fds);
    while (tasks_in_memory() < LINES_MAX)
        CHECK(steady_ms() < until, "%" PRId64 " tasks", tasks_in_memory());
    CHECK(tasks_in_memory() < LINES_MAX + 100, "%" PRId64 " tasks", tasks_in_memory());
    int taken = ask_until_refused(&r);
    expect_overloaded(&r);
    CHECK(taken >= ASKS_MAX - LINES_MAX - 100, "%d were taken", taken);
    post(&node, &r, "/v1/tasks/batch-0-0/undo", "{\"reason\": \"test\"}");
    expect_overloaded(&r);
    get(&node, &r, "/healthz");
    EXPECT(&r, 200);

    write_control("\n");
    for (int k = 0; k < BATCHES; k++) {
        hear(fds[k], &r);
        EXPECT(&r, 200);
        int created = 0;
        for (const char *p = r.body.ptr; (p = strstr(p, "\"status\":201")); p++)
            created++;
        assert_int_equal(created, BATCH_LINES);
    }
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'batch-%'"),
                     BATCHES * BATCH_LINES);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"after\"}");
    EXPECT(&r, 201);
}

static void answered_again(const char *path)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};

    write_control("\n");
    do {
        get(&node, &r, "%s", path);
        CHECK(r.status == 200 || steady_ms() < until, "%d", r.status);
    } while (r.status != 200);
}

/* Does a reading stand still? One that is not stalled is answered at once. */
static bool readings_stand(void)
{
    REPLY r = {0};
    int fd = ask(&node, "GET", "/v1/tasks/nobody", NULL, SLICE_NONE);

    sleep_ms(300);
    get(&node, &r, "/healthz");
    bool stands = !has_answer(fd);
    (void)close(fd);
    return stands;
}

/* What a reading has in its cache it does not read from the disk: so something is written before.
 */
static void stall_readings(void)
{
    static int count;
    char id[40];

    do {
        answered_again("/v1/audit");
        (void)snprintf(id, sizeof id, "written-%d", count++);
        submit(&node, "one", id);
        stall();
    } while (!readings_stand());
}

/* `path` may have a place for the number. */
static int ask_numbered(const char *path, int number)
{
    const char *place = strstr(path, "%d");
    char whole[60];

    (void)snprintf(whole, sizeof whole, "%.*s", (int)(place ? place - path : 59), path);
    if (place)
        (void)snprintf(whole + strlen(whole), sizeof whole - strlen(whole), "%d%s", number,
                       place + 2);
    return ask(&node, "GET", whole, NULL, SLICE_NONE);
}

/* So many fit, and those who are one too many are told so. Whoever gives up leaves the line: then
 * there is room for others. */
static void line_is_bounded(const char *path, int most)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    int *fds = calloc((size_t)most + OVER, sizeof *fds);
    int refused = 0;
    REPLY r = {0};

    ASSERT(fds);
    stall_readings();
    for (int i = 0; i < most + OVER; i++)
        fds[i] = ask_numbered(path, i);
    while (count_answers(fds, most + OVER) < OVER - AT_WORK_MAX)
        CHECK(steady_ms() < until, "%d answers", count_answers(fds, most + OVER));
    for (int i = 0; i < most + OVER; i++)
        if (has_answer(fds[i])) {
            hear(fds[i], &r);
            expect_overloaded(&r);
            refused++;
        } else {
            (void)close(fds[i]);
        }
    assert_in_range(refused, OVER - AT_WORK_MAX, OVER);
    free(fds);
    if (strstr(path, "/events")) { /* a stream has no end */
        answered_again("/v1/audit");
        return;
    }
    int fd = -1;
    do { /* until it is known that they have gone */
        CHECK(steady_ms() < until, "nobody leaves the line");
        fd = ask_numbered(path, most + OVER);
        get(&node, &r, "/healthz");
        if (!has_answer(fd))
            break;
        hear(fd, &r);
        expect_overloaded(&r);
    } while (true);
    answered_again(path);
    hear(fd, &r);
    EXPECT(&r, 200);
}

static void lines_of_readers_are_bounded(void **state)
{
    (void)state;
    line_is_bounded("/v1/tasks/after", 8 * LINE_MAX);
    line_is_bounded("/v1/tasks/after-%d/events", 8 * LINE_MAX); /* of streams, the first one */
    line_is_bounded("/v1/audit", LINE_MAX);
}

static int put_large(int number)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/workflows/large-%d", number);
    buf_fmt(&b,
            "{\"intact\": 1, \"workflow\": \"large-%d\", \"steps\": [{\"name\": \"a\", "
            "\"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\"}]%*s}",
            number, DEFINITION, "");
    return ask(&node, "PUT", path, "application/json", buf_view(&b));
}

/* They wait to be compiled, and then for the store; both have their bounds. */
static void definitions_are_bounded_too(void **state)
{
    int fds[DEFINITIONS];
    int64_t until = steady_ms() + PATIENCE_MS;
    int taken = 0;
    REPLY r = {0};
    (void)state;

    stall();
    for (int i = 0; i < DEFINITIONS; i++)
        fds[i] = put_large(i);
    while (count_answers(fds, DEFINITIONS) < DEFINITIONS - DEFINITIONS_MAX)
        CHECK(steady_ms() < until, "%d answers", count_answers(fds, DEFINITIONS));
    for (int i = 0; i < DEFINITIONS; i++)
        if (has_answer(fds[i])) {
            hear(fds[i], &r);
            CHECK(r.status == 503, "%d", r.status);
            fds[i] = -1;
        }
    write_control("\n");
    for (int i = 0; i < DEFINITIONS; i++)
        if (fds[i] >= 0) {
            hear(fds[i], &r);
            taken += r.status == 201;
            CHECK(r.status == 201 || r.status == 503, "%d", r.status);
        }
    assert_in_range(taken, 1, DEFINITIONS_MAX);
}

/* The list of tokens is read again after each change; if that fails, what was answered holds. */
static void a_deleted_token_is_not_known_though_nothing_can_be_read(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char token[64];
    REPLY made = {0};
    REPLY r = {0};
    (void)state;

    do { /* until the store writes, and cannot read */
        CHECK(steady_ms() < until, "DELETE answers %d", r.status);
        write_control("\n");
        do
            post(&node, &made, "/v1/tokens", "{\"name\": \"short\", \"roles\": [\"read\"]}");
        while (made.status == 503 && steady_ms() < until);
        if (made.status != 409) {
            EXPECT(&made, 201);
            (void)snprintf(token, sizeof token, "%s", text_at(&made, "token"));
        }
        /* A store that has failed has forgotten all it had read: what a deletion takes is read
         * here, or it would fail each time. */
        post(&node, &made, "/v1/tokens", "{\"name\": \"other\", \"roles\": [\"read\"]}");
        send_as(&node, &r, "DELETE", "/v1/tokens/other", NULL, SLICE_NONE);
        write_control("1000 io read\n");
        sleep_ms(20); /* it looks there every few milliseconds */
        send_as(&node, &r, "DELETE", "/v1/tokens/short", NULL, SLICE_NONE);
    } while (r.status == 503);
    EXPECT(&r, 204);
    const struct node reader = as(&node, token);
    get(&reader, &r, "/v1/agents");
    EXPECT(&r, 401);
    write_control("\n");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_bodies_are_taken_as_far_as_there_is_room),
        cmocka_unit_test(batches_wait_and_leave_room_for_others),
        cmocka_unit_test(lines_of_readers_are_bounded),
        cmocka_unit_test(definitions_are_bounded_too),
        cmocka_unit_test(a_deleted_token_is_not_known_though_nothing_can_be_read),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
