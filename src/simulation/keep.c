/* Writes the story of a simulation as a test (keep.h): the input, agents and acts of the test that
 * was played, its faults, and the end that was found. */

#include "simulation/keep.h"

/* ---- where tests are in a text ---- */

struct line {
    struct slice text; /* without its end */
    size_t at;
};

static bool next_line(struct slice text, size_t *at, struct line *ret)
{
    if (*at >= text.len)
        return false;
    const char *from = text.ptr + *at;
    const char *end = memchr(from, '\n', text.len - *at);
    size_t len = end ? (size_t)(end - from) : text.len - *at;
    *ret = (struct line){{from, len}, *at};
    *at += len + 1;
    return true;
}

static bool begins_with(struct slice s, const char *head)
{
    size_t len = strlen(head);

    return s.len >= len && memcmp(s.ptr, head, len) == 0;
}

/* Whether a line begins another key at the top, or ends the document. */
static bool is_at_top(struct slice line)
{
    return line.len > 0 && line.ptr[0] != ' ' && line.ptr[0] != '#' && line.ptr[0] != '-'
           && line.ptr[0] != '\r';
}

/* How far the items of `tests:` are indented, if new ones can follow at the end of the text. */
static enum err find_indent(struct slice text, size_t *ret, struct error *e)
{
    struct line line;
    size_t at = 0;
    bool inside = false;
    bool found = false;

    while (next_line(text, &at, &line)) {
        size_t indent = 0;
        while (indent < line.text.len && line.text.ptr[indent] == ' ')
            indent++;
        if (inside && is_at_top(line.text))
            return error_set(e, ERR_INVALID, "`tests` is not the last key of the file");
        if (inside && !found && indent < line.text.len && line.text.ptr[indent] == '-') {
            *ret = indent;
            found = true;
        }
        inside |= begins_with(line.text, "tests:");
    }
    if (!found)
        return error_set(e, ERR_INVALID, "its tests are not YAML lines that begin with \"- \"");
    return ERR_OK;
}

/* ---- the test ---- */

static bool is_copied(struct slice key)
{
    return !slice_is(key, "name") && !slice_is(key, "expect") && !slice_is(key, "faults");
}

static bool has_name(struct slice text, struct slice name)
{
    return memmem(text.ptr, text.len, name.ptr, name.len) != NULL;
}

static void write_name(struct buf *b, const struct kept *k, struct slice text)
{
    CLEANUP(buf_fini) struct buf name = {0};

    for (unsigned number = 1; number < 1000; number++) {
        buf_clear(&name);
        buf_fmt(&name, "simulated: %s", k->what);
        if (number > 1)
            buf_fmt(&name, " (%u)", number);
        CLEANUP(buf_fini) struct buf quoted = {0};
        json_string(&quoted, buf_view(&name));
        if (!text.ptr || !has_name(text, buf_view(&quoted)))
            break;
    }
    json_string(b, buf_view(&name));
}

static void write_expect(struct buf *b, const struct kept *k)
{
    const struct run_end *e = k->end;

    json_open(b, '{');
    json_member_text(b, "state",
                     e->is_end ? slice_of(task_state_text(e->state)) : SLICE("processed"));
    if (e->is_end) {
        json_member_text(b, "error", e->code);
        json_member_raw(b, "steps", e->steps);
    }
    if (k->world_before)
        json_member_text(b, "world", SLICE(".before"));
    json_close(b, '}');
}

static void write_test(struct buf *b, const struct kept *k, struct slice text, size_t indent)
{
    int in = (int)indent;

    buf_fmt(b, "%*s- name: ", in, "");
    write_name(b, k, text);
    for (const struct json *m = k->story->test->json->child; m; m = m->next)
        if (is_copied(m->key))
            buf_fmt(b, "\n%*s  %.*s: %.*s", in, "", SLICE_ARG(m->key), SLICE_ARG(m->raw));
    if (k->story->faults.count > 0)
        buf_fmt(b, "\n%*s  faults:", in, "");
    for (size_t i = 0; i < k->story->faults.count; i++) {
        buf_fmt(b, "\n%*s    - ", in, "");
        fault_write(b, &k->story->faults.list[i]);
    }
    buf_fmt(b, "\n%*s  expect: ", in, "");
    write_expect(b, k);
    buf_byte(b, '\n');
}

/* Files are named relative to the test file. */
static void write_file(struct buf *b, const struct kept *k, struct slice file)
{
    CLEANUP(buf_fini) struct buf path = {0};

    if (k->way.len > 0 && file.len > 0 && file.ptr[0] != '/')
        buf_slice(&path, k->way);
    buf_slice(&path, file);
    json_string(b, buf_view(&path));
}

static void write_files(struct buf *b, const struct kept *k, const struct json *files)
{
    if (files->type == JSON_STRING) {
        write_file(b, k, files->text);
        return;
    }
    json_open(b, '[');
    for (const struct json *f = files->child; f; f = f->next)
        write_file(b, k, f->text);
    json_close(b, ']');
}

/* All that the simulated file has beside its tests. */
static void write_head(const struct simulation *v, const struct kept *k, struct buf *b)
{
    for (const struct json *m = v->suite->root->child; m; m = m->next) {
        CLEANUP(buf_fini) struct buf files = {0};
        bool names_files = slice_is(m->key, "workflow") || slice_is(m->key, "also");
        if (slice_is(m->key, "tests"))
            continue;
        if (names_files)
            write_files(&files, k, m);
        struct slice value = names_files ? buf_view(&files) : m->raw;
        buf_fmt(b, "%.*s: %.*s\n", SLICE_ARG(m->key), SLICE_ARG(value));
    }
    buf_str(b, "tests:\n");
}

enum err keep_write(const struct simulation *v, const struct kept *k, struct slice text,
                    struct buf *ret, struct error *e)
{
    size_t indent = 2;

    if (text.ptr) {
        enum err err = find_indent(text, &indent, e);
        if (err != ERR_OK)
            return err;
        buf_slice(ret, text);
        if (text.len > 0 && text.ptr[text.len - 1] != '\n')
            buf_byte(ret, '\n');
    } else {
        write_head(v, k, ret);
    }
    write_test(ret, k, text, indent);
    return ERR_OK;
}
