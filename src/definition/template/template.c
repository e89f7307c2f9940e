/* Templates: JSON values whose strings contain ${ expression }. Reads, combines and evaluates
 * them; see expression.h and template.h. */
#include "definition/template/template.h"

#include <stdio.h>

#include "definition/expression/machine.h"
#include "definition/expression/node.h"
#include "definition/expression/recorded.h"
#include "definition/expression/value.h"
#include "json/escape.h"

enum template_kind {
    TEMPLATE_RAW,   /* without expressions: `text` is JSON */
    TEMPLATE_PLAIN, /* part of a string: `text` is decoded */
    TEMPLATE_VALUE, /* an expression: alone, or part of a string */
    TEMPLATE_STRING,
    TEMPLATE_ARRAY,
    TEMPLATE_OBJECT,
};

struct template
{
    enum template_kind kind;
    struct slice text; /* of an expression: its source, for messages */
    struct slice key;
    struct expression *expression;
    bool is_given; /* of an expression: the values it refers to are passed on unchanged, and may
                      remain texts */
    struct template *child, *next;
    struct needs needs; /* of the outermost template */
};

struct reader {
    struct arena *arena;
    struct template_watch *watch;
};

static struct template *template_new(struct reader *r, enum template_kind kind, struct slice text)
{
    struct template *t = arena_alloc(r->arena, sizeof *t);

    t->kind = kind;
    t->text = text;
    return t;
}

static void report_references(struct reader *r, const struct json *string, size_t at,
                              const struct expression *x, bool is_given)
{
    struct template_watch *w = r->watch;
    struct references own = {.of_input = w->refs.of_input,
                             .of_output = w->refs.of_output,
                             .of_item = w->refs.of_item,
                             .sees_round = w->refs.sees_round,
                             .may_fail = w->refs.may_fail,
                             .scope = w->refs.scope};

    references_collect(x, is_given, r->arena, &own);
    w->refs.input |= own.input;
    w->refs.task |= own.task;
    w->refs.signals |= own.signals;
    w->refs.steps |= own.steps;
    w->refs.output |= own.output;
    w->refs.round |= own.round;
    w->refs.item |= own.item;
    w->refs.index |= own.index;
    for (const struct reference *one = own.list; one; one = one->next)
        w->reference(w->arg, string, at + one->at, one);
    const struct odd_name *odd = shape_odd_in_scope(x, &own, r->arena);
    for (; odd; odd = odd->next)
        w->odd(w->arg, string, at + odd->at, odd);
}

/* Reads the expression whose "${" is at `at`. Returns the end of its "}", after a fault the end of
 * the string. */
static size_t read_expression(struct reader *r, const struct json *string, size_t at,
                              struct template **ret)
{
    struct slice rest = {string->text.ptr + at + 2, string->text.len - at - 2};
    struct expression *x = NULL;
    struct error e = {0};
    size_t end = 0;
    size_t column = 0;

    if (node_parse(rest, true, r->arena, &x, &end, &column, &e) != ERR_OK) {
        r->watch->fault(r->watch->arg, string, at + 2 + column - 1, e.text);
        *ret = template_new(r, TEMPLATE_PLAIN, SLICE(""));
        return string->text.len;
    }
    bool is_given = at == 0 && end + 3 == string->text.len; /* the string has no other parts */
    report_references(r, string, at + 2, x, is_given);
    *ret = template_new(r, TEMPLATE_VALUE, arena_copy(r->arena, (struct slice){rest.ptr, end}));
    (*ret)->expression = x;
    (*ret)->is_given = is_given && reference_is_path(x);
    return at + 2 + end + 1;
}

/* The first "${" or "$${" at or after `at`; text.len: there is none. */
static size_t find_mark(struct slice text, size_t at)
{
    for (; at + 1 < text.len; at++) {
        if (text.ptr[at] != '$')
            continue;
        if (text.ptr[at + 1] == '{')
            return at;
        if (at + 2 < text.len && text.ptr[at + 1] == '$' && text.ptr[at + 2] == '{')
            return at;
    }
    return text.len;
}

static void add_child(struct template *t, struct template ***end, struct template *child)
{
    if (!*end)
        *end = &t->child;
    **end = child;
    *end = &child->next;
}

