/* Reads the values of fields that a table declares (struct field in config_reader.h), stores them
 * in the struct of the caller, and says what was expected otherwise. config_reader.c calls it for
 * each known key. */

#include "config/config_reader.h"

static void store(const struct field *f, void *target, int64_t v)
{
    ASSERT(v >= 0);
    switch (f->width) {
    case sizeof(bool):
        *(bool *)target = v != 0;
        return;
    case sizeof(uint32_t):
        ASSERT(v <= UINT32_MAX);
        *(uint32_t *)target = (uint32_t)v;
        return;
    case sizeof(uint64_t):
        *(uint64_t *)target = (uint64_t)v;
        return;
    default:
        UNREACHABLE();
    }
}

static void read_text_field(struct reader *r, const struct field *f, const struct json *j,
                            const struct path *path, void *target)
{
    bool fits = f->most == 0 || j->text.len <= (size_t)f->most;

    if (j->type == JSON_STRING && j->text.len > 0 && fits)
        *(const char **)target = arena_copy(r->arena, j->text).ptr;
    else if (f->most > 0)
        mistake_in(r, path, j, "a text of 1 to %" PRId64 " bytes", f->most);
    else
        mistake_in(r, path, j, "a text");
}

/* "a, b or c" */
static void list_words(struct buf *b, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        buf_fmt(b, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
}

static void read_word_field(struct reader *r, const struct field *f, const struct json *j,
                            const struct path *path, void *target)
{
    CLEANUP(buf_fini) struct buf known = {0};

    ASSERT(f->words && f->words[0]);
    for (size_t i = 0; f->words[i]; i++)
        if (j->type == JSON_STRING && slice_is(j->text, f->words[i])) {
            store(f, target, (int64_t)i);
            return;
        }
    list_words(&known, f->words);
    mistake_in(r, path, j, "%s", f->expected ? f->expected : known.ptr);
}

static void read_number_field(struct reader *r, const struct field *f, const struct json *j,
                              const struct path *path, void *target)
{
    int64_t v = 0;

    ASSERT(f->least >= 0 && f->least <= f->most);
    if (read_whole(r, j, path, f->least, f->most, &v))
        store(f, target, v);
}

static void read_size_field(struct reader *r, const struct field *f, const struct json *j,
                            const struct path *path, void *target)
{
    int64_t v = 0;

    ASSERT(f->most > 0 && f->expected);
    if (size_parse(j, &v) && v <= f->most)
        store(f, target, v);
    else
        mistake_in(r, path, j, "%s", f->expected);
}

static void read_list_field(struct reader *r, const struct field *f, const struct json *j,
                            const struct path *path, void *target)
{
    struct path at = {path, SLICE_NONE, 0};

    ASSERT(f->read && f->expected);
    if (j->type == JSON_ARRAY && (f->most == 0 || j->count <= (uint64_t)f->most)) {
        for (const struct json *m = j->child; m; m = m->next, at.index++)
            f->read(r, m, &at, target);
        return;
    }
    if (f->most > 0)
        mistake_in(r, path, j, "an array of at most %" PRId64 " %s", f->most, f->expected);
    else
        mistake_in(r, path, j, "%s", f->expected);
}

void read_field(struct reader *r, const struct field *f, const struct json *j,
                const struct path *path, void *target)
{
    switch (f->kind) {
    case FIELD_OWN:
        ASSERT(f->read);
        f->read(r, j, path, target);
        return;
    case FIELD_TEXT:
        read_text_field(r, f, j, path, target);
        return;
    case FIELD_WORD:
        read_word_field(r, f, j, path, target);
        return;
    case FIELD_NUMBER:
        read_number_field(r, f, j, path, target);
        return;
    case FIELD_SIZE:
        read_size_field(r, f, j, path, target);
        return;
    case FIELD_LIST:
        read_list_field(r, f, j, path, target);
        return;
    }
    UNREACHABLE();
}
