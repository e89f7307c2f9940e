#include "http_agent/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "json/text.h"

enum { HIDE_MIN = 4 /* bytes: what is shorter stands everywhere */ };

struct value {
    struct slice name; /* of the configuration */
    char *text;
    size_t len;
    char *quoted; /* the same inside a JSON text, if that differs; NULL: it does not */
    size_t quoted_len;
};

struct secrets {
    size_t count;
    struct value values[];
};

static void wipe(char *text, size_t len)
{
    if (text)
        explicit_bzero(text, len);
    free(text);
}

void secrets_free(struct secrets *s)
{
    for (size_t i = 0; s && i < s->count; i++) {
        wipe(s->values[i].text, s->values[i].len);
        wipe(s->values[i].quoted, s->values[i].quoted_len);
    }
    free(s);
}

/* NULL, or why it cannot be read. */
static const char *read_file(const char *path, char *to, size_t size, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t len = 0;
    ssize_t n = 0;

    if (fd < 0)
        return strerrordesc_np(errno);
    while (len < size && (n = read(fd, to + len, size - len)) > 0)
        len += (size_t)n;
    const char *fault = n < 0 ? strerrordesc_np(errno) : NULL;
    (void)close(fd);
    *ret_len = len;
    return len == size ? "it is longer than 64 KiB" : fault;
}

static const char *value_fault(struct slice text)
{
    if (text.len == 0)
        return "it is empty";
    if (text_utf8_end(text) != text.len || !header_value_is_sound(text))
        return "it is not one line of text of at most 8 KiB";
    return NULL;
}

static void keep(struct value *v, struct slice text)
{
    CLEANUP(buf_fini) struct buf quoted = {0};

    v->len = text.len;
    v->text = malloc(text.len + 1);
    ASSERT(v->text);
    memcpy(v->text, text.ptr, text.len);
    v->text[text.len] = 0;
    json_string(&quoted, text);
    if (quoted.len == text.len + 2)
        return;
    v->quoted_len = quoted.len - 2;
    v->quoted = malloc(quoted.len);
    ASSERT(v->quoted);
    memcpy(v->quoted, quoted.ptr + 1, v->quoted_len);
    explicit_bzero(quoted.ptr, quoted.len);
}

static const char *load(struct value *v, const struct secret *s)
{
    char *room = malloc(SECRET_MAX);
    const char *env = s->env ? getenv(s->env) : NULL;
    const char *fault = NULL;
    struct slice text = slice_of(env);

    ASSERT(room);
    if (s->file) {
        text = (struct slice){room, 0};
        fault = read_file(s->file, room, SECRET_MAX, &text.len);
    } else if (!env) {
        fault = "it is not set";
    }
    while (!fault && text.len > 0 && strchr("\r\n", text.ptr[text.len - 1]))
        text.len--; /* editors end each line */
    if (!fault)
        fault = value_fault(text);
    v->name = s->name;
    if (!fault)
        keep(v, text);
    explicit_bzero(room, SECRET_MAX);
    free(room);
    return fault;
}

struct secrets *secrets_load(const struct http_config *c, struct buf *ret_faults)
{
    size_t count = 0;
    bool ok = true;

    for (const struct secret *one = c->secrets; one; one = one->next)
        count++;
    struct secrets *s = calloc(1, sizeof *s + count * sizeof s->values[0]);
    ASSERT(s);
    for (const struct secret *one = c->secrets; one; one = one->next) {
        const char *fault = load(&s->values[s->count++], one);
        if (fault)
            buf_fmt(ret_faults, "secret %.*s: %s %s: %s\n", SLICE_ARG(one->name),
                    one->file ? "file" : "environment variable", one->file ? one->file : one->env,
                    fault);
        ok = ok && !fault;
    }
    if (ok)
        return s;
    secrets_free(s);
    return NULL;
}

static const struct value *find(const struct secrets *s, struct slice name)
{
    for (size_t i = 0; i < s->count; i++)
        if (slice_eq(s->values[i].name, name))
            return &s->values[i];
    return NULL;
}

void secrets_fill(const struct secrets *s, struct slice value, struct buf *b)
{
    struct slice plain;
    struct slice name;

    for (size_t at = 0; setting_next(value, &at, &plain, &name);) {
        const struct value *v = name.ptr ? find(s, name) : NULL;
        buf_slice(b, plain);
        if (v) /* the configuration was checked */
            buf_add(b, v->text, v->len);
    }
}

static void hide_one(struct buf *text, const char *secret, size_t len)
{
    static const char stars[] = "***";
    size_t from = 0;

    if (!secret || len < HIDE_MIN)
        return;
    while (text->len - from >= len) {
        char *at = memmem(text->ptr + from, text->len - from, secret, len);
        if (!at)
            return;
        from = (size_t)(at - text->ptr);
        memcpy(at, stars, 3);
        memmove(at + 3, at + len, text->len - from - len);
        text->len -= len - 3;
        text->ptr[text->len] = 0;
        from += 3;
    }
}

void secrets_hide(const struct secrets *s, struct buf *text)
{
    for (size_t i = 0; s && i < s->count; i++) {
        hide_one(text, s->values[i].text, s->values[i].len);
        hide_one(text, s->values[i].quoted, s->values[i].quoted_len);
    }
}
