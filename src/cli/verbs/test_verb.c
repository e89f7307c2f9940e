/* `intact test`: runs the test files of workflows (src/testing) without a server, and tells what
 * failed. test_files.c finds and reads them. */

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "cli/verbs/test_files.h"
#include "picture/picture.h"
#include "testing/report.h"
#include "testing/update.h"

struct session {
    bool is_tap, is_verbose, updates, covers, draws;
    const char *name; /* only tests whose name contains this; NULL: all */
    struct buf out;   /* for standard output */
    struct junit junit;
    struct picture picture; /* of what the tests reached */
    struct file_list read;  /* all files that were read */
    size_t number, passed, failed, missed;
    size_t left_asking; /* tests of the present file with "?" that failed */
    bool has_mistakes, is_unwritten;
};

static void flush(struct session *s)
{
    print_text(stdout, buf_view(&s->out));
    (void)fflush(stdout);
    buf_clear(&s->out);
}

/* ---- one test ---- */

static void tell(struct session *s, const struct trial *t)
{
    bool failed = t->problems.count > 0;

    s->number++;
    s->passed += !failed;
    s->failed += failed;
    junit_case(&s->junit, t);
    if (s->is_tap) {
        report_tap(&s->out, t, s->number);
    } else if (failed) {
        report_failure(&s->out, t);
    } else if (s->is_verbose) {
        buf_fmt(&s->out, "passed %s: %s\n", t->suite->file, t->test->name);
        report_timeline(&s->out, t);
    }
    flush(s);
}

static void run_test(struct session *s, const struct suite *suite, const struct test_case *c,
                     struct coverage *coverage, struct update *update)
{
    struct trial t;

    trial_open(&t, suite, c, coverage);
    t.fills_in = s->updates;
    trial_run(&t);
    if (s->updates && update_is_asked(c) && t.problems.count > 0)
        s->left_asking++;
    else if (s->updates && t.ended_at != 0)
        update_take(update, &t);
    tell(s, &t);
    trial_close(&t);
}

/* ---- one file ---- */

static void tell_update(struct session *s, const struct suite *suite, size_t filled)
{
    if (s->is_tap)
        return;
    if (filled > 0)
        buf_fmt(&s->out, "%s: %zu value%s filled in\n", suite->file, filled,
                filled == 1 ? "" : "s");
    if (s->left_asking > 0)
        buf_fmt(&s->out, "%s: \"?\" is not filled in where a test fails (%zu)\n", suite->file,
                s->left_asking);
}

static void write_update(struct session *s, const struct suite *suite, struct update *u)
{
    CLEANUP(buf_fini) struct buf text = {0};
    size_t filled = update_write(u, suite, &text);

    if (filled > 0 && !test_file_write(suite->file, buf_view(&text))) {
        s->is_unwritten = true;
        filled = 0;
    }
    tell_update(s, suite, filled);
    s->left_asking = 0;
}

static bool is_wanted(const struct session *s, const struct test_case *c)
{
    return !s->name || strstr(c->name, s->name);
}

static void run_suite(struct session *s, const struct suite *suite)
{
    struct coverage coverage;
    struct update update = {0};
    size_t passed = s->passed;
    size_t failed = s->failed;

    coverage_open(&coverage, suite);
    for (size_t i = 0; i < suite->test_count; i++)
        if (is_wanted(s, &suite->tests[i]))
            run_test(s, suite, &suite->tests[i], &coverage, &update);
    junit_suite(&s->junit, suite->file);
    write_update(s, suite, &update);
    if (!s->is_tap)
        buf_fmt(&s->out, "%s: %zu passed, %zu failed\n", suite->file, s->passed - passed,
                s->failed - failed);
    if (s->covers && !s->is_tap)
        s->missed += coverage_write(&coverage, &s->out);
    if (s->draws)
        coverage_draw(&coverage, slice_of(suite->file), &s->picture);
    flush(s);
    update_fini(&update);
    coverage_close(&coverage);
}

/* Its mistakes were printed. A reader of reports learns of it, too. */
static void tell_broken(struct session *s, const char *file)
{
    s->has_mistakes = true;
    junit_broken(&s->junit, file);
    if (s->is_tap)
        report_tap_broken(&s->out, file, ++s->number);
}

static void run_files(struct session *s, const struct file_list *files)
{
    for (size_t i = 0; i < files->count; i++) {
        struct suite *suite = test_file_load(files->list[i].path, &s->read);
        if (suite)
            run_suite(s, suite);
        else
            tell_broken(s, files->list[i].path);
        suite_free(suite);
    }
}

/* ---- all of them ---- */

static bool write_junit(const struct session *s, const char *file)
{
    CLEANUP(buf_fini) struct buf b = {0};

    junit_write(&s->junit, &b);
    return test_file_write(file, buf_view(&b));
}

