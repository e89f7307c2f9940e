/* Fuzz target of template.c: any JSON value (the first line) as a template on any document (the
 * rest; a small default if that is no JSON). The result is JSON within its limits, or an error
 * message. expression_fuzz.c does the same with single expressions. */

#include "base/fuzz.h"
#include "definition/expression/expression.h"
#include "json/text.h"

static const char otherwise[] = "{\"input\":{\"a\":[1,2.5,{\"b\":\"x \xc3\xa4 ${\"}],\"n\":null,"
                                "\"s\":\"o-17\"},\"steps\":{\"s\":{\"output\":[],\"input\":{}}}}";

static void check_words(const struct error *e)
{
    struct slice text = slice_of(e->text);

    ASSERT(text.len > 0);
    ASSERT(text_utf8_end(text) == text.len);
}

static void evaluate(const struct template *t, const struct json *root)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice text = SLICE_NONE;
    struct json *j = NULL;
    struct error e = {0};

    if (template_eval(t, root, &a, &text, &e) != ERR_OK) {
        check_words(&e);
        return;
    }
    ASSERT(text.len <= EXPRESSION_BYTES_MAX);
    enum err err = json_parse(&a, text, &j, NULL);
    ASSERT(err == ERR_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct fuzz f = {bytes, len};
    struct slice text = fuzz_until(&f, '\n');
    struct json *value = NULL;
    struct json *root = NULL;
    struct template *t = NULL;
    struct error e = {0};
    size_t offset = 0;

    if (json_parse_within(&a, text, EXPRESSION_DEPTH_MAX, &value, NULL) != ERR_OK)
        return 0;
    if (template_compile(value, &a, &t, &offset, &e) != ERR_OK) {
        ASSERT(offset <= value->raw.len);
        check_words(&e);
        return 0;
    }
    if (json_parse_within(&a, fuzz_rest(&f), JSON_DEPTH_OUTSIDE, &root, NULL) != ERR_OK) {
        enum err err = json_parse(&a, slice_of(otherwise), &root, NULL);
        ASSERT(err == ERR_OK);
    }
    evaluate(t, root);
    return 0;
}
