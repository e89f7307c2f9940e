/* Writes the verdicts of a check as text, JSON and JUnit XML (check.h). Data of the agent may
 * contain anything: here it becomes one line of UTF-8 without control characters.
 * cli/verbs/agent_check.c is the caller. */

#include "agents/check/check.h"
#include "base/when.h"
#include "json/json.h"
#include "json/text.h"

static const char *end_text(enum check_end end)
{
    switch (end) {
    case CHECK_OK:
        return "ok";
    case CHECK_WRONG:
        return "wrong";
    case CHECK_SKIPPED:
        return "skipped";
    }
    UNREACHABLE();
}

/* The agent's data may contain anything: makes it one line of UTF-8 without terminal controls. */
static void clean(struct buf *b, const char *text)
{
    struct slice s = slice_of(text);

    while (s.len > 0) {
        size_t good = text_utf8_end(s);
        for (size_t i = 0; i < good; i++) {
            bool is_control = (unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f;
            buf_add(b, is_control ? " " : s.ptr + i, 1);
        }
        if (good < s.len)
            buf_byte(b, '?');
        good += good < s.len;
        s = (struct slice){s.ptr + good, s.len - good};
    }
}

void check_write_text(struct buf *b, const struct check_verdict *v)
{
    buf_fmt(b, "%-8s %s", end_text(v->end), v->scenario->name);
    if (v->end == CHECK_SKIPPED) {
        buf_str(b, ": ");
        clean(b, v->seen);
    }
    buf_byte(b, '\n');
    if (v->end != CHECK_WRONG)
        return;
    buf_fmt(b, "         an agent %s\n         expected: ", v->scenario->must);
    clean(b, v->expected);
    buf_str(b, "\n         seen: ");
    clean(b, v->seen);
    buf_fmt(b, "\n         why: %s; see \"%s\" in docs/agents.md\n", v->scenario->why,
            v->scenario->chapter);
}

static void write_member(struct buf *b, const char *key, const char *text)
{
    CLEANUP(buf_fini) struct buf one = {0};

    clean(&one, text);
    json_member_text(b, key, buf_view(&one));
}

static void write_scenario(struct buf *b, const struct check_scenario *sc)
{
    write_member(b, "name", sc->name);
    write_member(b, "level", check_level_text(sc->level));
    write_member(b, "must", sc->must);
    write_member(b, "why", sc->why);
    write_member(b, "chapter", sc->chapter);
}

void check_write_json(struct buf *b, const struct check_verdict *v)
{
    json_open(b, '{');
    write_scenario(b, v->scenario);
    write_member(b, "end", end_text(v->end));
    if (v->end == CHECK_WRONG)
        write_member(b, "expected", v->expected);
    if (v->end != CHECK_OK)
        write_member(b, v->end == CHECK_WRONG ? "seen" : "reason", v->seen);
    json_member_number(b, "took_ms", v->took_ms);
    json_close(b, '}');
}

void check_list_json(struct buf *b)
{
    json_open(b, '{');
    json_key(b, "scenarios");
    json_open(b, '[');
    for (size_t i = 0; i < check_scenario_count; i++) {
        json_open(b, '{');
        write_scenario(b, &check_scenarios[i]);
        json_close(b, '}');
    }
    json_close(b, ']');
    json_close(b, '}');
}

/* ---- JUnit ---- */

static void escape(struct buf *b, const char *text)
{
    CLEANUP(buf_fini) struct buf one = {0};

    clean(&one, text);
    for (size_t i = 0; i < one.len; i++) {
        switch (one.ptr[i]) {
        case '<':
            buf_str(b, "&lt;");
            break;
        case '>':
            buf_str(b, "&gt;");
            break;
        case '&':
            buf_str(b, "&amp;");
            break;
        case '"':
            buf_str(b, "&quot;");
            break;
        default:
            buf_byte(b, one.ptr[i]);
        }
    }
}

static void write_seconds(struct buf *b, int64_t ms)
{
    buf_fmt(b, " time=\"%d.%03d\"", (int)(ms / MS_PER_S), (int)(ms % MS_PER_S));
}

void check_write_junit(struct buf *b, const struct check_verdict *v)
{
    buf_fmt(b, "  <testcase classname=\"intact.agent\" name=\"%s\"", v->scenario->name);
    write_seconds(b, v->took_ms);
    if (v->end == CHECK_OK) {
        buf_str(b, "/>\n");
        return;
    }
    buf_str(b, v->end == CHECK_WRONG ? "><failure message=\"" : "><skipped message=\"");
    if (v->end == CHECK_WRONG) {
        buf_str(b, "expected: ");
        escape(b, v->expected);
        buf_str(b, "; seen: ");
    }
    escape(b, v->seen);
    buf_str(b, "\"/></testcase>\n");
}

void check_junit_head(struct buf *b, const struct check_sum *sum, int64_t took_ms)
{
    buf_str(b,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"intact agent check\"");
    buf_fmt(b, " tests=\"%u\" failures=\"%u\" skipped=\"%u\"", sum->ok + sum->wrong + sum->skipped,
            sum->wrong, sum->skipped);
    write_seconds(b, took_ms);
    buf_str(b, ">\n");
}

void check_junit_tail(struct buf *b)
{
    buf_str(b, "</testsuite>\n");
}
