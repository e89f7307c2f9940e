/* Fuzz target of test files: any text as one. A refused one has mistakes, each with its place and a
 * message in valid UTF-8. An accepted one is checked against a definition, which never fails in
 * another way. */

#include <stdlib.h>

#include "base/fuzz.h"
#include "definition/definition.h"
#include "testing/suite.h"
#include "json/text.h"

#define WORKFLOW                                                                           \
    "intact: 1\nworkflow: w\non_signal: {cancelled: undo}\nsteps:\n"                       \
    "  - {name: a, agent: x, action: y, undo: {action: z}}\n"                              \
    "  - {name: b, agent: h, http: {path: /b}, undo: {http: {path: /c}}}\n"                \
    "  - {name: v, approve: {by: boss, question: Well?}}\n"                                \
    "  - {name: e, for_each: [1], max_items: 2, agent: x, action: y, undo: {action: z}}\n" \
    "  - {name: c, task: {workflow: u}}\n"

static void check_words(const char *words)
{
    struct slice text = slice_of(words);

    ASSERT(text_utf8_end(text) == text.len);
}

static void check_mistakes(const struct mistakes *m)
{
    for (size_t i = 0; i < m->count; i++) {
        const struct mistake *one = &m->list[i];
        ASSERT(one->line >= 1);
        ASSERT(one->column >= 1);
        ASSERT(one->expected[0]);
        check_words(one->path);
        check_words(one->found);
        check_words(one->expected);
    }
}

static void bind(struct suite *s, struct mistakes *m)
{
    struct definition *d = NULL;

    enum err err = definition_parse(SLICE(WORKFLOW), DEFINITION_YAML, &d, m, NULL);
    ASSERT(err == ERR_OK);
    err = suite_bind(s, &d, 1, m);
    ASSERT((err == ERR_OK) == (m->count == 0));
    check_mistakes(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct suite *s = NULL;

    ASSERT(m);
    enum err err = suite_parse((struct slice){(const char *)bytes, len}, SOURCE_GUESS, "f", &s, m);
    ASSERT((err == ERR_OK) == (m->count == 0));
    check_mistakes(m);
    if (err == ERR_OK)
        bind(s, m);
    suite_free(s);
    free(m);
    return 0;
}