static void add_plain(struct reader *r, struct template *t, struct template ***end,
                      struct slice text)
{
    if (text.len > 0)
        add_child(t, end, template_new(r, TEMPLATE_PLAIN, arena_copy(r->arena, text)));
}

/* A string without expressions; "$${" becomes "${". */
static struct template *plain_string(struct reader *r, const struct template *string)
{
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf json = {0};

    for (const struct template *part = string->child; part; part = part->next)
        buf_slice(&text, part->text);
    json_string(&json, buf_view(&text));
    return template_new(r, TEMPLATE_RAW, arena_copy(r->arena, buf_view(&json)));
}

static struct template *read_string(struct reader *r, const struct json *j)
{
    struct template *t = NULL;
    struct template **end = NULL;
    struct slice text = j->text;
    bool any = false;
    size_t at = find_mark(text, 0);
    size_t from = 0;

    if (at == text.len)
        return template_new(r, TEMPLATE_RAW, arena_copy(r->arena, j->raw));
    t = template_new(r, TEMPLATE_STRING, SLICE_NONE);
    for (; at < text.len; at = find_mark(text, from)) {
        bool is_literal = text.ptr[at + 1] == '$';
        struct template *part = NULL;
        add_plain(r, t, &end, (struct slice){text.ptr + from, at - from});
        if (is_literal) {
            part = template_new(r, TEMPLATE_PLAIN, SLICE("${"));
            from = at + 3;
        } else {
            from = read_expression(r, j, at, &part);
            any = true;
        }
        add_child(t, &end, part);
    }
    add_plain(r, t, &end, (struct slice){text.ptr + from, text.len - from});
    if (!any)
        return plain_string(r, t);
    return t->child->next ? t : t->child; /* a single expression keeps its type */
}

/* Whether a string in this JSON text may contain a '$'. */
static bool may_have_expressions(struct slice json)
{
    static const char escaped[] = "\\u0024";

    return memchr(json.ptr, '$', json.len)
           || memmem(json.ptr, json.len, escaped, sizeof escaped - 1);
}

/* A value without expressions is one template, however many members it has. */
static struct template *read_value(struct reader *r, const struct json *j)
{
    struct template *t = NULL;
    struct template **end = NULL;
    bool any = false;

    if (!may_have_expressions(j->raw))
        return template_new(r, TEMPLATE_RAW, arena_copy(r->arena, j->raw));
    if (j->type == JSON_STRING)
        return read_string(r, j);
    t = template_new(r, j->type == JSON_OBJECT ? TEMPLATE_OBJECT : TEMPLATE_ARRAY, SLICE_NONE);
    for (const struct json *m = j->child; m; m = m->next) {
        struct template *child = read_value(r, m);
        child->key = m->key.ptr ? arena_copy(r->arena, m->key) : SLICE_NONE;
        any |= child->kind != TEMPLATE_RAW || !slice_eq(child->text, m->raw); /* it had "$${" */
        add_child(t, &end, child);
    }
    if (any)
        return t;
    return template_new(r, TEMPLATE_RAW, arena_copy(r->arena, j->raw));
}

struct template *template_read(const struct json *value, struct arena *a, struct template_watch *w)
{
    struct reader r = {a, w};

    return read_value(&r, value);
}

/* ---- templates built from others ---- */

struct template *template_new_raw(struct arena *a, struct slice json)
{
    struct template *t = arena_alloc(a, sizeof *t);

    t->kind = TEMPLATE_RAW;
    t->text = arena_copy(a, json);
    return t;
}

struct template *template_new_object(struct arena *a)
{
    struct template *t = arena_alloc(a, sizeof *t);

    t->kind = TEMPLATE_OBJECT;
    return t;
}

static void needs_add(struct needs *n, struct arena *a, const struct needed_step *more)
{
    for (uint16_t i = 0; i < n->count; i++)
        if (n->steps[i].step == more->step) {
            n->steps[i].members |= more->members;
            wanted_join(&n->steps[i].input, a, &more->input);
            wanted_join(&n->steps[i].output, a, &more->output);
            return;
        }
    n->steps[n->count++] = *more;
}

