/* Tests of live verbs without a server: events from a stream that is cut anywhere
 * (client/event_parser.c), and what `intact watch` makes of them (watched.c, watch_draw.c).
 * tests/e2e/live_test.py has real servers and terminals. */

#include "base/test.h"

#include <locale.h>
#include <stdlib.h>
#include <time.h>

#include "cli/client/live_stream.h"
#include "cli/verbs/watch.h"

/* ---- events ---- */

static struct buf heard;

static void hear(void *arg, const struct event *e)
{
    (void)arg;
    buf_fmt(&heard, "%.*s|%.*s|%.*s\n", SLICE_ARG(e->name), SLICE_ARG(e->id), SLICE_ARG(e->data));
}

static void events_are_the_same_however_they_are_cut(void **state)
{
    static const char text[] = "retry: 1500\n\n"
                               ": alive\n\n"
                               "event: task\nid: 7\ndata: {\"a\":1}\n\n"
                               "data: two\rdata:lines\r\r"
                               "event: lost\r\n\r\n" /* without data it is no event */
                               "id: 9\r\ndata\r\n\r\n"
                               "unknown: x\nid: \ndata: plain\n\n"
                               "event: half\ndata: of it";
    (void)state;

    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct event_parser p = {.retry_ms = -1};
        buf_clear(&heard);
        for (size_t at = 0; at < sizeof text - 1; at += piece) {
            size_t left = sizeof text - 1 - at;
            event_parser_feed(&p, (struct slice){text + at, left < piece ? left : piece}, hear,
                              NULL);
        }
        CHECK(slice_is(buf_view(&heard), "task|7|{\"a\":1}\n|7|two\nlines\n|9|\n||plain\n"),
              "in pieces of %zu: %s", piece, heard.ptr);
        CHECK(p.retry_ms == 1500, "%d", (int)p.retry_ms);
        event_parser_cut(&p); /* the connection broke */
        buf_clear(&heard);
        event_parser_feed(&p, SLICE("data: new\n\n"), hear, NULL);
        CHECK(slice_is(buf_view(&heard), "||new\n"), "%s", heard.ptr);
        event_parser_fini(&p);
    }
    buf_fini(&heard);
}

static void a_retry_that_is_no_number_means_nothing(void **state)
{
    static const char *const cases[] = {"retry: -1\n", "retry: 1e9\n", "retry: 99999999999\n",
                                        "retry\n", "retry:\n"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct event_parser p = {.retry_ms = 42};
        event_parser_feed(&p, slice_of(cases[i]), hear, NULL);
        CHECK(p.retry_ms == 42, "%s", cases[i]);
        event_parser_fini(&p);
    }
}

/* ---- views ---- */

#define AT(s) "\"2026-01-31T12:00:" s "Z\""
#define ATTEMPT(n, d, from, to, outcome)                                                \
    "{\"attempt\":" n ",\"direction\":\"" d "\",\"instance\":\"i\",\"started_at\":" AT( \
        from) ",\"ended_at\":" to ",\"complete_by\":" AT("50.000") ",\"outcome\":\"" outcome "\"}"
#define STEP(name, state, attempts)                                                       \
    "{\"name\":\"" name "\",\"state\":\"" state "\",\"agent\":\"ag\",\"in_doubt\":false," \
    "\"wait_until\":null,\"error\":null,\"attempts\":[" attempts "]}"
#define TASK(state, ended, steps)                                                         \
    "{\"id\":\"t\",\"workflow\":\"w\",\"version\":2,\"state\":\"" state                   \
    "\",\"direction\":\"forward\",\"complete_by\":" AT("40.000") ",\"submitted_at\":" AT( \
        "00.000") ",\"started_at\":" AT("00.000") ",\"ended_at\":" ended                  \
                                                  ",\"waiting_for\":null,\"error\":null," \
                                                  "\"output\":null,\"steps\":[" steps "]}"

static const int64_t noon = INT64_C(1769860800000); /* 2026-01-31T12:00:00Z */

static void drawn(const struct watched *w, struct term *t, int64_t now, const char *text)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct watch_view v = {t, now, "", true};

    watch_draw(w, &v, &b);
    CHECK(slice_is(buf_view(&b), text), "\n%s", b.ptr);
}

