/* Tests of the exact bytes that a terminal gets: cleaned text, cut lines, columns, colours and
 * the progress bar. How a terminal shows a redrawn view is tested by tests/e2e/live_test.py. */

#include "base/test.h"

#include <fcntl.h>
#include <locale.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/terminal/term.h"

static struct term terminal(bool utf8, bool colors, int width)
{
    return (struct term){
        .fd = 1, .live = true, .colors = colors, .utf8 = utf8, .width = width, .height = 24};
}

static void utf8_locale(void)
{
    setenv("LC_ALL", "C.UTF-8", 1);
    assert_non_null(setlocale(LC_CTYPE, ""));
}

static void no_control_character_gets_through(void **state)
{
    static const struct {
        const char *text, *shown;
        int width;
    } cases[] = {
        {"plain", "plain", 5},
        {"two\nlines\tand\rmore", "two lines and more", 18},
        {"\x1b[31mred\x1b[0m", "?[31mred?[0m", 12},
        {"\x1b]0;title\x07", "?]0;title?", 10},
        {"\xc2\x9b"
         "31mred",
         "?31mred", 7}, /* C1: the same in one character */
        {"\x9b"
         "31m",
         "?31m", 4}, /* and in one byte */
        {"\x7f\x08\x0e", "???", 3},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", 4},
        {"\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac", 4}, /* two columns each */
        {"e\xcc\x81", "e\xcc\x81", 1},                               /* a combining accent */
        {"a\xe2\x80\xae"
         "b",
         "a?b", 3}, /* right to left from here */
        {"a\xe2\x80\x8b"
         "b",
         "a?b", 3},                                                                /* no width */
        {"\xc0\xaf \xed\xa0\x80 \xf5\x80\x80\x80 \xe6\x97", "?? ??? ???? ??", 14}, /* bad UTF-8 */
    };
    struct term t = terminal(true, true, 80);
    (void)state;

    utf8_locale();
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        term_clean(&t, &b, slice_of(cases[i].text));
        CHECK(slice_is(buf_view(&b), cases[i].shown), "%zu: \"%s\"", i, b.ptr);
        CHECK(term_width(&t, buf_view(&b)) == cases[i].width, "%zu: %d", i,
              term_width(&t, buf_view(&b)));
    }
}

static void without_utf8_what_is_beyond_ascii_is_a_question_mark(void **state)
{
    struct term t = terminal(false, false, 80);
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf piped = {0};
    (void)state;

    term_clean(&t, &b, SLICE("gr\xc3\xbc\xc3\x9f"));
    CHECK(slice_is(buf_view(&b), "gr??"), "%s", b.ptr);
    t.live = false; /* widths do not matter there */
    term_clean(&t, &piped, SLICE("gr\xc3\xbc\x1b"));
    CHECK(slice_is(buf_view(&piped), "gr\xc3\xbc?"), "%s", piped.ptr);
}

static void lines_are_cut_at_the_width(void **state)
{
    struct term t = terminal(true, false, 10);
    CLEANUP(buf_fini) struct buf b = {0};
    struct line l = line_begin(&t, &b);
    (void)state;

    utf8_locale();
    line_text(&l, LOOK_PLAIN, SLICE("0123456789"));
    line_end(&l);
    line_text(&l, LOOK_PLAIN, SLICE("01234567890"));
    line_text(&l, LOOK_PLAIN, SLICE("never"));
    line_end(&l);
    line_text(&l, LOOK_PLAIN, SLICE("12345678\xe6\x97\xa5")); /* just fits */
    line_end(&l);
    line_text(&l, LOOK_PLAIN, SLICE("123456789\xe6\x97\xa5")); /* half of it would */
    line_end(&l);
    CHECK(slice_is(buf_view(&b), "0123456789\n012345678…\n12345678日\n123456789…\n"), "%s", b.ptr);
}

static void cells_have_their_columns(void **state)
{
    struct term t = terminal(true, false, 40);
    CLEANUP(buf_fini) struct buf b = {0};
    struct line l = line_begin(&t, &b);
    (void)state;

    utf8_locale();
    line_cell(&l, LOOK_PLAIN, SLICE("a"), 4);
    line_cell(&l, LOOK_PLAIN, SLICE("日本語"), 4);
    line_cell(&l, LOOK_PLAIN, SLICE("|"), 1);
    line_cell_right(&l, LOOK_PLAIN, SLICE("17"), 5);
    line_to(&l, 16);
    line_text(&l, LOOK_PLAIN, SLICE("."));
    line_cell(&l, LOOK_PLAIN, SLICE("blanks at the end go"), 30);
    line_end(&l);
    CHECK(slice_is(buf_view(&b), "a   日… |   17  .blanks at the end go\n"), "%s", b.ptr);
}

static void colours_take_no_columns_and_end(void **state)
{
    struct term t = terminal(true, true, 6);
    CLEANUP(buf_fini) struct buf b = {0};
    struct line l = line_begin(&t, &b);
    (void)state;

    utf8_locale();
    line_text(&l, LOOK_GOOD, SLICE("ok"));
    line_text(&l, LOOK_PLAIN, SLICE(" "));
    line_text(&l, LOOK_BAD, SLICE("too much"));
    line_end(&l);
    CHECK(slice_is(buf_view(&b), "\x1b[32mok\x1b[0m \x1b[31mto…\x1b[0m\n"), "%s", b.ptr);
    CHECK(term_width(&t, (struct slice){b.ptr, b.len - 1}) == 6, "%s", b.ptr);
}

