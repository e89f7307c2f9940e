/* Finds the secrets of a command in what it wrote: see exec_secrets.h. Lines are sorted by their
 * first bytes, and a filter of these says for nearly all places of a text that no line begins
 * there. */

#include "agents/exec/exec_secrets.h"

#include <stdlib.h>

#include "base/base.h"

enum {
    LINE_MIN = 4, /* the first bytes, by which lines are sorted */
    FILTER_BITS = 16,
    FILTER_WORDS = (1 << FILTER_BITS) / 64,
};

/* ---- the set ---- */

static void add_line(struct exec_secrets *s, struct slice line)
{
    if (line.len < LINE_MIN)
        return;
    if (s->count == s->room) {
        s->room = s->room ? s->room * 2 : 16;
        s->lines = reallocarray(s->lines, s->room, sizeof *s->lines);
        ASSERT(s->lines);
    }
    s->lines[s->count++] = line;
}

void exec_secrets_add(struct exec_secrets *s, struct slice text)
{
    while (text.len > 0) {
        const char *end = memchr(text.ptr, '\n', text.len);
        size_t len = end ? (size_t)(end - text.ptr) : text.len;
        size_t bare = len;
        while (bare > 0 && text.ptr[bare - 1] == '\r') /* of a file from elsewhere */
            bare--;
        add_line(s, (struct slice){text.ptr, bare});
        len += end != NULL;
        text = (struct slice){text.ptr + len, text.len - len};
    }
}

/* By the first bytes; of those with the same ones the longest comes first. */
static int line_order(const void *a, const void *b)
{
    const struct slice *x = a;
    const struct slice *y = b;
    int order = memcmp(x->ptr, y->ptr, LINE_MIN);

    return order != 0 ? order : (x->len < y->len) - (x->len > y->len);
}

static uint32_t hash_start(const char *at)
{
    uint32_t start;

    memcpy(&start, at, sizeof start);
    return (start * 2654435761u) >> (32 - FILTER_BITS);
}

void exec_secrets_sort(struct exec_secrets *s)
{
    ASSERT(!s->starts);
    if (s->count == 0)
        return;
    qsort(s->lines, s->count, sizeof *s->lines, line_order);
    s->starts = calloc(FILTER_WORDS, sizeof *s->starts);
    ASSERT(s->starts);
    for (size_t i = 0; i < s->count; i++) {
        uint32_t hash = hash_start(s->lines[i].ptr);
        s->starts[hash / 64] |= UINT64_C(1) << hash % 64;
    }
}

void exec_secrets_fini(struct exec_secrets *s)
{
    free(s->lines);
    free(s->starts);
    *s = (struct exec_secrets){0};
}

/* ---- texts ---- */

/* The first of the lines that begin like the text. */
static size_t first_like(const struct exec_secrets *s, const char *at)
{
    size_t low = 0;
    size_t high = s->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (memcmp(s->lines[middle].ptr, at, LINE_MIN) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The length of the longest line with which the text begins; 0: there is none. */
static size_t begins_with(const struct exec_secrets *s, struct slice text)
{
    if (s->count == 0 || text.len < LINE_MIN)
        return 0;
    uint32_t hash = hash_start(text.ptr);
    if (!(s->starts[hash / 64] >> hash % 64 & 1))
        return 0;
    for (size_t i = first_like(s, text.ptr);
         i < s->count && memcmp(s->lines[i].ptr, text.ptr, LINE_MIN) == 0; i++)
        if (s->lines[i].len <= text.len && memcmp(s->lines[i].ptr, text.ptr, s->lines[i].len) == 0)
            return s->lines[i].len;
    return 0;
}

void exec_secrets_hide(const struct exec_secrets *s, struct slice text, struct buf *ret)
{
    size_t end = 0;  /* of the line that was found last */
    size_t kept = 0; /* where what is not copied yet begins */

    for (size_t i = 0; i < text.len && s->count > 0; i++) {
        size_t len = begins_with(s, (struct slice){text.ptr + i, text.len - i});
        if (i + len <= end || len == 0)
            continue;
        if (i >= end) {
            buf_add(ret, text.ptr + kept, i - kept);
            buf_str(ret, "***"); /* does not reveal its length */
        }
        kept = end = i + len;
    }
    buf_add(ret, text.ptr + kept, text.len - kept);
}

bool exec_secrets_have(const struct exec_secrets *s, struct slice text)
{
    return text.len > 0 && begins_with(s, text) == text.len;
}

void exec_secrets_cover_begun(const struct exec_secrets *s, struct buf *text)
{
    size_t most = 0;

    for (size_t i = 0; i < s->count; i++)
        for (size_t skip = 1; skip + LINE_MIN <= s->lines[i].len; skip++) {
            size_t left = s->lines[i].len - skip;
            if (left > most && left <= text->len
                && memcmp(text->ptr, s->lines[i].ptr + skip, left) == 0)
                most = left;
        }
    if (most == 0)
        return;
    memset(text->ptr, '*', 3);
    memmove(text->ptr + 3, text->ptr + most, text->len - most);
    text->len = text->len - most + 3;
}