static void attempts_are_bars_over_time(void **state)
{
    struct term t = {.live = true, .width = 60, .height = 24};
    CLEANUP(watched_fini) struct watched w = {0};
    (void)state;

    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(watched_record(
              &w,
              SLICE(TASK("processing", "null",
                         STEP("a", "completed",
                              ATTEMPT("1", "forward", "00.000", AT("05.000"), "failed") "," ATTEMPT(
                                  "2", "forward", "10.000", AT("15.000"),
                                  "completed")) "," STEP("b", "running",
                                                         ATTEMPT("1", "forward", "15.000", "null",
                                                                 "open")) "," STEP("c", "waiting",
                                                                                   "")))),
          "a record");
    drawn(&w, &t, noon + 20000,
          "t  w v2  processing  for 20s\n"
          "complete by 12:00:40, 20s left\n"
          "\n"
          "  STEP  STATE        AGENT  ATTEMPTS  12:00:00          20s\n"
          "+ a     completed    ag     2         xxxxx.....=====\n"
          "> b     running      ag     1                        >>>>>>\n"
          ". c     waiting      ag\n"
          "\n"
          "b: attempt 1 on i for 5.0s, 30s left\n");
    t.width = 30; /* no room for bars */
    drawn(&w, &t, noon + 41000,
          "t  w v2  processing  for 41s\n"
          "complete by 12:00:40, overdu~\n"
          "\n"
          "  STEP  STATE        AGENT  ~\n"
          "+ a     completed    ag     2\n"
          "> b     running      ag     1\n"
          ". c     waiting      ag\n"
          "\n"
          "b: attempt 1 on i for 26s, 9~\n");
}

/* As `get` tells them: those that undo behind those that went forward. */
static void attempts_to_undo_are_counted_apart(void **state)
{
    const struct term t = {.live = true, .width = 40, .height = 24};
    CLEANUP(watched_fini) struct watched w = {0};
    (void)state;

    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(watched_record(
              &w, SLICE(TASK(
                      "compensated", AT("09.000"),
                      STEP("a", "undone",
                           ATTEMPT("1", "forward", "01.000", AT("02.000"), "timed_out") "," ATTEMPT(
                               "2", "forward", "03.000", AT("04.000"),
                               "completed") "," ATTEMPT("1", "undo", "07.000", AT("09.000"),
                                                        "completed"))))),
          "a record");
    CLEANUP(buf_fini) struct buf b = {0};
    const struct watch_view v = {&t, noon + 9000, "", true};
    watch_draw(&w, &v, &b);
    CHECK(strstr(b.ptr, "a     undone       ag     2+1\n"), "\n%s", b.ptr);
}

static void lines_tell_what_is_new(void **state)
{
    const struct term t = {.width = 80};
    CLEANUP(watched_fini) struct watched w = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(watched_record(&w, SLICE(TASK("processing", "null",
                                        STEP("a", "running",
                                             ATTEMPT("1", "forward", "01.000", "null", "open"))))),
          "first");
    watch_lines(&w, &t, noon + 1000, &b);
    CHECK(slice_is(buf_view(&b), "12:00:00  -                 processing\n"
                                 "12:00:01  a                 running       attempt 1  on i\n"),
          "\n%s", b.ptr);
    buf_clear(&b);
    watch_lines(&w, &t, noon + 1000, &b);
    buf_clear(&b);
    /* Several changes at once: a failed attempt, another one, the undo, and the end. */
    CHECK(watched_record(
              &w,
              SLICE(TASK(
                  "compensated", AT("09.000"),
                  STEP("a", "undone",
                       ATTEMPT("1", "forward", "01.000", AT("02.000"), "timed_out") "," ATTEMPT(
                           "2", "forward", "03.000", AT("04.000"),
                           "completed") "," ATTEMPT("1", "undo", "07.000", AT("09.000"),
                                                    "completed")) "," STEP("b", "failed",
                                                                           ATTEMPT("1", "forward",
                                                                                   "04.000",
                                                                                   AT("07.000"),
                                                                                   "failed"))))),
          "second");
    watch_lines(&w, &t, noon + 9000, &b);
    CHECK(slice_is(buf_view(&b),
                   "12:00:02  a                 waiting       attempt 1  timed_out after 1.0s\n"
                   "12:00:03  a                 running       attempt 2  on i\n"
                   "12:00:04  a                 completed     attempt 2  completed after 1.0s\n"
                   "12:00:04  b                 running       attempt 1  on i\n"
                   "12:00:07  b                 failed        attempt 1  failed after 3.0s\n"
                   "12:00:07  a                 undoing       undo 1  on i\n"
                   "12:00:09  a                 undone        undo 1  completed after 2.0s\n"
                   "12:00:09  -                 compensated\n"),
          "\n%s", b.ptr);
}

