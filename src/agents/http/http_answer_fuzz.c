/*
 * Any bytes as a configuration, a step's input, or an answer (status, head and body). Every
 * accepted request has valid lines, and every output is valid JSON.
 */

#include "agents/http/http_answer.h"
#include "agents/http/http_config.h"
#include "base/fuzz.h"
#include "json/text.h"

static void reads_config(struct slice text)
{
    static struct mistakes m;
    struct http_config *c = NULL;

    if (http_config_parse(text, SOURCE_GUESS, &c, &m) != ERR_OK) {
        ASSERT(m.count > 0 && !c);
        return;
    }
    for (const struct service_config *s = c->services; s; s = s->next) {
        ASSERT(s->name.len > 0 && s->url.len > 0 && s->origin.len > 0 && s->places > 0);
        for (const struct setting *h = s->headers; h; h = h->next)
            ASSERT(!header_name_fault(h->name) && header_value_is_sound(h->value));
    }
    http_config_free(c);
}

static void reads_form(struct slice text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    struct form f;
    struct error e = {0};

    if (json_parse(&a, text, &j, NULL) != ERR_OK)
        return;
    if (form_read(j, &a, &f, &e) != ERR_OK) {
        ASSERT(e.text[0]);
        return;
    }
    ASSERT(f.path.len > 0 && f.path.ptr[0] == '/' && path_is_plain(f.path));
    for (size_t i = 0; i < f.query.len; i++)
        ASSERT(f.query.ptr[i] > ' ' && f.query.ptr[i] < 0x7f && f.query.ptr[i] != '#');
    for (const struct header *h = f.headers; h; h = h->next)
        ASSERT(!header_name_fault(h->name) && header_value_is_sound(h->value));
}

static void reads_answer(struct fuzz *f)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf quote = {0};
    struct statuses none[STATUS_LISTS] = {0};
    struct http_answer answer = {.status = (long)fuzz_number(f, 2) % 1000};
    struct expression *x = NULL;
    struct slice output = SLICE_NONE;
    struct json *j = NULL;
    struct error e = {0};
    size_t column = 0;

    answer_read_head(&answer, fuzz_until(f, 0), &a);
    answer.body = fuzz_rest(f);
    (void)answer_kind(&answer, none, none);
    ASSERT(answer_retry_after(answer_header(&answer, "retry-after"), 0) >= -1);
    answer_quote(&quote, answer.body, 200);
    ASSERT(text_utf8_end(buf_view(&quote)) == quote.len);
    enum err err =
        expression_compile(SLICE("{h: .headers, b: .body, s: .status}"), &a, &x, &column, &e);
    ASSERT(err == ERR_OK);
    if (answer_output(&answer, NULL, &a, &output, &e) != ERR_OK) {
        ASSERT(e.text[0]);
        return;
    }
    ASSERT(json_parse(&a, output, &j, NULL) == ERR_OK);
    err = answer_output(&answer, x, &a, &output, &e);
    ASSERT(err != ERR_OK || json_parse(&a, output, &j, NULL) == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct fuzz f = {bytes, len};

    switch (fuzz_byte(&f)) {
    case 'c':
        reads_config(fuzz_rest(&f));
        break;
    case 'f':
        reads_form(fuzz_rest(&f));
        break;
    default:
        reads_answer(&f);
        break;
    }
    return 0;
}
