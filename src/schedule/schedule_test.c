/* Tests of schedules as texts: what is refused, at which line and column, when their moments are,
 * and the input of a moment's task. plan_test.c tests which moments get a task. */

#include <stdlib.h>

#include "base/test.h"
#include "base/when.h"
#include "schedule/row.h"

#define HEAD "intact: 1\nschedule: nightly\nworkflow: close-books\n"

static struct mistakes mistakes, warnings;

static struct schedule *parse(const char *text)
{
    struct schedule *s = NULL;

    if (schedule_parse(slice_of(text), SOURCE_GUESS, &s, &mistakes, &warnings) != ERR_OK)
        return NULL;
    return s;
}

static struct schedule *accepts(const char *text)
{
    struct schedule *s = parse(text);

    CHECK(s, "%s: line %" PRIu32 ": %s, expected %s", text, mistakes.list[0].line,
          mistakes.list[0].found, mistakes.list[0].expected);
    return s;
}

/* There is one mistake, at that place, whose text has these words. */
static void refuses(const char *text, uint32_t line, uint32_t column, const char *words)
{
    struct schedule *s = parse(text);
    const struct mistake *m = &mistakes.list[0];

    CHECK(!s, "%s: accepted", text);
    CHECK(mistakes.count == 1, "%s: %zu mistakes, %s and %s", text, mistakes.count,
          mistakes.list[0].expected, mistakes.list[1].expected);
    CHECK(m->line == line && m->column == column, "%s: at %" PRIu32 ":%" PRIu32 ", %s", text,
          m->line, m->column, m->expected);
    CHECK(strstr(m->expected, words), "%s: %s", text, m->expected);
}

static void mistakes_have_a_place(void **state)
{
    (void)state;
    refuses(HEAD, 1, 1, "\"cron\", \"every\" or \"at\"");
    refuses("intact: 1\nschedule: nightly\nevery: 1h\n", 1, 1, "a key \"workflow\"");
    refuses(HEAD "cron: \"30 2 * *\"\n", 4, 7, "five fields");
    refuses(HEAD "cron: \"0 0 30 2 *\"\n", 4, 7, "never fires");
    refuses(HEAD "cron: 5\n", 4, 7, "in quotes");
    refuses(HEAD "every: 7m\n", 4, 8, "divide a day");
    refuses(HEAD "every: 1500ms\n", 4, 8, "full seconds");
    refuses(HEAD "every: 2d\n", 4, 8, "divide a day");
    refuses(HEAD "every: 0s\n", 4, 8, "longer than 0");
    refuses(HEAD "at: []\n", 4, 5, "1 to 1000 times");
    refuses(HEAD "at: [2027-02-30T00:00:00Z]\n", 4, 6, "a time of full seconds");
    refuses(HEAD "at: [\"2027-01-01T00:00:00\"]\n", 4, 6, "with Z or an offset");
    refuses(HEAD "at: [2027-01-01T00:00:00.5Z]\n", 4, 6, "full seconds");
    refuses(HEAD "at: [\"10000-01-01T00:00:00Z\"]\n", 4, 6, "a time");
    refuses(HEAD "every: 1h\ntimezone: Mars/Olympus\n", 5, 11, "time zone");
    refuses(HEAD "every: 1h\noverlap: maybe\n", 5, 10, "skip");
    refuses(HEAD "every: 1h\nmissed: none\n", 5, 9, "latest");
    refuses(HEAD "every: 1h\ncatch_up: 5s\n", 5, 11, "from 1m to 366d");
    refuses(HEAD "every: 1h\nspread: 2d\n", 5, 9, "at most 1d");
    refuses(HEAD "every: 1h\npriority: 10\n", 5, 11, "from 0 to 9");
    refuses(HEAD "every: 1h\ntags: [a]\n", 5, 7, "an object");
    refuses(HEAD "every: 1h\ntags: {a: 1}\n", 5, 11, "a string");
    refuses(HEAD "every: 1h\nreply_to: {}\n", 5, 11, "target");
    refuses(HEAD "every: 1h\ninput: {a: \"${ .time | nope }\"}\n", 5, 24, "");
    refuses(HEAD "every: 1h\ninput: {a: \"${ .steps.x.output }\"}\n", 5, 12, ".time, .local");
    refuses(HEAD "every: 1h\ninput: {a: \"${ .input.x }\"}\n", 5, 8, ".time, .local");
    refuses(HEAD "every: 1h\ntime_zone: UTC\n", 5, 1, "did you mean \"timezone\"?");
    refuses("intact: 2\nschedule: nightly\nworkflow: w\nevery: 1h\n", 1, 9, "1, the version");
    refuses("intact: 1\nschedule: \"a@b\"\nworkflow: w\nevery: 1h\n", 2, 11, "a name");
}