#define PARENT(state, child, error)                                                    \
    TASK("pending", "null",                                                            \
         "{\"name\":\"a\",\"state\":\"" state                                          \
         "\",\"agent\":null,\"in_doubt\":false,\"kind\":\"task\",\"complete_by\":" AT( \
             "30.000") ",\"wait_until\":null,\"child\":" child ",\"error\":" error     \
                       ",\"attempts\":[]}")
#define CHILD(state, asked) "{\"id\":\"t@a\",\"state\":\"" state "\",\"asked\":" asked "}"

static void what_becomes_of_a_child_is_told(void **state)
{
    static const struct {
        const char *record, *line, *drawn; /* NULL: nothing is drawn of it */
    } cases[] = {
        {PARENT("waiting", "null", "null"), "-                 pending\n", NULL},
        {PARENT("waiting", CHILD("running", "null"), "null"),
         "a                 waiting       its child t@a is running\n",
         "a: waits, its child t@a is running, at most 21s\n"},
        {PARENT("waiting", CHILD("error", "null"), "{\"code\":\"child\",\"message\":\"no\"}"),
         "a                 waiting       its child t@a stopped in error: child: no\n",
         "a: waits, its child t@a stopped in error, at most 21s; child: no\n"},
        {PARENT("waiting", CHILD("turned", "\"stop\""), "null"),
         "a                 waiting       its child t@a is being undone, asked to stop\n",
         "a: waits, its child t@a is being undone, asked to stop, at most 21s\n"},
        {PARENT("completed", CHILD("processed", "null"), "null"),
         "a                 completed     its child t@a is processed\n", NULL},
        {PARENT("completed", CHILD("processed", "null"), "null"), "", NULL},
    };
    const struct term t = {.live = true, .width = 100, .height = 24};
    CLEANUP(watched_fini) struct watched w = {0};
    (void)state;

    setenv("TZ", "UTC", 1);
    tzset();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf lines = {0};
        CLEANUP(buf_fini) struct buf view = {0};
        const struct watch_view v = {&t, noon + 9000, "", true};
        CHECK(watched_record(&w, slice_of(cases[i].record)), "%zu", i);
        watch_lines(&w, &t, noon + 9000, &lines);
        size_t at = lines.len > 0 ? strlen("12:00:00  ") : 0;
        CHECK(strcmp(lines.ptr ? lines.ptr + at : "", cases[i].line) == 0, "%zu: %s", i, lines.ptr);
        watch_draw(&w, &v, &view);
        const char *drawn = strstr(view.ptr, "a: ");
        CHECK(strcmp(drawn ? drawn : "", cases[i].drawn ? cases[i].drawn : "") == 0, "%zu: %s", i,
              view.ptr);
    }
}

#define ITEM(n, state, error, attempts)                                                \
    "{\"name\":\"a." n "\",\"item\":" n ",\"state\":\"" state "\",\"in_doubt\":false," \
    "\"wait_until\":null,\"error\":" error ",\"attempts\":[" attempts "]}"
#define EACH(state, sums, error, units)                                                            \
    TASK("processing", "null",                                                                     \
         "{\"name\":\"a\",\"state\":\"" state                                                      \
         "\",\"agent\":\"ag\",\"in_doubt\":false,\"kind\":\"for_each\",\"begun_at\":" AT(          \
             "01.000") ",\"wait_until\":null,\"items\":{\"count\":20," sums ",\"at_work\":[" units \
                       "]},\"error\":" error ",\"attempts\":[]}")
#define NO   "{\"code\":\"no\",\"message\":\"none left\"}"
#define OPEN ATTEMPT("1", "forward", "02.000", "null", "open")

