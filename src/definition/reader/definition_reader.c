/* Shared by the files that read parts of a definition: reserved words, and steps by index and
 * name. See definition_reader.h; config/config_reader.c reads fields. */
#include "definition/reader/definition_reader.h"

const struct reserved definition_reserved[] = {
    {"for_each", "for_each is for steps with an agent, or with task", NULL},
    {"concurrency", "concurrency is for steps with for_each",
     "; for tasks with the same key write lock"},
    {"max_items", "max_items is for steps with for_each", NULL},
    {"on_item_failure", "on_item_failure is for steps with for_each", NULL},
    {"schedule", "\"schedule\" is reserved for later", NULL},
    {"needs", "\"needs\" is unknown, use after", NULL},
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

/* The next step: of `steps`, then of `on_undo`. */
static const struct json *next_step(const struct reader *r, uint16_t i, const struct json *step)
{
    return i + 1 == reading_of(r)->main_count && reading_of(r)->on_undo
               ? reading_of(r)->on_undo->child
               : step->next;
}

void reader_learn_names(struct reader *r)
{
    uint16_t count = reading_of(r)->step_count;
    uint16_t *indexes = arena_alloc(r->arena, (count + 1u) * sizeof *indexes);
    bool *is_each = arena_alloc(r->arena, (count + 1u) * sizeof *is_each);
    const struct json *s = reading_of(r)->steps->child;

    ASSERT(count <= STEPS_MAX);
    for (uint16_t i = 0; i < count; s = next_step(r, i, s), i++) {
        struct slice name = json_get_text(s, "name");
        indexes[i] = i;
        is_each[i] = json_get(s, "for_each") != NULL;
        reading_of(r)->has_each |= is_each[i];
        if (name.ptr && !map_get(&reading_of(r)->names, name))
            map_put(&reading_of(r)->names, name, &indexes[i]);
    }
    reading_of(r)->is_each = is_each;
}

const struct json *reader_step(const struct reader *r, uint16_t step)
{
    bool on_undo = reads_on_undo(r, step);
    const struct json *j = (on_undo ? reading_of(r)->on_undo : reading_of(r)->steps)->child;

    for (uint16_t n = on_undo ? reading_of(r)->main_count : 0; n < step; n++)
        j = j->next;
    return j;
}

struct path reader_step_path(const struct reader *r, uint16_t step, struct path *list)
{
    bool on_undo = reads_on_undo(r, step);

    *list = (struct path){NULL, on_undo ? SLICE("on_undo") : SLICE("steps"), 0};
    return (struct path){list, SLICE_NONE, on_undo ? step - reading_of(r)->main_count : step};
}

int reader_step_index(const struct reader *r, struct slice name)
{
    const uint16_t *index = map_get(&reading_of(r)->names, name);

    return index ? *index : -1;
}

struct slice reader_step_near(const struct reader *r, struct slice text)
{
    const struct json *s = reading_of(r)->steps ? reading_of(r)->steps->child : NULL;

    for (uint16_t i = 0; s; s = next_step(r, i, s), i++) {
        struct slice name = json_get_text(s, "name");
        if (name.ptr && name_is_near(text, name))
            return name;
    }
    return SLICE_NONE;
}