static void check_duration(int64_t ms, const char *text)
{
    CLEANUP(buf_fini) struct buf b = {0};

    people_duration(&b, ms);
    CHECK(slice_is(buf_view(&b), text), "%" PRId64 ": %s", ms, b.ptr);
}

static void durations_are_short(void **state)
{
    (void)state;
    check_duration(-5, "0ms");
    check_duration(999, "999ms");
    check_duration(3299, "3.2s");
    check_duration(59999, "59s");
    check_duration(250000, "4m 10s");
    check_duration(INT64_C(125) * 60000, "2h 05m");
    check_duration(INT64_C(76) * 3600000, "3d 4h");
    check_duration(INT64_MAX, "106751991167d 7h");
}

static void times_of_today_have_no_date(void **state)
{
    const int64_t noon = INT64_C(1769860800000); /* 2026-01-31T12:00:00Z */
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    setenv("TZ", "UTC", 1);
    tzset();
    people_time(&b, noon - 1000, noon);
    buf_byte(&b, ' ');
    people_time(&b, noon - INT64_C(86400000), noon);
    buf_byte(&b, ' ');
    people_time(&b, 0, noon);
    CHECK(slice_is(buf_view(&b), "11:59:59 2026-01-30 12:00 -"), "%s", b.ptr);
    buf_clear(&b);
    setenv("TZ", "UTC-5", 1); /* five hours east */
    tzset();
    people_time(&b, noon, noon);
    CHECK(slice_is(buf_view(&b), "17:00:00"), "%s", b.ptr);
}

static void bytes_and_rates_are_short(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    people_bytes(&b, 512);
    buf_byte(&b, '|');
    people_bytes(&b, 3500);
    buf_byte(&b, '|');
    people_bytes(&b, 120 << 20);
    buf_byte(&b, '|');
    people_bytes(&b, INT64_C(3) << 40);
    buf_byte(&b, '|');
    people_rate(&b, 0);
    buf_byte(&b, '|');
    people_rate(&b, 0.34);
    buf_byte(&b, '|');
    people_rate(&b, 1234.5);
    CHECK(slice_is(buf_view(&b), "512 B|3.4 KiB|120 MiB|3.0 TiB|0|0.3|1234"), "%s", b.ptr);
}

static void progress_tells_how_far_it_is(void **state)
{
    struct term_progress p = {.what = "restore", .unit = PROGRESS_BYTES, .total = 4 << 20};
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    term_progress_write(&p, &b, 1 << 20, 2000);
    CHECK(slice_is(buf_view(&b), "restore  [#####---------------]  25 %  1.0 MiB of 4.0 MiB  "
                                 "512 KiB/s  6.0s left"),
          "%s", b.ptr);
    buf_clear(&b);
    term_progress_write(&p, &b, 4 << 20, 200); /* no rate yet */
    CHECK(slice_is(buf_view(&b), "restore  [####################] 100 %  4.0 MiB of 4.0 MiB"), "%s",
          b.ptr);
    buf_clear(&b);
    p = (struct term_progress){.what = "submit", .unit = PROGRESS_ITEMS};
    term_progress_write(&p, &b, 5000, 2000);
    CHECK(slice_is(buf_view(&b), "submit  5000  2500/s"), "%s", b.ptr);
}

static void a_stream_that_is_no_terminal_is_left_in_peace(void **state)
{
    int pipes[2];
    struct term t;
    (void)state;

    assert_int_equal(pipe(pipes), 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    term_begin(&t, pipes[1], TERM_AUTO);
    CHECK(!t.live && !t.colors && t.width == 80 && t.height == 24, "a pipe");
    term_begin(&t, pipes[1], TERM_ALWAYS);
    CHECK(!t.live && t.colors, "a pipe, by demand");
    close(pipes[0]);
    close(pipes[1]);
}

static void a_terminal_is_coloured_unless_it_should_not(void **state)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    struct term t;
    (void)state;

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0, "a pty");
    int fd = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(fd >= 0, "its other end");
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    term_begin(&t, fd, TERM_AUTO);
    CHECK(t.live && t.colors, "a terminal");
    setenv("NO_COLOR", "", 1);
    term_begin(&t, fd, TERM_AUTO);
    CHECK(t.live && t.colors, "empty is as if it were not there");
    setenv("NO_COLOR", "1", 1);
    term_begin(&t, fd, TERM_AUTO);
    CHECK(t.live && !t.colors, "NO_COLOR");
    term_begin(&t, fd, TERM_ALWAYS);
    CHECK(t.live && t.colors, "but this time");
    unsetenv("NO_COLOR");
    term_begin(&t, fd, TERM_NEVER);
    CHECK(t.live && !t.colors, "never");
    setenv("TERM", "dumb", 1);
    term_begin(&t, fd, TERM_AUTO);
    CHECK(!t.live && !t.colors, "dumb");
    unsetenv("TERM");
    term_begin(&t, fd, TERM_AUTO);
    CHECK(!t.live && !t.colors, "of no known kind");
    close(fd);
    close(master);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_control_character_gets_through),
        cmocka_unit_test(without_utf8_what_is_beyond_ascii_is_a_question_mark),
        cmocka_unit_test(lines_are_cut_at_the_width),
        cmocka_unit_test(cells_have_their_columns),
        cmocka_unit_test(colours_take_no_columns_and_end),
        cmocka_unit_test(durations_are_short),
        cmocka_unit_test(times_of_today_have_no_date),
        cmocka_unit_test(bytes_and_rates_are_short),
        cmocka_unit_test(progress_tells_how_far_it_is),
        cmocka_unit_test(a_stream_that_is_no_terminal_is_left_in_peace),
        cmocka_unit_test(a_terminal_is_coloured_unless_it_should_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
