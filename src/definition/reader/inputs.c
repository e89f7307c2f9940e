/* `inputs` of a definition: reads the rules (names, types, defaults), and checks the input of a
 * task against them. */
#include <stdarg.h>
#include <stdio.h>

#include "definition/reader/definition_reader.h"

static const struct {
    const char *name;
    enum json_type type;
    bool integer;
    const char *expected;
} types[] = {
    {"any", JSON_NULL, false, "any value"},         {"string", JSON_STRING, false, "a string"},
    {"integer", JSON_NUMBER, true, "an integer"},   {"number", JSON_NUMBER, false, "a number"},
    {"boolean", JSON_TRUE, false, "true or false"}, {"array", JSON_ARRAY, false, "an array"},
    {"object", JSON_OBJECT, false, "an object"},
};

struct rule_draft {
    struct input_rule rule;
    const struct json *type, *preset;
};

static void read_type(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct rule_draft *d = target;

    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (j->type == JSON_STRING && slice_is(j->text, types[i].name)) {
            d->type = j;
            d->rule.type = types[i].type;
            d->rule.integer = types[i].integer;
            return;
        }
    mistake_in(r, path, j, "string, integer, number, boolean, array, object or any");
}

/* An integer of any size, without fraction or exponent. */
static bool is_whole(const struct json *j)
{
    for (size_t i = j->text.ptr[0] == '-'; i < j->text.len; i++)
        if (j->text.ptr[i] < '0' || j->text.ptr[i] > '9')
            return false;
    return true;
}

static bool fits(const struct input_rule *rule, const struct json *j)
{
    if (rule->type == JSON_NULL)
        return true;
    if (rule->type == JSON_TRUE)
        return j->type == JSON_TRUE || j->type == JSON_FALSE;
    return j->type == rule->type && (!rule->integer || is_whole(j));
}

static const char *expected_of(const struct input_rule *rule)
{
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (types[i].type == rule->type && types[i].integer == rule->integer)
            return types[i].expected;
    UNREACHABLE();
}

static void read_rule(struct reader *r, const struct json *j, const struct path *path,
                      struct input_rule *rule)
{
    static const struct field fields[] = {
        REQUIRED("type", read_type, 0),
        FIELD("required", read_bool, offsetof(struct rule_draft, rule.required)),
        FIELD("default", read_node, offsetof(struct rule_draft, preset)),
    };
    struct rule_draft d = {.rule = {.name = j->key, .type = JSON_NULL}};
    struct path at = {path, SLICE("default"), 0};

    read_object(r, j, path, fields, COUNT_OF(fields), &d);
    if (d.preset) {
        d.rule.preset = d.preset->raw;
        if (d.type && !fits(&d.rule, d.preset))
            mistake_in(r, &at, d.preset, "%s", expected_of(&d.rule));
        if (d.rule.required)
            mistake_in(r, &at, d.preset, "no default: the input is required");
    }
    *rule = d.rule;
}

void read_inputs(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct definition *d = target;

    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "an object: the inputs by their names");
        return;
    }
    d->has_inputs = true;
    d->inputs = arena_alloc(r->arena, (j->count + 1) * sizeof *d->inputs);
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        read_rule(r, m, &at, &d->inputs[d->input_count++]);
    }
}

void definition_write_inputs(const struct definition *d, struct buf *b)
{
    if (!d->has_inputs) {
        json_null(b);
        return;
    }
    json_open(b, '[');
    for (size_t i = 0; i < d->input_count; i++) {
        const struct input_rule *rule = &d->inputs[i];
        json_open(b, '{');
        json_member_text(b, "name", rule->name);
        json_key(b, "type");
        for (size_t k = 0; k < COUNT_OF(types); k++)
            if (types[k].type == rule->type && types[k].integer == rule->integer)
                json_string(b, slice_of(types[k].name));
        json_member_bool(b, "required", rule->required);
        json_close(b, '}');
    }
    json_close(b, ']');
}