static void needs_join(struct needs *n, struct arena *a, const struct needs *more)
{
    struct needed_step *steps =
        arena_alloc(a, ((size_t)n->count + more->count + 1) * sizeof *steps);

    if (n->count > 0)
        memcpy(steps, n->steps, n->count * sizeof *steps);
    n->steps = steps;
    for (uint16_t i = 0; i < more->count; i++)
        needs_add(n, a, &more->steps[i]);
    wanted_join(&n->of_input, a, &more->of_input);
    wanted_join(&n->of_output, a, &more->of_output);
    wanted_join(&n->of_item, a, &more->of_item);
    n->output |= more->output;
    n->round |= more->round;
    n->item |= more->item;
    n->index |= more->index;
    n->input |= more->input;
    n->task |= more->task;
    n->signals |= more->signals;
    n->all_steps |= more->all_steps;
}

void template_add(struct template *object, struct arena *a, struct slice key,
                  struct template *member)
{
    struct template **end = &object->child;

    ASSERT(object->kind == TEMPLATE_OBJECT);
    while (*end)
        end = &(*end)->next;
    *end = member;
    member->key = arena_copy(a, key);
    needs_join(&object->needs, a, &member->needs);
}

static struct template *text_part(struct reader *r, struct slice text)
{
    CLEANUP(buf_fini) struct buf json = {0};

    json_string(&json, text);
    return template_new(r, TEMPLATE_RAW, arena_copy(r->arena, buf_view(&json)));
}

struct template *template_read_parts(const struct json *string, struct arena *a,
                                     struct template_watch *w)
{
    struct reader r = {a, w};
    struct template *whole = read_string(&r, string);
    struct template *parts = NULL;
    struct template **end = NULL;

    if (whole->kind == TEMPLATE_RAW)
        return whole;
    const struct template *part = whole->kind == TEMPLATE_STRING ? whole->child : whole;
    parts = template_new(&r, TEMPLATE_ARRAY, SLICE_NONE);
    while (part) {
        CLEANUP(buf_fini) struct buf text = {0};
        for (; part && part->kind == TEMPLATE_PLAIN; part = part->next)
            buf_slice(&text, part->text);
        add_child(parts, &end, text_part(&r, buf_view(&text)));
        if (!part)
            break;
        struct template *value = template_new(&r, TEMPLATE_VALUE, part->text);
        value->expression = part->expression;
        value->is_given = part->is_given;
        add_child(parts, &end, value);
        part = part->next;
    }
    return parts;
}

static bool is_plain_path(struct slice json)
{
    for (size_t i = 1; i + 1 < json.len; i++) {
        unsigned char c = (unsigned char)json.ptr[i];
        if (c <= ' ' || c == 0x7f || c == '?' || c == '#' || c == '"' || c == '\\')
            return false;
    }
    return true;
}

bool template_path_is_plain(const struct template *parts)
{
    if (parts->kind == TEMPLATE_RAW)
        return is_plain_path(parts->text);
    for (const struct template *part = parts->child; part; part = part->next)
        if (part->kind == TEMPLATE_RAW && !is_plain_path(part->text))
            return false;
    return true;
}

struct needs *template_needs(struct template *t)
{
    return &t->needs;
}

bool template_is_text(const struct template *t)
{
    return t->kind == TEMPLATE_STRING || (t->kind == TEMPLATE_RAW && t->text.ptr[0] == '"');
}

bool template_is_output(const struct template *t)
{
    return t->kind == TEMPLATE_VALUE && t->needs.count == 1 && reference_is_output(t->expression);
}

struct first_fault {
    const char *base; /* offsets are relative to it */
    size_t *offset;
    struct error *error;
    bool any;
};

static void keep_first(void *arg, const struct json *string, size_t at, const char *what)
{
    struct first_fault *f = arg;

    if (f->any)
        return;
    f->any = true;
    *f->offset = (size_t)(string->raw.ptr - f->base) + string_raw_offset(string, at);
    (void)error_set(f->error, ERR_INVALID, "%s", what);
}

static void ignore_reference(void *arg, const struct json *string, size_t at,
                             const struct reference *ref)
{
    (void)arg;
    (void)string;
    (void)at;
    (void)ref;
}

enum err template_compile(const struct json *value, struct arena *a, struct template **ret,
                          size_t *ret_offset, struct error *e) /* NOLINT: written through f */
{
    struct first_fault f = {value->raw.ptr, ret_offset, e, false};
    struct template_watch w = {.arg = &f, .fault = keep_first, .reference = ignore_reference};
    struct template *t = template_read(value, a, &w);

    if (f.any)
        return e->code;
    *ret = t;
    return ERR_OK;
}

