/* `intact eval`: evaluates an expression over a context, or one expression after another that is
 * typed on a terminal. eval_text.c evaluates, eval_context.c reads the context. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"
#include "cli/verbs/eval_context.h"
#include "cli/verbs/eval_text.h"

enum { TEXT_MAX = 1 << 20, SHOWN_BEFORE = 60, SHOWN_AFTER = 100, INDENT = 2 };

/* ---- a mistake and its place ---- */

/* The line of a text in which an offset is, and what is before it. */
struct spot {
    struct slice line;
    size_t number, column; /* from 1; the column in bytes */
};

static struct spot spot_of(struct slice text, size_t offset)
{
    struct spot s = {.number = 1};
    size_t from = 0;

    offset = offset < text.len ? offset : text.len;
    for (size_t i = 0; i < offset; i++)
        if (text.ptr[i] == '\n') {
            s.number++;
            from = i + 1;
        }
    const char *end = memchr(text.ptr + from, '\n', text.len - from);
    s.line =
        (struct slice){text.ptr + from, end ? (size_t)(end - text.ptr) - from : text.len - from};
    s.column = offset - from + 1;
    return s;
}

static bool is_inside_character(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The line with a caret below the place. Of a long line what is around it. */
static void print_spot(const struct spot *s)
{
    struct term t = {0};
    size_t at = s->column - 1;
    size_t from = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0;
    size_t to = s->line.len - at > SHOWN_AFTER ? at + SHOWN_AFTER : s->line.len;

    while (from > 0 && is_inside_character(s->line.ptr[from]))
        from--;
    while (to < s->line.len && is_inside_character(s->line.ptr[to]))
        to++;
    term_begin(&t, STDERR_FILENO, TERM_NEVER);
    int width = term_width(&t, (struct slice){s->line.ptr + from, at - from});
    print_row(stderr, "%*s%.*s", INDENT, "", (int)(to - from), s->line.ptr + from);
    print_row(stderr, "%*s^", INDENT + width, "");
}

/* `in`: NULL on a terminal, where the text has just been typed. */
static void print_mistake(const struct invocation *in, struct slice text,
                          const struct eval_result *r)
{
    CLEANUP(buf_fini) struct buf told = {0};
    struct spot s = spot_of(text, r->offset);
    bool has_lines = memchr(text.ptr, '\n', text.len);

    if (r->has_place && has_lines)
        buf_fmt(&told, "line %zu, ", s.number);
    if (r->has_place)
        buf_fmt(&told, "column %zu: ", s.column);
    buf_slice(&told, r->message);
    if (in)
        (void)verb_failed(in, CLI_NOT_WELL, "%s", told.ptr);
    else
        print_row(stderr, "%s", told.ptr);
    if (r->has_place)
        print_spot(&s);
}

/* ---- results ---- */

static void print_json(struct slice text, const struct eval_result *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct spot s = spot_of(text, r->offset);

    json_open(&b, '{');
    if (r->is_ok) {
        json_member_raw(&b, "value", r->value);
    } else {
        json_key(&b, "error");
        json_open(&b, '{');
        json_member_text(&b, "message", r->message);
        if (r->has_place) {
            json_member_number(&b, "line", (int64_t)s.number);
            json_member_number(&b, "column", (int64_t)s.column);
        }
        json_close(&b, '}');
    }
    json_close(&b, '}');
    buf_byte(&b, '\n');
    print_text(stdout, buf_view(&b));
}

static void print_value(const struct invocation *in, struct slice value)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;

    if (given(in, "raw") && value.ptr[0] == '"' && json_parse(&a, value, &j, NULL) == ERR_OK)
        value = j->text;
    print_text(stdout, value);
    putchar('\n');
}

static int eval_and_print(const struct invocation *in, struct slice text, const struct json *root,
                          bool is_typed)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct eval_result r;

    eval_text(text, root, &a, &r);
    if (given(in, "json"))
        print_json(text, &r);
    else if (r.is_ok)
        print_value(in, r.value);
    else
        print_mistake(is_typed ? NULL : in, text, &r);
    (void)fflush(stdout);
    return r.is_ok ? CLI_OK : CLI_NOT_WELL;
}

/* ---- a terminal ---- */