static void all_mistakes_are_named_at_once(void **state)
{
    (void)state;
    assert_null(parse(HEAD "cron: \"0 0 * * *\"\nevery: 1h\n"));
    assert_int_equal(mistakes.count, 2);
    assert_null(parse(HEAD "cron: \"x\"\ntimezone: x\npriority: x\n"));
    assert_int_equal(mistakes.count, 3);
    assert_int_equal(mistakes.list[2].line, 6);
    assert_null(parse("{"));
    assert_null(parse("[]"));
    assert_null(parse(""));
}

static void paths_that_are_never_there_are_warned_of(void **state)
{
    (void)state;
    struct schedule *s = accepts(HEAD "every: 1h\ninput: {a: \"${ .tme }\", b: \"${ . }\"}\n");

    assert_int_equal(warnings.count, 1);
    CHECK(strstr(warnings.list[0].expected, ".time"), "%s", warnings.list[0].expected);
    assert_int_equal(warnings.list[0].line, 5);
    schedule_free(s);
}

static int64_t at(const char *text)
{
    int64_t ret = -1;

    CHECK(time_parse(slice_of(text), &ret), "%s", text);
    return ret;
}

static void moments_are(const char *text, const char *after, const char *const wanted[])
{
    struct schedule *s = accepts(text);
    int64_t now = at(after);

    for (size_t i = 0; wanted[i]; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        now = schedule_next(s, now);
        if (now < 0)
            buf_str(&b, "never");
        else
            moment_write(&b, now);
        CHECK(slice_is(buf_view(&b), wanted[i]), "%s: %s", b.ptr, wanted[i]);
    }
    schedule_free(s);
}

#define MOMENTS(text, after, ...) moments_are(text, after, (const char *const[]){__VA_ARGS__, NULL})

static void moments_come_in_their_order(void **state)
{
    (void)state;
    MOMENTS(HEAD "cron: \"30 2 * * *\"\ntimezone: Europe/Rome\n", "2027-01-01T00:00:00Z",
            "2027-01-01T01:30:00Z", "2027-01-02T01:30:00Z");
    MOMENTS(HEAD "every: 15m\n", "2027-01-01T00:00:00Z", "2027-01-01T00:15:00Z",
            "2027-01-01T00:30:00Z");
    MOMENTS(HEAD "every: 1d\n", "9999-12-30T12:00:00Z", "9999-12-31T00:00:00Z", "never");
    MOMENTS(HEAD "at: [2027-03-01T01:00:00+01:00, 2027-02-01T00:00:00Z, 2027-03-01T00:00:00Z]\n",
            "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z", "2027-03-01T00:00:00Z", "never");
    MOMENTS(HEAD "at: [2027-03-01T01:00:00Z]\n", "2027-03-01T01:00:00Z", "never");
}

static void a_spread_is_the_same_for_all_moments_of_a_schedule(void **state)
{
    (void)state;
    struct schedule *s = accepts(HEAD "every: 1h\nspread: 5m\n");
    struct schedule *other =
        accepts("intact: 1\nschedule: b\nworkflow: w\nevery: 1h\nspread: 5m\n");
    struct schedule *exact = accepts(HEAD "every: 1h\n");
    int64_t by = schedule_due_at(s, at("2027-01-01T00:00:00Z")) - at("2027-01-01T00:00:00Z");

    assert_in_range(by, 1, 5 * MS_PER_MIN - 1);
    assert_int_equal(schedule_due_at(s, at("2027-05-01T01:00:00Z")) - at("2027-05-01T01:00:00Z"),
                     by);
    assert_int_not_equal(schedule_due_at(other, 0), by);
    assert_false(schedule_same_times(s, exact));
    assert_true(schedule_same_times(s, s));
    schedule_free(exact);
    schedule_free(s);
    schedule_free(other);
}