/* ---- evaluation ---- */

/* The position in the value. */
struct place {
    const struct place *up; /* NULL: the whole value */
    struct slice key;       /* NONE: an array element, see index */
    size_t index;
};

struct writer {
    struct buf out;
    const struct json *root;
    struct arena *arena;
    struct budget *budget;
    struct template_place *failed_at;
    struct error *error;
};

/* Building the result from values is paid from the same budget. */
static enum err machine_done(struct writer *w, const struct machine *m)
{
    machine_end(m, w->budget);
    return m->is_fatal ? error_set(w->error, ERR_INVALID, "%s", m->what) : ERR_OK;
}

/* The nesting depth of a value; m may have failed. */
static uint32_t nesting(struct machine *m, const struct json *j)
{
    uint32_t deepest = 0;

    for (const struct json *c = j->child; c && machine_pay(m, 1); c = c->next) {
        uint32_t depth = nesting(m, c);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + (j->type == JSON_ARRAY || j->type == JSON_OBJECT);
}

static bool is_plain_name(struct slice key)
{
    for (size_t i = 0; i < key.len; i++) {
        char c = key.ptr[i];
        bool is_digit = c >= '0' && c <= '9';
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_' && (!is_digit || i == 0))
            return false;
    }
    return key.len > 0;
}

static void write_place(struct buf *b, const struct place *p)
{
    if (!p)
        return;
    write_place(b, p->up);
    if (!p->key.ptr) {
        buf_fmt(b, "[%zu]", p->index);
    } else if (is_plain_name(p->key)) {
        buf_byte(b, '.');
        buf_slice(b, p->key);
    } else {
        buf_byte(b, '[');
        json_string(b, p->key);
        buf_byte(b, ']');
    }
}

/* Records the place of a failure; returns its code. */
static enum err failed(struct writer *w, const struct place *p)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct template_place *to = w->failed_at;

    write_place(&b, p);
    (void)snprintf(to->path, sizeof to->path, "%.*s",
                   SLICE_ARG(slice_cut(buf_view(&b), sizeof to->path - 1)));
    return w->error->code;
}

static void name_expression(struct error *e, struct slice text)
{
    enum { SHOWN_MAX = 80 };

    (void)error_wrap(e, "${%.*s%s}", SLICE_ARG(slice_cut(text, SHOWN_MAX)),
                     text.len > SHOWN_MAX ? "..." : "");
}

static enum err value_of(struct writer *w, const struct template *t, const struct json **ret)
{
    enum err err = machine_run(t->expression, w->root, w->arena, w->budget, ret, w->error);

    if (err != ERR_OK)
        name_expression(w->error, t->text);
    return err;
}

/* Fails as soon as the result is too long, so that no more of it is built. */
static enum err check_length(struct writer *w)
{
    if (!w->out.overflow)
        return ERR_OK;
    return error_set(w->error, ERR_INVALID, "the result is longer than %d bytes",
                     EXPRESSION_BYTES_MAX);
}

static enum err check_nesting(struct writer *w, const struct template *t, const struct json *j,
                              uint32_t depth)
{
    struct machine m = machine_begin(w->arena, w->budget);
    uint32_t levels = t->is_given ? recorded_depth(&m, j->raw) : nesting(&m, j);
    enum err err = machine_done(w, &m);

    if (err == ERR_OK && depth + levels > EXPRESSION_DEPTH_MAX)
        err = error_set(w->error, ERR_INVALID, "the result is nested too deeply");
    return err;
}

static enum err write_value(struct writer *w, const struct template *t, uint32_t depth)
{
    const struct json *j = NULL;
    enum err err = value_of(w, t, &j);

    if (err != ERR_OK)
        return err;
    err = check_nesting(w, t, j, depth);
    if (err != ERR_OK) {
        name_expression(w->error, t->text);
        return err;
    }
    json_raw(&w->out, j->raw);
    return check_length(w);
}

static enum err add_text(struct writer *w, struct buf *b, const struct json *j)
{
    CLEANUP(buf_fini) struct buf text = {.max = EXPRESSION_BYTES_MAX};
    struct machine m = machine_begin(w->arena, w->budget);