static void greet(const struct json *root)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (root->type == JSON_OBJECT && root->count > 0) {
        buf_str(&b, "the context has");
        for (const struct json *m = root->child; m; m = m->next)
            buf_fmt(&b, "%s .%.*s", m == root->child ? "" : ",", SLICE_ARG(m->key));
    } else {
        buf_fmt(&b, "the context is %s", root->type == JSON_OBJECT ? "empty" : "no object");
    }
    print_row(stdout, "%s; end with Ctrl-D", b.ptr);
}

/* Reads line by line until the end. No mistake ends it. */
static int talk(const struct invocation *in, const struct json *root)
{
    char *line = NULL;
    size_t room = 0;

    greet(root);
    for (;;) {
        fputs("> ", stdout);
        (void)fflush(stdout);
        ssize_t len = getline(&line, &room, stdin);
        if (len < 0)
            break;
        if (len > 0 && line[len - 1] == '\n')
            len--;
        struct slice text = {line, (size_t)len};
        size_t blanks = 0;
        while (blanks < text.len && memchr(" \t\r", text.ptr[blanks], 3))
            blanks++;
        if (blanks < text.len)
            (void)eval_and_print(in, text, root, true);
    }
    free(line);
    putchar('\n');
    return CLI_OK;
}

/* ---- the verb ---- */

static int eval_stdin(const struct invocation *in, const struct json *root)
{
    CLEANUP(buf_fini) struct buf text = {.max = TEXT_MAX};

    if (!client_read_file("-", &text))
        return CLI_USAGE;
    if (text.overflow)
        return verb_failed(in, CLI_USAGE, "standard input has more than %d bytes", TEXT_MAX);
    return eval_and_print(in, buf_view(&text), root, false);
}

static bool is_stdin(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static int check(const struct invocation *in)
{
    int users = is_stdin(given(in, "input")) + is_stdin(given(in, "context"));

    if (users + (in->word_count == 0) > 1 && users > 0)
        return verb_misused(in, "standard input can be only one of the expression, --input and "
                                "--context");
    if (given(in, "step") && !given(in, "task"))
        return verb_misused(in, "--step is a step of --task");
    return CLI_OK;
}

static int run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *root = NULL;

    int end = check(in);
    if (end == CLI_OK)
        end = eval_context_read(in, &a, &root);
    if (end != CLI_OK)
        return end;
    if (in->word_count > 0)
        return eval_and_print(in, slice_of(in->words[0]), root, false);
    return isatty(STDIN_FILENO) ? talk(in, root) : eval_stdin(in, root);
}

static const struct flag flags[] = {
    {.name = "input",
     .value = "FILE",
     .kind = WORD_FILE,
     .help = "the value of .input, JSON or YAML (- for standard input)"},
    {.name = "context",
     .value = "FILE",
     .kind = WORD_FILE,
     .help = "all that the expression sees, as an object with input, steps, task, ..."},
    {.name = "task",
     .value = "TASK",
     .kind = WORD_TASK,
     .help = "see what expressions of this task see: its .input, .steps and .task"},
    {.name = "step",
     .value = "STEP",
     .help = "with --task: also see .output and .round of this step"},
    {.name = "set",
     .value = "NAME=VALUE",
     .repeats = true,
     .help = "one more member, with a value in JSON or YAML"},
    {.name = "raw", .help = "print a string without quotes"},
    {0},
};

const struct verb verb_eval = {
    .name = "eval",
    .summary = "try out an expression",
    .about = "Evaluates an expression of workflow definitions, and prints its value as JSON. A "
             "text in which expressions stand as in definitions, after a dollar sign and in "
             "braces, is taken as such a value. Calls a server only with --task. A mistake is "
             "shown with its column; --json prints an object with value or error instead.\n\n"
             "Without EXPRESSION it is read from standard input; on a terminal, one after another, "
             "each on a line.",
    .arguments = {{.name = "EXPRESSION", .optional = true}},
    .flags = flags,
    .examples = {{"intact eval '[range(3) | . * 2]'", "no context is needed"},
                 {"intact eval '.input.total > 100' --input order.json", "the `if` of a step"},
                 {"intact eval 'Order ${ .input.sku }' --set input='{sku: a-1}'", "a text"},
                 {"intact eval '.steps.charge.output' --task o-17", "what a step of a task sees"},
                 {"intact eval --task o-17", "one expression after another"}},
    .exits = "1 if the expression is wrong, or fails",
    .run = run,
};
