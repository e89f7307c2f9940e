#include <stdio.h>
#include <time.h>

#include "base/when.h"
#include "cli/client.h"
#include "cli/verbs.h"

/* Why is it not getting on? The server's answer, with times as the reader's clock has them. */

enum { WIDTH = 79 };

static int64_t wall_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- words ---- */

/* What is said may be an agent's words: nothing in it moves the cursor. */
static void clean(struct buf *b, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        unsigned char next = i + 1 < text.len ? (unsigned char)text.ptr[i + 1] : 0;
        if (c == 0xc2 && next >= 0x80 && next < 0xa0) { /* C1, as UTF-8 */
            buf_byte(b, '?');
            i++;
        } else {
            buf_add(b, c < ' ' || c == 0x7f ? "?" : &text.ptr[i], 1);
        }
    }
}

/* Columns of what is UTF-8, as far as its characters take one each. */
static int columns(struct slice s)
{
    int n = 0;

    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

/* A paragraph: words, with line breaks where the line is full. */
static void paragraph(int indent, struct slice text)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int column = 0;

    clean(&b, text);
    struct slice left = buf_view(&b);
    while (left.len > 0) {
        size_t n = 0;
        while (n < left.len && left.ptr[n] != ' ')
            n++;
        struct slice word = {left.ptr, n};
        if (column > 0 && column + 1 + columns(word) > WIDTH) {
            putchar('\n');
            column = 0;
        }
        if (column == 0)
            column = printf("%*s", indent, "");
        else
            column += printf(" ");
        printf("%.*s", SLICE_ARG(word));
        column += columns(word);
        left = (struct slice){left.ptr + n, left.len - n};
        while (left.len > 0 && left.ptr[0] == ' ')
            left = (struct slice){left.ptr + 1, left.len - 1};
    }
    putchar('\n');
}

/* ---- times ---- */

/* 10:32:07 if that is today, else with its date. */
static void put_moment(struct buf *b, int64_t at, int64_t now)
{
    time_t when = (time_t)(at / 1000);
    time_t today = (time_t)(now / 1000);
    struct tm then;
    struct tm here;
    char text[40] = "?";

    if (localtime_r(&when, &then) && localtime_r(&today, &here)) {
        bool same = then.tm_year == here.tm_year && then.tm_yday == here.tm_yday;
        (void)strftime(text, sizeof text, same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &then);
    }
    buf_str(b, text);
}

/* "since 10:32:07 (4m 10s ago)", "until 10:40:00 (in 12s)" */
static void put_time(struct buf *b, const struct json *reason, const char *key, int64_t now)
{
    int64_t at = 0;

    if (!time_parse(json_get_text(reason, key), &at))
        return;
    buf_fmt(b, "%s%s ", b->len ? ", " : "", key);
    put_moment(b, at, now);
    buf_str(b, at > now ? " (in " : " (");
    duration_tell(b, at > now ? at - now : now - at);
    buf_str(b, at > now ? ")" : " ago)");
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

static void print_moves(int indent, struct slice moves)
{
    if (!moves.len)
        return;
    paragraph(indent, next_line(&moves));
    while (moves.len > 0) { /* commands, to be copied as they are */
        CLEANUP(buf_fini) struct buf line = {0};
        clean(&line, next_line(&moves));
        printf("%*s%.*s\n", indent + 2, "", SLICE_ARG(buf_view(&line)));
    }
}

static void print_times(int indent, const struct json *reason, int64_t now)
{
    CLEANUP(buf_fini) struct buf times = {0};

    put_time(&times, reason, "since", now);
    put_time(&times, reason, "until", now);
    if (times.len)
        printf("%*s%s\n", indent, "", times.ptr);
}

/* The summary tells the first reason. */
static void print_why(const struct json *why)
{
    const struct json *reasons = json_get(why, "reasons");
    const struct json *first = reasons ? reasons->child : NULL;
    int64_t now = wall_ms();

    paragraph(0, json_get_text(why, "summary"));
    for (const struct json *r = first; r; r = r->next) {
        int indent = r == first ? 2 : 4;
        if (r != first) {
            putchar('\n');
            if (r == first->next)
                puts("At the same time:");
            paragraph(2, json_get_text(r, "text"));
        }
        print_times(indent, r, now);
        print_moves(indent, json_get_text(r, "moves"));
    }
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
        print_why(why);
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
    .summary = "explain what a task waits for, and what would move it",
    .about = "Says in plain words where a task stands: what it waits for, since when, until when, "
             "and what would move it, with the commands for it. Of several reasons the most "
             "important comes first.\n\n"
             "It explains, and judges nothing: the exit status is 0 whatever the state of the "
             "task.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}},
    .examples = {{"intact why o-17", "why is it not getting on?"},
                 {"intact why o-17 --json | jq -r '.reasons[].kind'", "for programs"}},
    .exits = "1 if there is no such task",
    .run = run,
};
