/* Lists of items through the scheduler and the store: how rows of items that are undone are
 * read. */
#include "scheduler/scheduler_test_kit.h"

#include <stdio.h>

/* More than three reads of rows, which have 256. */
enum { ITEMS = 800, PLACES = 50 };

static struct stage s;

static void submit_list(void)
{
    CLEANUP(buf_fini) struct buf input = {0};

    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[{\"name\":\"each\",\"for_each\":\"${ .input.list }\","
                 "\"max_items\":1000,\"concurrency\":50,\"agent\":\"ag\",\"action\":\"do\","
                 "\"undo\":{\"action\":\"undo\"}},{\"name\":\"last\",\"agent\":\"other\","
                 "\"action\":\"fail\",\"undo\":\"none\",\"retry\":{\"attempts\":1}}]");
    buf_str(&input, "{\"list\":[");
    for (int i = 0; i < ITEMS; i++)
        buf_fmt(&input, "%s%d", i ? "," : "", i);
    buf_str(&input, "]}");
    (void)stage_submit(&s, "w", arena_copy(&s.arena, buf_view(&input)));
}

/* Answers what the last call was given, and takes as many new requests as there are places. */
static void serve(const char *agent, uint32_t places, bool fails)
{
    struct work *w = stage_call_of(agent, places);

    w->results = arena_alloc(&w->arena, (s.token_count + 1) * sizeof *w->results);
    for (size_t i = 0; i < s.token_count; i++)
        w->results[w->result_count++] = (struct work_result){.token = s.tokens[i],
                                                             .failed = fails,
                                                             .error = {SLICE("no"), SLICE("no")},
                                                             .output = SLICE("1")};
    s.token_count = 0;
    stage_call(&s, w);
}

/* Serves the list in one direction: each call gets as many as it has places. */
static void serve_list(void)
{
    size_t served = 0;

    while (served < ITEMS) {
        serve("ag", PLACES, false);
        served += s.token_count;
        CHECK(s.token_count == PLACES, "%zu requests after %zu", s.token_count, served);
    }
    serve("ag", 0, false);
}

/* Rows are read beside the commits of those before them, so no place waits for a row. */
static void an_undo_keeps_all_places_busy(void **state)
{
    (void)state;
    submit_list();
    serve_list();
    serve("other", 1, false);
    CHECK(s.token_count == 1, "the last step");
    serve("other", 0, true);
    uint64_t changes = stage_stats(&s).changes;
    serve_list();
    changes = stage_stats(&s).changes - changes;
    CHECK(changes <= ITEMS / PLACES + 2, "%d changes", (int)changes);
    CHECK(s.ended == 1 && s.ended_in == TASK_COMPENSATED, "%s", task_state_text(s.ended_in));
    stage_end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undo_keeps_all_places_busy),
    };
    return cmocka_run_group_tests_name("scheduler-items", tests, NULL, NULL);
}
