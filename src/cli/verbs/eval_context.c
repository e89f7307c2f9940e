/* Builds the context of `intact eval` (eval_context.h) from its flags. eval_task.c reads that of a
 * task. */

#include "cli/verbs/eval_context.h"

#include <stdlib.h>

#include "cli/client/client.h"
#include "cli/client/mistakes.h"
#include "config/config_reader.h"

enum { FILE_SIZE_MAX = 64 << 20 };

/* ---- values ---- */

/* JSON or YAML. NULL: mistakes, which were reported. `name`: where it comes from. */
static const struct json *read_value(const char *name, enum source_format format, struct slice text,
                                     struct arena *a)
{
    struct mistakes *m = calloc(1, sizeof *m); /* too large for the stack */
    struct reader r = {.arena = a, .mistakes = m};
    struct json *value = NULL;

    ASSERT(m);
    enum err err = read_source(&r, arena_copy(a, text), format, &value);
    bool ok = err == ERR_OK && m->count == 0;
    if (!ok)
        mistakes_print(name, "error", m);
    free(m);
    return ok ? value : NULL;
}

static const struct json *read_file(const struct invocation *in, const char *path, struct arena *a)
{
    CLEANUP(buf_fini) struct buf text = {.max = FILE_SIZE_MAX};

    if (!client_read_file(path, &text))
        return NULL;
    if (text.overflow) {
        verb_failed(in, CLI_USAGE, "%s has more than %d bytes", path, FILE_SIZE_MAX);
        return NULL;
    }
    return read_value(strcmp(path, "-") == 0 ? "standard input" : path,
                      (enum source_format)format_of_file(path), buf_view(&text), a);
}

/* NAME=VALUE. False: it was reported. */
static bool read_set(const struct invocation *in, const char *word, struct arena *a,
                     struct eval_member *ret)
{
    const char *sign = strchr(word, '=');
    CLEANUP(buf_fini) struct buf name = {0};

    if (!sign || sign == word) {
        verb_misused(in, "--set is \"%s\", expected NAME=VALUE, such as total=20", word);
        return false;
    }
    buf_fmt(&name, "--set %.*s", (int)(sign - word), word);
    const struct json *value = read_value(name.ptr, SOURCE_YAML, slice_of(sign + 1), a);
    if (!value)
        return false;
    *ret = (struct eval_member){{word, (size_t)(sign - word)}, value->raw};
    return true;
}

/* ---- all of it ---- */

/* Members from the flags. They replace those of --context, and of each other. */
struct members {
    struct eval_member *list;
    size_t count;
};

static void put(struct members *m, struct eval_member one)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->list[i].name, one.name)) {
            m->list[i] = one;
            return;
        }
    m->list[m->count++] = one;
}

static int gather(const struct invocation *in, struct arena *a, struct members *m)
{
    struct eval_member of_task[EVAL_TASK_MEMBERS];
    size_t count = 0;
    int end = given(in, "task") ? eval_task_read(in, a, of_task, &count) : CLI_OK;
    const char *word = given(in, "input");

    for (size_t i = 0; i < count; i++)
        put(m, of_task[i]);
    if (end == CLI_OK && word) {
        const struct json *input = read_file(in, word, a);
        if (!input)
            return CLI_USAGE;
        put(m, (struct eval_member){SLICE("input"), input->raw});
    }
    for (size_t at = 0; end == CLI_OK && (word = given_next(in, "set", &at));) {
        struct eval_member one;
        if (!read_set(in, word, a, &one))
            return CLI_USAGE;
        put(m, one);
    }
    return end;
}

static bool is_replaced(const struct members *m, struct slice name)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->list[i].name, name))
            return true;
    return false;
}

static void write_all(struct buf *b, const struct json *base, const struct members *m)
{
    json_open(b, '{');
    for (const struct json *j = base ? base->child : NULL; j; j = j->next) {
        if (is_replaced(m, j->key))
            continue;
        json_key_slice(b, j->key);
        json_raw(b, j->raw);
    }
    for (size_t i = 0; i < m->count; i++) {
        json_key_slice(b, m->list[i].name);
        json_raw(b, m->list[i].json);
    }
    json_close(b, '}');
}

static int join(const struct invocation *in, const struct json *base, const struct members *m,
                struct arena *a, const struct json **ret)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json_fault fault = {0};
    struct json *root = NULL;

    if (base && m->count == 0) {
        *ret = base;
        return CLI_OK;
    }
    if (base && base->type != JSON_OBJECT)
        return verb_failed(in, CLI_USAGE,
                           "--context is %s, expected an object, to which other "
                           "flags add members",
                           json_type_text(base->type));
    write_all(&b, base, m);
    if (json_parse(a, arena_copy(a, buf_view(&b)), &root, &fault) != ERR_OK)
        return verb_failed(in, CLI_USAGE, "the context cannot be used: %s", fault.what);
    *ret = root;
    return CLI_OK;
}

int eval_context_read(const struct invocation *in, struct arena *a, const struct json **ret)
{
    struct members m = {arena_alloc(a, (in->given_count + EVAL_TASK_MEMBERS) * sizeof *m.list), 0};
    const char *path = given(in, "context");
    const struct json *base = path ? read_file(in, path, a) : NULL;

    if (path && !base)
        return CLI_USAGE;
    int end = gather(in, a, &m);
    return end == CLI_OK ? join(in, base, &m, a, ret) : end;
}
