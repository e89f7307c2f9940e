/*
 * Clients that list without end delay neither changes nor readers with another token. Only the
 * order of answers counts: the earlier lists are still unanswered.
 */

#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

enum {
    STORED = 5000,   /* so many rows a listing looks at that finds nothing */
    CROWD = 64,      /* of one reader's at a time */
    LINE = CROWD + 8 /* that may wait */
};

#define LISTING "/v1/tasks?error=nope"

static struct node node;

static int start(void **state)
{
    CLEANUP(buf_fini) struct buf lines = {0};
    REPLY r = {0};

    *state = node_open(&node, FLAGS("--limit", "readings=72"));
    (void)define(&node, "read",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"rd\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    for (int i = 0; i < STORED; i++)
        buf_fmt(&lines, "{\"workflow\":\"read\",\"id\":\"stored-%d\"}\n", i);
    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&lines));
    EXPECT(&r, 200);
    return 0;
}

static void ask_for_lists(const struct node *who, int *fds, int count)
{
    for (int i = 0; i < count; i++)
        fds[i] = ask(who, "GET", LISTING, NULL, SLICE_NONE);
    let_read(&node);
}

/* How many of them have no answer yet. */
static int count_out(const int *fds, int count)
{
    int out = 0;

    for (int i = 0; i < count; i++) {
        struct pollfd p = {.fd = fds[i], .events = POLLIN};
        out += poll(&p, 1, 0) == 0;
    }
    return out;
}

static void hear_lists(const int *fds, int count)
{
    for (int i = 0; i < count; i++) {
        REPLY r = {0};
        hear(fds[i], &r);
        EXPECT(&r, 200);
        EXPECT_RAW(&r, "tasks", "[]");
    }
}

static void a_submission_does_not_wait_for_lists(void **state)
{
    int fds[CROWD];
    (void)state;

    ask_for_lists(&node, fds, CROWD);
    submit(&node, "read", "beside-lists");
    CHECK(count_out(fds, CROWD) > 0, "all lists were answered before");
    hear_lists(fds, CROWD);
}

static void a_result_does_not_wait_for_lists(void **state)
{
    int fds[CROWD];
    REPLY work = {0};
    (void)state;

    (void)define(&node, "done",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"dn\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    submit(&node, "done", "done-1");
    fetch(&node, &work, "dn", "d1");
    char *token = token_in(&work, 0);
    ask_for_lists(&node, fds, CROWD);
    hand_in(&node, "dn", "d1", token, "\"output\": 1", "accepted");
    CHECK(count_out(fds, CROWD) > 0, "all lists were answered before");
    hear_lists(fds, CROWD);
    wait_for_state(&node, "done-1", "processed");
    free(token);
}

/* What was answered is seen by whoever reads next, however many changes there are. */
static void what_was_acknowledged_is_read(void **state)
{
    (void)state;

    for (int i = 0; i < 50; i++) {
        REPLY r = {0};
        REPLY listed = {0};
        char id[20];
        (void)snprintf(id, sizeof id, "written-%d", i);
        submit(&node, "read", id);
        get(&node, &r, "/v1/tasks/%s", id);
        EXPECT(&r, 200);
        get(&node, &listed, "/v1/tasks?limit=1");
        EXPECT_TEXT(&listed, "tasks.0.id", id);
    }
}

static void tokens_take_turns(void **state)
{
    int fds[CROWD];
    int other = -1;
    REPLY r = {0};
    char first[64];
    char second[64];
    (void)state;

    make_token(&node, "eager", "\"read\"", NULL, first);
    make_token(&node, "modest", "\"read\"", NULL, second);
    const struct node eager = as(&node, first);
    const struct node modest = as(&node, second);
    ask_for_lists(&eager, fds, CROWD);
    ask_for_lists(&modest, &other, 1);
    hear(other, &r);
    EXPECT(&r, 200);
    CHECK(count_out(fds, CROWD) > 0, "the other one came last");
    hear_lists(fds, CROWD);
}

/* A task by its id is not behind the lists of the same token. */
static void a_short_one_passes_long_ones(void **state)
{
    int fds[CROWD];
    REPLY r = {0};
    (void)state;

    ask_for_lists(&node, fds, CROWD);
    get(&node, &r, "/v1/tasks/stored-0");
    EXPECT(&r, 200);
    CHECK(count_out(fds, CROWD) > 0, "it came last");
    hear_lists(fds, CROWD);
}

static int64_t metric(const char *name)
{
    REPLY r = {0};
    char line[80];

    get(&node, &r, "/metrics");
    (void)snprintf(line, sizeof line, "\n%s ", name);
    const char *at = r.raw ? strstr(r.raw, line) : NULL;
    CHECK(at, "there is no %s", name);
    return strtoll(at + strlen(line), NULL, 10);
}

static void beyond_the_line_there_is_503(void **state)
{
    enum { MORE = LINE + 30 };
    int fds[MORE];
    int refused = 0;
    int64_t before = metric("intact_readings_refused_total");
    (void)state;

    ask_for_lists(&node, fds, MORE);
    CHECK(metric("intact_readings_waiting") <= LINE, "more wait than may");
    for (int i = 0; i < MORE; i++) {
        REPLY r = {0};
        hear(fds[i], &r);
        if (r.status == 200)
            continue;
        expect_problem(&r, 503, "overloaded");
        CHECK(head_has(&r, "Retry-After: "), "no word of when to come again");
        refused++;
    }
    CHECK(refused > 0, "none was refused");
    CHECK(metric("intact_readings_refused_total") - before == refused, "they are counted");
}

/* Nobody reads for them any more: the next one is not behind them. */
static void who_hangs_up_is_out_of_the_line(void **state)
{
    int fds[CROWD];
    (void)state;

    ask_for_lists(&node, fds, CROWD);
    CHECK(count_out(fds, CROWD) > 0, "they were answered at once");
    for (int i = 0; i < CROWD; i++)
        (void)close(fds[i]);
    let_read(&node);
    WAIT_FOR(metric("intact_readings_waiting") == 0, "the line is empty");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submission_does_not_wait_for_lists),
        cmocka_unit_test(a_result_does_not_wait_for_lists),
        cmocka_unit_test(what_was_acknowledged_is_read),
        cmocka_unit_test(tokens_take_turns),
        cmocka_unit_test(a_short_one_passes_long_ones),
        cmocka_unit_test(beyond_the_line_there_is_503),
        cmocka_unit_test(who_hangs_up_is_out_of_the_line),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests_name("readings", tests, start, node_end);
}