static bool write_picture(const struct session *s, const char *file)
{
    CLEANUP(buf_fini) struct buf b = {0};

    picture_write(&s->picture, SLICE("What the tests reached"), &b);
    return test_file_write(file, buf_view(&b));
}

static int end_of(const struct session *s)
{
    if (s->has_mistakes || s->is_unwritten)
        return CLI_USAGE;
    return s->failed > 0 ? CLI_NOT_WELL : CLI_OK;
}

static int run_once(const struct invocation *in, const struct file_list *files,
                    struct file_list *read)
{
    struct session s = {.is_tap = given(in, "tap"),
                        .is_verbose = given(in, "verbose"),
                        .updates = given(in, "update"),
                        .covers = given(in, "coverage"),
                        .draws = given(in, "coverage-picture"),
                        .name = given(in, "name")};
    const char *junit = given(in, "junit");

    if (s.is_tap)
        report_tap_begin(&s.out);
    run_files(&s, files);
    if (s.is_tap)
        report_tap_end(&s.out, s.number);
    else if (files->count != 1)
        buf_fmt(&s.out, "%zu passed, %zu failed\n", s.passed, s.failed);
    flush(&s);
    s.is_unwritten |= junit && !write_junit(&s, junit);
    s.is_unwritten |= s.draws && !write_picture(&s, given(in, "coverage-picture"));
    int end = end_of(&s);
    if (s.number == 0 && s.name && end == CLI_OK)
        end = verb_failed(in, CLI_USAGE, "no test has \"%s\" in its name", s.name);
    buf_fini(&s.out);
    junit_fini(&s.junit);
    picture_fini(&s.picture);
    *read = s.read;
    return end;
}

static bool gather(const struct invocation *in, struct file_list *ret)
{
    if (in->word_count == 0)
        return test_files_find(".", ret);
    for (size_t i = 0; i < in->word_count; i++)
        file_list_add(ret, in->words[i]);
    return true;
}

static int run_always(const struct invocation *in)
{
    for (;;) {
        struct file_list files = {0};
        struct file_list read = {0};
        bool ok = gather(in, &files);
        if (ok)
            (void)run_once(in, &files, &read);
        bool goes_on = ok && test_files_wait(&read, in->word_count == 0 ? "." : NULL, files.count);
        file_list_fini(&files);
        file_list_fini(&read);
        if (!goes_on)
            return ok ? CLI_OK : CLI_USAGE;
        print_line(stdout, "---");
        putchar('\n');
    }
}

static int run(struct invocation *in)
{
    struct file_list files = {0};
    struct file_list read = {0};
    int end = CLI_USAGE;

    log_level_set(LOG_OFF); /* what a test does to breakers is no news */
    if (given(in, "watch"))
        return run_always(in);
    if (gather(in, &files)) {
        if (files.count == 0)
            end = verb_failed(in, CLI_USAGE, "there is no *.test.yaml below this folder");
        else
            end = run_once(in, &files, &read);
    }
    file_list_fini(&files);
    file_list_fini(&read);
    return end;
}

static const struct flag flags[] = {
    {.name = "name", .value = "TEXT", .help = "only tests that have TEXT in their name"},
    {.name = "coverage", .help = "what of the definitions no test reached"},
    {.name = "coverage-picture",
     .value = "FILE",
     .kind = WORD_FILE,
     .help = "also draw the workflows as SVG, with what no test reached"},
    {.name = "update", .help = "fill in what stands as \"?\" in `expect`"},
    {.name = "watch", .help = "run again whenever a file changes"},
    {.name = "verbose", .help = "what happened in tests that passed, too"},
    {.name = "tap", .help = "print TAP, which test harnesses read"},
    {.name = "junit",
     .value = "FILE",
     .kind = WORD_FILE,
     .help = "also write JUnit's XML, which CI servers read"},
    {0},
};

const struct verb verb_test = {
    .name = "test",
    .summary = "test workflows without a server",
    .about = "Runs test files beside workflow definitions: the real scheduler, supervisor and "
             "expressions, in memory and virtual time. Each test says what agents answer, what "
             "happens from outside, and what is expected. A workflow of a month takes "
             "milliseconds.\n\nWithout FILE: all *.test.yaml below the current folder.",
    .arguments = {{.name = "FILE", .kind = WORD_FILE, .optional = true, .repeats = true}},
    .flags = flags,
    .examples = {{"intact test", "all tests below this folder"},
                 {"intact test order.test.yaml --verbose", "what happens in each"},
                 {"intact test --coverage", "what they miss"},
                 {"intact test --coverage-picture coverage.svg", "the same as a picture"},
                 {"intact test --junit report.xml", "for a CI server"}},
    .exits = "1 if a test failed",
    .is_local = true,
    .run = run,
};
