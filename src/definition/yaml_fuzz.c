/* Fuzz target of yaml_read.c and of definitions in YAML. An accepted text is a tree whose values
 * and strings have places in the text, and whose JSON is equivalent. An accepted definition is
 * the same (same.h) as JSON and when it is read again. A refused one has mistakes, each with its
 * place and a message in valid UTF-8. */

#include <stdlib.h>

#include "base/fuzz.h"
#include "definition/same.h"
#include "json/text.h"
#include "json/yaml_read.h"

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
        ASSERT(one->found[0]);
        ASSERT(one->expected[0]);
        check_words(one->path);
        check_words(one->found);
        check_words(one->expected);
    }
}

/* Each letter of a string occurs in the text as itself or as an escape. */
static void check_string(struct slice text, const struct json *j)
{
    size_t last = 0;

    for (size_t i = 0; i <= j->text.len; i += j->text.len > 200 ? 37 : 1) {
        char c = i < j->text.len ? j->text.ptr[i] : ' ';
        size_t at = yaml_string_offset(text, j, i);
        ASSERT(at <= text.len);
        ASSERT(at >= last);
        last = at;
        if (c >= '0' && c <= 'z') {
            ASSERT(at < text.len);
            ASSERT(text.ptr[at] == c || text.ptr[at] == '\\');
        }
    }
}

/* The properties of a YAML value precede it, but those are refused. */
static void check_tree(struct slice text, const struct json *j, bool is_clean)
{
    ASSERT(j->at <= text.len);
    ASSERT(j->key_at <= text.len);
    if (j->type == JSON_STRING && is_clean)
        check_string(text, j);
    for (const struct json *m = j->child; m; m = m->next)
        check_tree(text, m, is_clean);
}

static void count_fault(void *arg, size_t offset, const char *found, const char *expected)
{
    size_t *count = arg;

    (void)offset;
    check_words(found);
    check_words(expected);
    (*count)++;
}

static void read_tree(struct slice text)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    struct json *again = NULL;
    size_t faults = 0;
    struct yaml_watch w = {&faults, count_fault};

    if (yaml_read(&a, text, JSON_DEPTH_OUTSIDE, &j, &w) != ERR_OK) {
        ASSERT(faults > 0);
        return;
    }
    check_tree(text, j, faults == 0);
    enum err err = json_parse_twice(&a, j->raw, JSON_DEPTH_OUTSIDE, &again, NULL);
    ASSERT(err == ERR_OK);
    ASSERT(json_hash(j) == json_hash(again));
}

static void check_taken(const struct definition *d, struct mistakes *m)
{
    struct definition *json = NULL;
    struct definition *again = NULL;

    ASSERT(workflow_valid(&d->workflow));
    enum err err = definition_parse(d->json, DEFINITION_JSON, &json, m, NULL);
    ASSERT(err == ERR_OK);
    ASSERT(same_definition(d, json));
    err = definition_parse(d->text, DEFINITION_YAML, &again, m, NULL);
    ASSERT(err == ERR_OK);
    ASSERT(same_definition(d, again));
    ASSERT(d->is_yaml == again->is_yaml);
    definition_free(json);
    definition_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice text = {(const char *)bytes, len};
    struct mistakes *lists = calloc(2, sizeof *lists);
    struct definition *d = NULL;

    ASSERT(lists);
    read_tree(text.len ? text : SLICE(""));
    enum err err = definition_parse(text, DEFINITION_YAML, &d, &lists[0], &lists[1]);
    check_mistakes(&lists[0]);
    check_mistakes(&lists[1]);
    ASSERT((err == ERR_OK) == (lists[0].count == 0));
    if (err == ERR_OK)
        check_taken(d, &lists[0]);
    definition_free(d);
    free(lists);
    return 0;
}
