/* `intact why`: shows the server's reasons why a task waits, with times in the reader's time zone
 * and the commands that help. The server finds the reasons (src/why); text from agents is cleaned
 * before it is shown. */

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/when.h"
#include "cli/client/client.h"
#include "cli/terminal/term.h"
#include "cli/verbs.h"

enum { WIDTH_LEAST = 20, WIDTH_MOST = 79 };

struct report {
    struct term term;
    int64_t now; /* the server's */
    struct buf b;
};

/* ---- lines ---- */

static struct line begin(struct report *t, int indent)
{
    struct line l = line_begin(&t->term, &t->b);

    l.width = INT32_MAX / 2; /* the terminal wraps long lines: nothing is cut */
    line_to(&l, indent);
    return l;
}

static void put_line(struct report *t, int indent, enum term_look look, struct slice text)
{
    struct line l = begin(t, indent);

    line_text(&l, look, text);
    line_end(&l);
}

/* Removes as many words from *text as fit into `width`, but at least one. */
static struct slice take_words(const struct term *t, struct slice *text, int width)
{
    size_t taken = 0;

    for (size_t at = 0; at < text->len;) {
        const char *stop = memchr(text->ptr + at, ' ', text->len - at);
        size_t end = stop ? (size_t)(stop - text->ptr) : text->len;
        if (taken > 0 && term_width(t, (struct slice){text->ptr, end}) > width)
            break;
        taken = end;
        at = end + 1;
    }
    struct slice words = {text->ptr, taken};
    while (taken < text->len && text->ptr[taken] == ' ')
        taken++;
    *text = (struct slice){text->ptr + taken, text->len - taken};
    return words;
}

/* The text may be an agent's: it is cleaned, so that it cannot move the cursor or begin a line. */
static void paragraph(struct report *t, int indent, enum term_look look, struct slice text)
{
    CLEANUP(buf_fini) struct buf clean = {0};
    int room = t->term.live && t->term.width <= WIDTH_MOST ? t->term.width - 1 : WIDTH_MOST;
    int width = (room > WIDTH_LEAST ? room : WIDTH_LEAST) - indent;

    term_clean(&t->term, &clean, text);
    struct slice left = buf_view(&clean);
    while (left.len > 0)
        put_line(t, indent, look, take_words(&t->term, &left, width));
}

/* ---- times ---- */

/* "since 10:32:07 (4m 10s ago)", "until 10:40:00 (in 12s)" */
static void put_time(struct report *t, struct buf *b, const struct json *j, const char *key,
                     const char *word)
{
    int64_t at = 0;

    if (!time_parse(json_get_text(j, key), &at))
        return;
    buf_fmt(b, "%s%s ", b->len ? ", " : "", word);
    people_time(b, at, t->now);
    buf_str(b, at > t->now ? " (in " : " (");
    people_duration(b, at > t->now ? at - t->now : t->now - at);
    buf_str(b, at > t->now ? ")" : " ago)");
}

static void put_times(struct report *t, int indent, const struct json *reason)
{
    CLEANUP(buf_fini) struct buf times = {0};

    put_time(t, &times, reason, "since", "since");
    put_time(t, &times, reason, "until", "until");
    if (times.len)
        put_line(t, indent, LOOK_FAINT, buf_view(&times));
}

/* ---- reasons ---- */

static struct slice next_line(struct slice *text)
{
    const char *end = memchr(text->ptr, '\n', text->len);
    size_t n = end ? (size_t)(end - text->ptr) : text->len;
    struct slice line = {text->ptr, n};

    n += end ? 1 : 0;
    *text = (struct slice){text->ptr + n, text->len - n};
    return line;
}

static void put_moves(struct report *t, int indent, struct slice moves)
{
    if (!moves.len)
        return;
    paragraph(t, indent, LOOK_PLAIN, next_line(&moves));
    while (moves.len > 0) /* commands, to copy as they are */
        put_line(t, indent + 2, LOOK_STRONG, next_line(&moves));
}

/* The look for good, bad and neutral reasons. */
static enum term_look look_of(const struct json *reason)
{
    static const char *const bad[] = {"pivot-unclear", "undo-failed", "failed",
                                      "deadline",      "stopped",     "store-trouble"};
    struct slice kind = json_get_text(reason, "kind");

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (slice_is(kind, bad[i]))
            return LOOK_BAD;
    return term_state_look(kind); /* "processed" and "compensated" are also states */
}

/* The summary contains the first reason. */
static void put_why(struct report *t, const struct json *why)
{
    const struct json *reasons = json_get(why, "reasons");
    const struct json *first = reasons ? reasons->child : NULL;

    paragraph(t, 0, look_of(first), json_get_text(why, "summary"));
    for (const struct json *r = first; r; r = r->next) {
        int indent = r == first ? 2 : 4;
        if (r != first) {
            put_line(t, 0, LOOK_PLAIN, SLICE_NONE);
            if (r == first->next)
                put_line(t, 0, LOOK_PLAIN, SLICE("At the same time:"));
            paragraph(t, 2, look_of(r), json_get_text(r, "text"));
        }
        put_times(t, indent, r);
        put_moves(t, indent, json_get_text(r, "moves"));
    }
}

/* ---- messages and alerts ---- */