    if (j->type == JSON_STRING) {
        buf_slice(b, j->text);
        return ERR_OK;
    }
    (void)value_write_paid(&m, &text, j); /* its depth was checked */
    if (text.overflow)
        buf_end(b);
    buf_slice(b, buf_view(&text));
    return machine_done(w, &m);
}

static enum err write_text(struct writer *w, struct slice text)
{
    struct machine m = machine_begin(w->arena, w->budget);

    if (value_pay_text(&m, text))
        json_string(&w->out, text);
    return machine_done(w, &m);
}

static enum err write_string(struct writer *w, const struct template *t)
{
    CLEANUP(buf_fini) struct buf text = {.max = EXPRESSION_BYTES_MAX};

    for (const struct template *part = t->child; part; part = part->next) {
        const struct json *j = NULL;
        if (part->kind == TEMPLATE_PLAIN) {
            buf_slice(&text, part->text);
            continue;
        }
        ASSERT(part->kind == TEMPLATE_VALUE);
        enum err err = value_of(w, part, &j);
        if (err != ERR_OK)
            return err;
        err = add_text(w, &text, j);
        if (text.overflow)
            buf_end(&w->out);
        if (err == ERR_OK)
            err = check_length(w);
        if (err != ERR_OK)
            return err;
    }
    enum err err = write_text(w, buf_view(&text));
    return err == ERR_OK ? check_length(w) : err;
}

static enum err write_template(struct writer *w, const struct template *t, const struct place *p,
                               uint32_t depth);

static enum err write_members(struct writer *w, const struct template *t, const struct place *up,
                              uint32_t depth)
{
    bool is_object = t->kind == TEMPLATE_OBJECT;
    struct place p = {up, SLICE_NONE, 0};

    json_open(&w->out, is_object ? '{' : '[');
    for (const struct template *m = t->child; m; m = m->next, p.index++) {
        if (is_object)
            json_key_slice(&w->out, m->key);
        p.key = m->key;
        enum err err = write_template(w, m, &p, depth + 1);
        if (err != ERR_OK)
            return err;
    }
    json_close(&w->out, is_object ? '}' : ']');
    return ERR_OK;
}

static enum err write_template(struct writer *w, const struct template *t, const struct place *p,
                               uint32_t depth)
{
    switch (t->kind) {
    case TEMPLATE_RAW:
        json_raw(&w->out, t->text);
        return ERR_OK;
    case TEMPLATE_VALUE:
        return write_value(w, t, depth) == ERR_OK ? ERR_OK : failed(w, p);
    case TEMPLATE_STRING:
        return write_string(w, t) == ERR_OK ? ERR_OK : failed(w, p);
    case TEMPLATE_ARRAY:
    case TEMPLATE_OBJECT:
        return write_members(w, t, p, depth);
    case TEMPLATE_PLAIN:
        break;
    }
    UNREACHABLE();
}

enum err template_run(const struct template *t, const struct json *root, struct arena *a,
                      struct budget *budget, struct slice *ret, struct template_place *ret_place,
                      struct error *e)
{
    struct writer w = {.out = {.max = EXPRESSION_BYTES_MAX},
                       .root = root,
                       .arena = a,
                       .budget = budget,
                       .failed_at = ret_place,
                       .error = e};

    *ret_place = (struct template_place){""};
    if (t->kind == TEMPLATE_RAW) {
        *ret = t->text;
        return ERR_OK;
    }
    enum err err = write_template(&w, t, NULL, 0);
    if (err == ERR_OK)
        err = check_length(&w); /* text without expressions counts as well */
    if (err == ERR_OK)
        *ret = arena_copy(a, buf_view(&w.out));
    buf_fini(&w.out);
    return err;
}

enum err template_eval(const struct template *t, const struct json *root, struct arena *a,
                       struct slice *ret, struct error *e)
{
    struct budget budget = {TEMPLATE_BYTES_MAX, TEMPLATE_STEPS_MAX, false};
    struct template_place place;
    enum err err = template_run(t, root, a, &budget, ret, &place, e);

    if (err != ERR_OK && place.path[0])
        return error_wrap(e, "%s", place.path);
    return err;
}
