/* Loads the signing keys and header values of all targets from the places that the configuration
 * names, and reports every fault with its target (webhook_secrets.h). serve.c calls it to check
 * before the start, webhook.c to use them. */

#include "webhook/webhook_secrets.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static void free_lines(char **lines)
{
    for (size_t i = 0; lines && lines[i]; i++)
        secret_wipe(lines[i], strlen(lines[i]));
    free(lines);
}

void webhook_secrets_free(struct webhook_secrets *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++) {
        sign_keys_free(s->of[i].keys);
        free_lines(s->of[i].lines);
    }
    free(s);
}

/* NULL, or the problem with the value. */
static const char *make_line(const struct webhook_header *h, char **ret)
{
    char *text = NULL;
    size_t len = 0;
    const char *fault = h->value.ptr ? NULL : secret_place_load(&h->kept, &text, &len);
    struct slice value = h->value.ptr ? h->value : (struct slice){text, len};

    if (!fault && (value.len == 0 || !header_value_is_sound(value)))
        fault = "it is not one line of text of at most 8 KiB";
    if (!fault) {
        *ret = malloc(h->name.len + value.len + 3);
        ASSERT(*ret);
        memcpy(*ret, h->name.ptr, h->name.len);
        memcpy(*ret + h->name.len, ": ", 2);
        memcpy(*ret + h->name.len + 2, value.ptr, value.len);
        (*ret)[h->name.len + 2 + value.len] = 0;
    }
    secret_wipe(text, len);
    return fault;
}

static bool load_lines(const struct webhook_target *t, char ***ret, struct buf *ret_faults)
{
    size_t count = 0;
    bool ok = true;

    for (const struct webhook_header *h = t->headers; h; h = h->next)
        count++;
    char **lines = calloc(count + 1, sizeof *lines);
    ASSERT(lines);
    *ret = lines;
    for (const struct webhook_header *h = t->headers; h; h = h->next) {
        const char *fault = make_line(h, lines);
        if (!fault) {
            lines++;
            continue;
        }
        ok = false;
        buf_fmt(ret_faults, "%.*s: header %.*s: ", SLICE_ARG(t->url), SLICE_ARG(h->name));
        if (h->value.ptr)
            buf_str(ret_faults, fault);
        else
            secret_place_fault(&h->kept, fault, ret_faults);
        buf_byte(ret_faults, '\n');
    }
    return ok;
}

/* Prefixes each line with its target. */
static void add_faults(const struct webhook_target *t, struct buf *lines, struct buf *ret_faults)
{
    for (char *line = lines->len ? strtok(lines->ptr, "\n") : NULL; line; line = strtok(NULL, "\n"))
        buf_fmt(ret_faults, "%.*s: secret: %s\n", SLICE_ARG(t->url), line);
}

/* Certificates and keys are read for each connection; this checks early that they exist. */
static bool check_files(const struct webhook_target *t, struct buf *ret_faults)
{
    const struct {
        const char *key, *file;
    } files[] = {{"ca", t->net.ca}, {"cert", t->net.cert}, {"key", t->net.key}};
    bool ok = true;

    for (size_t i = 0; i < COUNT_OF(files); i++) {
        if (!files[i].file || access(files[i].file, R_OK) == 0)
            continue;
        buf_fmt(ret_faults, "%.*s: tls: %s: file %s: %s\n", SLICE_ARG(t->url), files[i].key,
                files[i].file, strerror(errno));
        ok = false;
    }
    return ok;
}

struct webhook_secrets *webhook_secrets_load(const struct webhook_config *c, struct buf *ret_faults)
{
    struct webhook_secrets *s = calloc(1, sizeof *s + c->count * sizeof s->of[0]);
    bool ok = true;

    ASSERT(s);
    for (const struct webhook_target *t = c->targets; t; t = t->next) {
        CLEANUP(buf_fini) struct buf faults = {0};
        struct webhook_secret *one = &s->of[s->count++];
        one->keys = sign_keys_load(t->secrets, t->secret_count, &faults);
        add_faults(t, &faults, ret_faults);
        ok &= one->keys != NULL;
        ok &= load_lines(t, &one->lines, ret_faults);
        ok &= check_files(t, ret_faults);
    }
    if (ok)
        return s;
    webhook_secrets_free(s);
    return NULL;
}