static void put_head(struct report *t, const char *text)
{
    put_line(t, 0, LOOK_PLAIN, SLICE_NONE);
    put_line(t, 0, LOOK_PLAIN, slice_of(text));
}

/* "o-17/12/error for http://shop/: 3 tries failed, the last with: connection refused" */
static void put_message(struct report *t, const struct json *m)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice error = json_get_text(m, "error");
    int64_t tries = json_get_int(m, "tries", 0);
    bool dead = slice_is(json_get_text(m, "state"), "dead");

    buf_fmt(&b, "%.*s for %.*s: ", SLICE_ARG(json_get_text(m, "id")),
            SLICE_ARG(json_get_text(m, "target")));
    if (tries > 0)
        buf_fmt(&b, "%" PRId64 " %s failed%s", tries, tries == 1 ? "attempt" : "attempts",
                error.len ? ", the last one with: " : "");
    else
        buf_str(&b, error.len ? "it waits: " : "it is being delivered");
    buf_slice(&b, error);
    buf_str(&b, dead ? ". It is a dead letter: it is not sent again." : ".");
    paragraph(t, 2, dead ? LOOK_BAD : LOOK_PLAIN, buf_view(&b));
    buf_clear(&b);
    put_time(t, &b, m, "created_at", "since");
    put_time(t, &b, m, "retry_at", "next try");
    put_line(t, 4, LOOK_FAINT, buf_view(&b));
}

static void put_messages(struct report *t, const struct json *why)
{
    const struct json *messages = json_get(why, "messages");
    CLEANUP(buf_fini) struct buf command = {0};

    if (!messages || !messages->child)
        return;
    put_head(t, "Status messages that were not delivered:");
    for (const struct json *m = messages->child; m; m = m->next)
        put_message(t, m);
    if (json_get_bool(why, "more_messages", false))
        paragraph(t, 2, LOOK_PLAIN, SLICE("There are more. To list them: intact outbox list."));
    buf_fmt(&command, "intact outbox retry --task %.*s --reason '...'",
            SLICE_ARG(json_get_text(why, "task")));
    paragraph(t, 2, LOOK_PLAIN, SLICE("To send them again when the target accepts messages:"));
    put_line(t, 4, LOOK_STRONG, buf_view(&command));
}

static void put_alert(struct report *t, const struct json *al)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice by = json_get_text(al, "acknowledged_by");

    buf_fmt(&b, "%.*s: %.*s.", SLICE_ARG(json_get_text(al, "id")),
            SLICE_ARG(json_get_text(al, "summary")));
    if (by.len)
        buf_fmt(&b, " Acknowledged by %.*s: %.*s", SLICE_ARG(by),
                SLICE_ARG(json_get_text(al, "acknowledged_why")));
    paragraph(t, 2, by.len ? LOOK_PLAIN : LOOK_BAD, buf_view(&b));
    buf_clear(&b);
    put_time(t, &b, al, "opened_at", "since");
    put_line(t, 4, LOOK_FAINT, buf_view(&b));
    if (by.len)
        return;
    buf_clear(&b);
    buf_fmt(&b, "intact alert acknowledge %.*s --reason '...'", SLICE_ARG(json_get_text(al, "id")));
    put_line(t, 4, LOOK_STRONG, buf_view(&b));
}

static void put_alerts(struct report *t, const struct json *alerts)
{
    if (!alerts || !alerts->child)
        return;
    put_head(t, "Open alerts that concern the task:");
    for (const struct json *al = alerts->child; al; al = al->next)
        put_alert(t, al);
}

static void print_why(const struct invocation *in, const struct intact_client *c,
                      const struct json *why)
{
    struct report t = {.now = clock_wall_ms() + client_clock_offset(c)};
    enum term_color color = TERM_AUTO;

    (void)given_color(in, &color); /* checked when it was read */
    term_begin(&t.term, STDOUT_FILENO, color);
    put_why(&t, why);
    put_messages(&t, why);
    put_alerts(&t, json_get(why, "alerts"));
    (void)fwrite(t.b.ptr, 1, t.b.len, stdout); /* main() checks for write errors */
    buf_fini(&t.b);
}

static int show(const struct invocation *in, const struct intact_client *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *why = client_answer(c, &a);

    if (!why)
        return CLI_NOT_WELL;
    if (given(in, "json"))
        client_print_body(c);
    else
        print_why(in, c, why);
    return CLI_OK;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};
    struct intact_client *c = client_begin(in);

    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(in->words[0]));
    buf_str(&path, "/why");
    enum intact_status status = intact_client_call(c, "GET", path.ptr, NULL, NULL, 0);
    int end = status == INTACT_OK ? show(in, c) : client_complain(c, status);
    intact_client_free(c);
    return end;
}

const struct verb verb_why = {
    .name = "why",
    .summary = "explain why a task does not proceed",
    .about = "Explains what a task waits for, since when, until when, and which "
             "commands would change that, most important first. Then it lists "
             "undelivered status messages of the task, and open alerts that concern "
             "it.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}},
    .examples = {{"intact why o-17", "why it does not proceed"},
                 {"intact why o-17 --json | jq -r '.reasons[].kind'", "for programs"}},
    .exits = "1 if there is no such task",
    .run = run,
};