/* ---- the input of a task ---- */

/* Appends a complaint to the error message; those that do not fit are dropped. */
static PRINTF(2, 3) void complain(struct error *e, const char *fmt, ...)
{
    va_list ap;
    size_t len = e->code == ERR_OK ? 0 : strlen(e->text);

    if (e->code != ERR_OK && len + 2 < sizeof e->text) {
        memcpy(e->text + len, "; ", 3);
        len += 2;
    }
    va_start(ap, fmt);
    text_format(e->text + len, sizeof e->text - len, fmt, ap);
    va_end(ap);
    e->code = ERR_INVALID;
}

static const struct json *member_of(const struct json *object, struct slice name)
{
    for (const struct json *m = object->child; m; m = m->next)
        if (slice_eq(m->key, name))
            return m;
    return NULL;
}

static void check_unknown(const struct definition *d, const struct json *member, struct error *e)
{
    const struct input_rule *near = NULL;

    for (size_t i = 0; i < d->input_count; i++) {
        if (slice_eq(d->inputs[i].name, member->key))
            return;
        if (name_is_near(member->key, d->inputs[i].name))
            near = &d->inputs[i];
    }
    if (near)
        complain(e, "input \"%.*s\" is unknown, did you mean \"%.*s\"?", SLICE_ARG(member->key),
                 SLICE_ARG(near->name));
    else
        complain(e, "input \"%.*s\" is unknown", SLICE_ARG(member->key));
}

static void check_rule(const struct input_rule *rule, const struct json *member, struct error *e)
{
    if (!member && rule->required)
        complain(e, "input \"%.*s\" is missing, expected %s", SLICE_ARG(rule->name),
                 expected_of(rule));
    if (member && !fits(rule, member))
        complain(e, "input \"%.*s\": found %.*s, expected %s", SLICE_ARG(rule->name),
                 SLICE_ARG(slice_cut(member->raw, 60)), expected_of(rule));
}

static struct slice with_presets(const struct definition *d, const struct json *input,
                                 struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    for (const struct json *m = input->child; m; m = m->next) {
        json_key_slice(&b, m->key);
        json_raw(&b, m->raw);
    }
    for (size_t i = 0; i < d->input_count; i++)
        if (d->inputs[i].preset.ptr && !member_of(input, d->inputs[i].name)) {
            json_key_slice(&b, d->inputs[i].name);
            json_raw(&b, d->inputs[i].preset);
        }
    json_close(&b, '}');
    return arena_copy(a, buf_view(&b));
}

enum err definition_check_input(const struct definition *d, struct slice input, struct arena *a,
                                struct slice *ret, struct error *e)
{
    struct json *j = NULL;
    struct json_fault fault = {0};
    struct error story = {0};
    struct slice text = input.ptr ? input : SLICE("null");
    bool lacks_preset = false;

    if (json_parse(a, text, &j, &fault) != ERR_OK)
        return error_set(e, ERR_INVALID, "input: %s", fault.what);
    if (!d->has_inputs) {
        *ret = text;
        return ERR_OK;
    }
    if (j->type != JSON_OBJECT && j->type != JSON_NULL)
        return error_set(e, ERR_INVALID, "input: found %s, expected an object",
                         json_type_text(j->type));
    for (const struct json *m = j->child; m; m = m->next)
        check_unknown(d, m, &story);
    for (size_t i = 0; i < d->input_count; i++) {
        const struct json *member = member_of(j, d->inputs[i].name);
        check_rule(&d->inputs[i], member, &story);
        lacks_preset |= !member && d->inputs[i].preset.ptr;
    }
    if (story.code != ERR_OK)
        return error_set(e, ERR_INVALID, "%s", story.text);
    *ret = lacks_preset || j->type == JSON_NULL ? with_presets(d, j, a) : text;
    return ERR_OK;
}