static void items_are_told_as_sums(void **state)
{
    static const char *const cases[][2] = {
        {EACH("waiting", "\"begun\":2,\"completed\":0", "null",
              ITEM("1", "running", "null", OPEN) "," ITEM("0", "running", "null", OPEN)),
         "a                 waiting       0 of 20 items completed, 2 at work\n"},
        {EACH("waiting", "\"begun\":3,\"completed\":1", "null", ""), ""}, /* no tenth */
        {EACH("waiting", "\"begun\":3,\"completed\":2", "null", ITEM("2", "running", "null", OPEN)),
         "a                 waiting       2 of 20 items completed, 1 at work\n"},
        {EACH("waiting", "\"begun\":6,\"completed\":4,\"failed\":1", "null",
              ITEM("5", "running", "null", OPEN) "," ITEM("2", "failed", NO, "")),
         "a.2               failed        no: none left\n"
         "12:00:09  a                 waiting       4 of 20 items completed, 1 failed, 1 at "
         "work\n"},
        {EACH("failed", "\"begun\":6,\"completed\":5,\"failed\":1,\"in_doubt\":1", NO,
              ITEM("2", "failed", NO, "")),
         "a                 failed        5 of 20 items completed, 1 failed, 1 in doubt: no: none "
         "left\n"},
    };
    const struct term t = {.width = 100};
    CLEANUP(watched_fini) struct watched w = {0};
    (void)state;

    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(watched_record(&w, SLICE(TASK("processing", "null", STEP("a", "waiting", "")))), "first");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf lines = {0};
        CHECK(watched_record(&w, slice_of(cases[i][0])), "%zu", i);
        watch_lines(&w, &t, noon + 9000, &lines);
        size_t at = lines.len > 0 ? strlen("12:00:09  ") : 0;
        CHECK(strcmp(lines.ptr ? lines.ptr + at : "", cases[i][1]) == 0, "%zu: %s", i, lines.ptr);
    }
}

static void items_are_drawn_as_shares(void **state)
{
    struct term t = {.live = true, .width = 65, .height = 24};
    CLEANUP(watched_fini) struct watched w = {0};
    (void)state;

    setenv("TZ", "UTC", 1);
    tzset();
    CHECK(watched_record(&w,
                         SLICE(EACH("waiting", "\"begun\":14,\"completed\":10,\"failed\":1", "null",
                                    ITEM("13", "running", "null",
                                         OPEN) "," ITEM("12", "waiting", "null",
                                                        "") "," ITEM("3", "failed", NO, "")))),
          "a record");
    drawn(&w, &t, noon + 9000,
          "t  w v2  processing  for 9.0s\n"
          "complete by 12:00:40, 31s left\n"
          "\n"
          "  STEP  STATE        AGENT  ATTEMPTS  12:00:00              9.0s\n"
          ". a     waiting      ag               =============x>>>>........\n"
          "\n"
          "a: 10 of 20 items completed, 1 failed, 2 at work\n"
          "a.3: no: none left\n"
          "a.13: attempt 1 on i for 7.0s, 41s left\n");
}

static void what_is_no_record_changes_nothing(void **state)
{
    CLEANUP(watched_fini) struct watched w = {0};
    (void)state;

    CHECK(!watched_record(&w, SLICE("{")) && !w.task, "no JSON");
    CHECK(!watched_record(&w, SLICE("{}")) && !w.task, "no task");
    CHECK(!watched_record(&w, SLICE("[]")) && !w.task, "no object");
    CHECK(watched_record(&w, SLICE(TASK("pending", "null", ""))), "a record");
    CHECK(!watched_record(&w, SLICE("{\"state\":1,\"steps\":[]}")), "no state");
    CHECK(slice_is(json_get_text(w.task, "state"), "pending"), "the one before stays");
    watched_progress(&w, SLICE("{"));
    watched_progress(&w, SLICE("[]"));
    CHECK(w.beat_count == 0, "%zu", w.beat_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_the_same_however_they_are_cut),
        cmocka_unit_test(a_retry_that_is_no_number_means_nothing),
        cmocka_unit_test(attempts_are_bars_over_time),
        cmocka_unit_test(attempts_to_undo_are_counted_apart),
        cmocka_unit_test(lines_tell_what_is_new),
        cmocka_unit_test(what_becomes_of_a_child_is_told),
        cmocka_unit_test(items_are_told_as_sums),
        cmocka_unit_test(items_are_drawn_as_shares),
        cmocka_unit_test(what_is_no_record_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
