/* Writes what became of tests, for people, as TAP and as JUnit's XML (report.h). Pure: into
 * buffers. */

#include "testing/report.h"

#include "base/when.h"
#include "picture/xml.h"

static void write_place(struct buf *b, const struct trial *t, uint32_t at)
{
    uint32_t line = 0;
    uint32_t column = 0;

    suite_place(t->suite, at, &line, &column);
    buf_fmt(b, "%s:%u:%u", t->suite->file, line, column);
}

static void write_problems(struct buf *b, const struct trial *t, const char *indent)
{
    for (size_t i = 0; i < t->problems.count; i++) {
        buf_str(b, indent);
        write_place(b, t, t->problems.list[i].at);
        buf_fmt(b, ": %.*s\n", SLICE_ARG(t->problems.list[i].text));
    }
}

/* ---- for people ---- */

void report_timeline(struct buf *b, const struct trial *t)
{
    timeline_write(&t->timeline, "    ", b);
}

void report_failure(struct buf *b, const struct trial *t)
{
    buf_str(b, "FAILED ");
    write_place(b, t, t->test->at);
    buf_fmt(b, ": %s\n", t->test->name);
    write_problems(b, t, "  ");
    buf_str(b, "  what happened:\n");
    report_timeline(b, t);
}

/* ---- TAP ---- */

void report_tap_begin(struct buf *b)
{
    buf_str(b, "TAP version 13\n");
}

/* A description is one line, in which # would begin a directive. */
static void tap_name(struct buf *b, const char *name)
{
    for (const char *p = name; *p; p++) {
        if (*p == '#' || *p == '\\')
            buf_byte(b, '\\');
        buf_byte(b, (unsigned char)*p < ' ' ? ' ' : *p);
    }
}

void report_tap(struct buf *b, const struct trial *t, size_t number)
{
    buf_fmt(b, "%s %zu - ", t->problems.count > 0 ? "not ok" : "ok", number);
    tap_name(b, t->suite->file);
    buf_str(b, ": ");
    tap_name(b, t->test->name);
    buf_byte(b, '\n');
    if (t->problems.count == 0)
        return;
    buf_str(b, "  ---\n  problems:\n");
    for (size_t i = 0; i < t->problems.count; i++) {
        CLEANUP(buf_fini) struct buf line = {0};
        write_place(&line, t, t->problems.list[i].at);
        buf_fmt(&line, ": %.*s", SLICE_ARG(t->problems.list[i].text));
        buf_str(b, "    - ");
        json_string(b, buf_view(&line));
        buf_byte(b, '\n');
    }
    buf_str(b, "  ...\n");
}

void report_tap_broken(struct buf *b, const char *file, size_t number)
{
    buf_fmt(b, "not ok %zu - ", number);
    tap_name(b, file);
    buf_str(b, ": the file has mistakes\n");
}

void report_tap_end(struct buf *b, size_t count)
{
    buf_fmt(b, "1..%zu\n", count);
}

/* ---- JUnit ---- */

void junit_fini(struct junit *j)
{
    buf_fini(&j->done);
    buf_fini(&j->suite);
}

void junit_case(struct junit *j, const struct trial *t)
{
    CLEANUP(buf_fini) struct buf text = {0};
    uint32_t line = 0;
    uint32_t column = 0;
    struct buf *b = &j->suite;

    suite_place(t->suite, t->test->at, &line, &column);
    j->tests++;
    buf_str(b, "    <testcase name=\"");
    xml_text(b, slice_of(t->test->name));
    buf_str(b, "\" classname=\"");
    xml_text(b, slice_of(t->suite->file));
    buf_str(b, "\" file=\"");
    xml_text(b, slice_of(t->suite->file));
    buf_fmt(b, "\" line=\"%u\" time=\"0\"", line);
    if (t->problems.count == 0) {
        buf_str(b, "/>\n");
        return;
    }
    j->failures++;
    buf_str(b, ">\n      <failure message=\"");
    xml_text(b, t->problems.list[0].text);
    buf_str(b, "\">");
    write_problems(&text, t, "");
    report_timeline(&text, t);
    xml_text(b, buf_view(&text));
    buf_str(b, "</failure>\n    </testcase>\n");
}

void junit_suite(struct junit *j, const char *file)
{
    buf_str(&j->done, "  <testsuite name=\"");
    xml_text(&j->done, slice_of(file));
    buf_fmt(&j->done, "\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" skipped=\"0\" time=\"0\">\n",
            j->tests, j->failures);
    buf_slice(&j->done, buf_view(&j->suite));
    buf_str(&j->done, "  </testsuite>\n");
    j->all_tests += j->tests;
    j->all_failures += j->failures;
    j->tests = j->failures = 0;
    buf_clear(&j->suite);
}

void junit_broken(struct junit *j, const char *file)
{
    j->errors++;
    buf_str(&j->done, "  <testsuite name=\"");
    xml_text(&j->done, slice_of(file));
    buf_str(&j->done, "\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" time=\"0\">\n"
                      "    <testcase name=\"the file\" classname=\"");
    xml_text(&j->done, slice_of(file));
    buf_str(&j->done, "\" time=\"0\">\n"
                      "      <error message=\"the file, or a definition of it, has mistakes\"/>\n"
                      "    </testcase>\n  </testsuite>\n");
}

void junit_write(const struct junit *j, struct buf *b)
{
    buf_fmt(b,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites tests=\"%zu\" failures=\"%zu\" errors=\"%zu\">\n",
            j->all_tests + j->errors, j->all_failures, j->errors);
    buf_slice(b, buf_view(&j->done));
    buf_str(b, "</testsuites>\n");
}
