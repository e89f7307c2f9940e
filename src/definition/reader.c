#include "definition/reader.h"

const struct reserved definition_reserved[] = {
    {"for_each", "\"for_each\" is reserved for later"},
    {"wait", "\"wait\" is reserved for later"},
    {"signal", "\"signal\" is reserved for later"},
    {"task", "\"task\" is reserved for later"},
    {"concurrency", "\"concurrency\" is reserved for later"},
    {"schedule", "\"schedule\" is reserved for later"},
    {"needs", "\"needs\" is not known, write after"},
};
const size_t definition_reserved_count = COUNT_OF(definition_reserved);

void read_on_failure(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const char *const words[] = {
        [ON_FAILURE_UNDO] = "undo",
        [ON_FAILURE_HOLD] = "hold",
        [ON_FAILURE_CONTINUE] = "continue",
    };

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (j->type == JSON_STRING && slice_is(j->text, words[i])) {
            *(enum on_failure *)target = (enum on_failure)i;
            return;
        }
    mistake_in(r, path, j, "undo, hold or continue");
}

void reader_learn_names(struct reader *r, const struct json *steps)
{
    uint16_t *indexes = arena_alloc(r->arena, (steps->count + 1u) * sizeof *indexes);
    uint16_t i = 0;

    ASSERT(steps->count <= STEPS_MAX);
    reading_of(r)->steps = steps;
    for (const struct json *s = steps->child; s; s = s->next, i++) {
        struct slice name = json_get_text(s, "name");
        indexes[i] = i;
        if (name.ptr && !map_get(&reading_of(r)->names, name))
            map_put(&reading_of(r)->names, name, &indexes[i]);
    }
}

int reader_step_index(const struct reader *r, struct slice name)
{
    const uint16_t *index = map_get(&reading_of(r)->names, name);

    return index ? *index : -1;
}

struct slice reader_step_near(const struct reader *r, struct slice text)
{
    for (const struct json *s = reading_of(r)->steps ? reading_of(r)->steps->child : NULL; s;
         s = s->next) {
        struct slice name = json_get_text(s, "name");
        if (name.ptr && name_is_near(text, name))
            return name;
    }
    return SLICE_NONE;
}
