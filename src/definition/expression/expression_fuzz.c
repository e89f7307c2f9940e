/* Fuzz target of the parser and evaluator: any expression (the first line) on any document (the
 * rest; a small default if that is no JSON). An evaluation stays within its memory budget
 * (excessive steps show as time) and always has the same outcome: one JSON value, or an error
 * message. template_fuzz.c does the same with values that contain expressions. */

#include "base/fuzz.h"
#include "definition/expression/expression.h"
#include "json/text.h"

/* The most that an evaluation may take from its arena: the budget, the text of the result, and
 * unused space at the ends of chunks. */
enum { BYTES_MAX = 3 * EXPRESSION_BYTES_MAX };

static const char otherwise[] =
    "{\"input\":{\"a\":[1,2.5,{\"b\":\"x \xc3\xa4\"}],\"n\":null,\"t\":true,\"s\":\"o-17\"},"
    "\"steps\":{\"s\":{\"output\":[],\"input\":{}}},\"task\":{\"id\":\"t\"}}";

static void check_words(const struct error *e)
{
    struct slice text = slice_of(e->text);

    ASSERT(e->code != ERR_OK);
    ASSERT(text.len > 0);
    ASSERT(text_utf8_end(text) == text.len);
}

/* The result's text, or NONE after an error. */
static struct slice evaluate(const struct expression *x, const struct json *root, struct arena *a,
                             struct error *e)
{
    const struct json *value = NULL;
    struct json *parsed = NULL;

    if (expression_eval(x, root, a, &value, e) != ERR_OK) {
        check_words(e);
        return SLICE_NONE;
    }
    ASSERT(a->total <= BYTES_MAX);
    enum err err = json_parse(a, value->raw, &parsed, NULL);
    ASSERT(err == ERR_OK);
    ASSERT(parsed->type == value->type);
    (void)json_truth(value);
    return value->raw;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(arena_fini) struct arena first = {0};
    CLEANUP(arena_fini) struct arena second = {0};
    struct fuzz f = {bytes, len};
    struct slice text = fuzz_until(&f, '\n');
    struct expression *x = NULL;
    struct json *root = NULL;
    struct error e = {0};
    struct error again = {0};
    size_t column = 0;

    if (text_utf8_end(text) < text.len)
        return 0; /* expressions are embedded in JSON */
    if (expression_compile(text, &a, &x, &column, &e) != ERR_OK) {
        ASSERT(column >= 1);
        ASSERT(column <= text.len + 1);
        check_words(&e);
        return 0;
    }
    if (json_parse(&a, fuzz_rest(&f), &root, NULL) != ERR_OK) {
        enum err err = json_parse(&a, slice_of(otherwise), &root, NULL);
        ASSERT(err == ERR_OK);
    }
    struct slice once = evaluate(x, root, &first, &e);
    struct slice twice = evaluate(x, root, &second, &again);
    ASSERT(slice_eq(once, twice));
    ASSERT(once.ptr || strcmp(e.text, again.text) == 0);
    return 0;
}
