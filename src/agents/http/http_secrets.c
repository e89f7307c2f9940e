/* Loads the secrets of the HTTP agent, fills them into requests, and hides them in everything
 * that is logged, reported or stored (http_secrets.h). Freed values are wiped. http_job.c is the
 * main caller. */

#include "agents/http/http_secrets.h"

#include <stdlib.h>

#include "config/secret_hide.h"
#include "json/text.h"

struct value {
    struct slice name; /* in the configuration */
    char *text;
    size_t len;
};

struct secrets {
    struct secrets *before; /* the previous values, which requests in progress may use */
    size_t count;
    struct value values[];
};

void secrets_free(struct secrets *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        secret_wipe(s->values[i].text, s->values[i].len);
    secrets_free(s->before);
    free(s);
}

void secrets_replace(struct secrets **s, struct secrets *fresh)
{
    secrets_free((*s)->before);
    (*s)->before = NULL;
    fresh->before = *s;
    *s = fresh;
}

static const char *value_fault(struct slice text)
{
    if (text.len == 0)
        return "it is empty";
    if (text_utf8_end(text) != text.len || !header_value_is_sound(text))
        return "it is not one line of text of at most 8 KiB";
    return NULL;
}

static const char *load(struct value *v, const struct secret *s)
{
    char *text = NULL;
    size_t len = 0;
    const char *fault = secret_place_load(&s->place, &text, &len);

    v->name = s->name;
    if (!fault)
        fault = value_fault((struct slice){text, len});
    if (fault) {
        secret_wipe(text, len);
        return fault;
    }
    v->text = text;
    v->len = len;
    return NULL;
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
        if (fault) {
            buf_fmt(ret_faults, "secret %.*s: ", SLICE_ARG(one->name));
            secret_place_fault(&one->place, fault, ret_faults);
            buf_byte(ret_faults, '\n');
        }
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
        if (v) /* always, because the configuration was checked */
            buf_add(b, v->text, v->len);
    }
}

void secrets_hide(const struct secrets *s, struct buf *text)
{
    for (; s; s = s->before)
        for (size_t i = 0; i < s->count; i++)
            secret_hide(text, (struct slice){s->values[i].text, s->values[i].len});
}