static void input_of(const char *text, const char *moment, const char *previous, const char *wanted)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct schedule *s = accepts(text);
    struct slice got;
    struct error e = {0};

    assert_int_equal(schedule_input(s, at(moment), previous ? at(previous) : 0, &a, &got, &e),
                     ERR_OK);
    CHECK(slice_is(got, wanted), "%.*s: %s", SLICE_ARG(got), wanted);
    schedule_free(s);
}

static void inputs_know_the_moment(void **state)
{
    (void)state;
    input_of(HEAD "every: 1h\ntimezone: Europe/Rome\n"
                  "input: {a: \"${ .time }\", b: \"${ .local }\", c: \"${ .previous }\", d: 1}\n",
             "2027-01-01T01:00:00Z", "2027-01-01T00:00:00Z",
             "{\"a\":\"2027-01-01T01:00:00Z\",\"b\":\"2027-01-01T02:00:00+01:00\","
             "\"c\":\"2027-01-01T00:00:00Z\",\"d\":1}");
    input_of(HEAD "every: 1h\ntimezone: America/St_Johns\ninput: \"${ [.local, .previous] }\"\n",
             "2027-01-01T01:00:00Z", NULL, "[\"2026-12-31T21:30:00-03:30\",null]");
}

static void a_failing_input_says_so(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct schedule *s = accepts(HEAD "every: 1h\ninput: {a: \"${ .time + 1 }\"}\n");
    struct slice got;
    struct error e = {0};
    (void)state;

    assert_int_equal(schedule_input(s, at("2027-01-01T01:00:00Z"), 0, &a, &got, &e), ERR_INVALID);
    CHECK(strstr(e.text, "input"), "%s", e.text);
    schedule_free(s);
}

static void submissions_have_what_the_schedule_says(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct schedule *s =
        accepts(HEAD "every: 1h\npriority: 7\ntags: {a: b}\nreply_to: https://x/\n");
    (void)state;

    struct slice id = run_id(s->name, at("2027-01-01T01:00:00Z"), &a);
    assert_true(slice_is(id, "nightly@2027-01-01T01:00:00Z"));
    struct submission_row row = run_submission(s, SLICE("ann"), id, SLICE("{}"), 5);
    assert_true(slice_is(row.key, "nightly@2027-01-01T01:00:00Z"));
    assert_true(slice_is(row.source, "schedule"));
    assert_true(slice_is(row.workflow, "close-books"));
    assert_true(slice_is(row.priority, "7"));
    assert_true(slice_is(row.reply_to, "https://x/"));
    assert_true(slice_is(row.tags, "{\"a\":\"b\"}"));
    assert_true(slice_is(row.submitter, "ann"));
    assert_true(slice_is(row.input, "{}"));
    assert_int_equal(row.submitted_at, 5);
    schedule_free(s);
}

/* Another version was stored by a node that does not know the column. */
static void a_person_is_of_one_version(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct schedule_row row = {.version = 12};
    (void)state;

    assert_null(schedule_person(&row).ptr);
    row.person = schedule_person_text(12, SLICE("ann"), &a);
    assert_true(slice_is(row.person, "12 ann"));
    assert_true(slice_is(schedule_person(&row), "ann"));
    row.version = 13;
    assert_null(schedule_person(&row).ptr);
    row.version = 1;
    assert_null(schedule_person(&row).ptr);
    row.person = SLICE("1 ");
    assert_null(schedule_person(&row).ptr);
    assert_null(schedule_person_text(1, SLICE_NONE, &a).ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_have_a_place),
        cmocka_unit_test(all_mistakes_are_named_at_once),
        cmocka_unit_test(paths_that_are_never_there_are_warned_of),
        cmocka_unit_test(moments_come_in_their_order),
        cmocka_unit_test(a_spread_is_the_same_for_all_moments_of_a_schedule),
        cmocka_unit_test(inputs_know_the_moment),
        cmocka_unit_test(a_failing_input_says_so),
        cmocka_unit_test(submissions_have_what_the_schedule_says),
        cmocka_unit_test(a_person_is_of_one_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
