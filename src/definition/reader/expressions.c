/* Compiles the expressions of a definition and checks what they refer to: that steps exist, have
 * ended by then, and that paths can have a value. reference.c finds the references, shape.c
 * checks paths. */
#include <stdio.h>
#include <stdlib.h>

#include "definition/reader/definition_reader.h"
#include "definition/template/template.h"

struct watcher {
    struct reader *reader;
    const struct path *path;
    struct needed_step *steps;
    uint16_t count, cap;
};

/* Splits a message at "expected" into found and expected, which a mistake holds separately. */
void mistake_of_expression(struct reader *r, const struct path *path, size_t offset,
                           const char *what)
{
    static const char word[] = "found ", between[] = ", expected ", ends[] = "the expression ends";
    struct slice found = slice_of(what);
    const char *expected = "an expression";

    for (const char *p = what; (p = strstr(p, between)); p += strlen(between)) {
        found.len = (size_t)(p - what); /* the last one: `found` may contain the same words */
        expected = p + strlen(between);
    }
    if (slice_is(found, ends))
        found = SLICE("the end of the expression");
    else if (strncmp(what, word, strlen(word)) == 0)
        found = (struct slice){found.ptr + strlen(word), found.len - strlen(word)};
    CLEANUP(buf_fini) struct buf copy = {0};
    buf_slice(&copy, found);
    mistake_at(r, path, offset, copy.ptr, "%s", expected);
}

static void report_fault(void *arg, const struct json *string, size_t at, const char *what)
{
    struct watcher *w = arg;

    mistake_of_expression(w->reader, w->path, reader_string_offset(w->reader, string, at), what);
}

/* The offset in the text is computed only for a message: it is slow in long strings. */
static void unknown_step(struct watcher *w, const struct json *string, size_t at, struct slice name)
{
    char found[100];

    if (w->reader->mistakes->count == MISTAKES_MAX)
        return;
    size_t offset = reader_string_offset(w->reader, string, at);
    struct slice near = reader_step_near(w->reader, name);
    (void)snprintf(found, sizeof found, "step \"%.*s\"", SLICE_ARG(slice_cut(name, 80)));
    if (near.ptr)
        mistake_at(w->reader, w->path, offset, found, "did you mean \"%.*s\"?", SLICE_ARG(near));
    else
        mistake_at(w->reader, w->path, offset, found, "the name of a step");
}

/* The step has ended, but its outcome may be unknown: true of steps of a task that is being
 * undone. */
static bool sees_all_but_outcomes(const struct reader *r, uint16_t to)
{
    enum visible visible = reading_of(r)->visible;

    return visible == VISIBLE_UNDO || (visible == VISIBLE_ON_UNDO && !reads_on_undo(r, to));
}

/* Reports a reference to a step of on_undo from an expression that is evaluated only before that
 * step, or in tasks that are not undone. */
static bool uses_later_step(struct watcher *w, const struct json *string, size_t at, uint16_t to)
{
    struct reader *r = w->reader;

    if (!reads_on_undo(r, to) || reading_of(r)->visible == VISIBLE_ON_UNDO)
        return false;
    mistake_at(r, w->path, reader_string_offset(r, string, at), "a step of on_undo",
               "a step of steps: those of on_undo run after all others, and only when a task is "
               "undone");
    return true;
}

static void add_use(struct reader *r, const struct watcher *w, uint16_t to,
                    const struct json *string, size_t at)
{
    CLEANUP(buf_fini) struct buf path = {0};

    if (reading_of(r)->use_count == reading_of(r)->use_cap) {
        reading_of(r)->use_cap = reading_of(r)->use_cap ? reading_of(r)->use_cap * 2 : 16;
        reading_of(r)->uses =
            realloc(reading_of(r)->uses, reading_of(r)->use_cap * sizeof *reading_of(r)->uses);
        ASSERT(reading_of(r)->uses);
    }
    struct step_use *l = &reading_of(r)->uses[reading_of(r)->use_count++];
    *l = (struct step_use){.from = reading_of(r)->step,
                           .to = to,
                           .is_undo = sees_all_but_outcomes(r, to),
                           .string = string,
                           .at = at};
    path_write(&path, w->path);
    struct slice kept = slice_cut(buf_view(&path), sizeof l->path - 1);
    memcpy(l->path, kept.ptr, kept.len);
}

static void need_members(struct watcher *w, struct needed_step *s, const struct reference *ref)
{
    s->members |= ref->members;
    if (ref->members & MEMBER_INPUT)
        wanted_join(&s->input, w->reader->arena, &ref->seen);
    if (ref->members & MEMBER_OUTPUT)
        wanted_join(&s->output, w->reader->arena, &ref->seen);
}

static void remember_step(struct watcher *w, uint16_t step, const struct reference *ref)
{
    for (uint16_t i = 0; i < w->count; i++)
        if (w->steps[i].step == step) {
            need_members(w, &w->steps[i], ref);
            return;
        }
    if (w->count == w->cap) {
        w->cap = w->cap ? (uint16_t)(w->cap * 2) : 8;
        w->steps = realloc(w->steps, w->cap * sizeof *w->steps);
        ASSERT(w->steps);
    }
    w->steps[w->count] = (struct needed_step){.step = step};
    need_members(w, &w->steps[w->count++], ref);
}

/* Reports what an expression of a step with for_each cannot see: an item where there is none yet,
 * or the outputs of all items where one is undone. True: reported, or no reference to a step. */
static bool report_of_items(struct watcher *w, const struct json *string, size_t at,
                            const struct reference *ref, int step)
{
    struct reader *r = w->reader;
    enum seen_of_items items = reading_of(r)->items;

    if (ref->is_item && items == ITEM_BARRED)
        mistake_at(r, w->path, reader_string_offset(r, string, at), "an item",
                   "nothing of items: this is evaluated once, before they begin");
    if (ref->is_output)
        warn_at(r, w->path, reader_string_offset(r, string, at), SLICE("output of the item"),
                "// and what holds without it: where the outcome is unknown there is no output");
    if (ref->is_item || ref->is_output)
        return true;
    if (items != ITEM_UNDONE || step != reading_of(r)->step || ref->is_unchecked
        || (ref->members & MEMBER_OUTPUT) == 0)
        return false;
    mistake_at(r, w->path, reader_string_offset(r, string, at), "the outputs of all items",
               ".output: what is undone is one item");
    return true;
}

static void report_reference(void *arg, const struct json *string, size_t at,
                             const struct reference *ref)
{
    struct watcher *w = arg;
    struct reader *r = w->reader;
    int index = reader_step_index(r, ref->step);

    if (!reading_of(r)->steps) /* the steps have mistakes, reported before */
        return;
    if (report_of_items(w, string, at, ref, index))
        return;
    if (ref->is_unchecked) {
        if (index >= 0)
            remember_step(w, (uint16_t)index, ref);
        return;
    }
    if (index < 0) {
        unknown_step(w, string, at, ref->step);
        return;
    }
    if (uses_later_step(w, string, at, (uint16_t)index))
        return;
    if (sees_all_but_outcomes(r, (uint16_t)index) ? ref->needs_output
                                                  : reading_of(r)->visible != VISIBLE_ALL)
        add_use(r, w, (uint16_t)index, string, at);
    remember_step(w, (uint16_t)index, ref);
}

static void report_odd_name(void *arg, const struct json *string, size_t at,
                            const struct odd_name *odd)
{
    struct watcher *w = arg;

    if (!w->reader->warnings || w->reader->warnings->count == MISTAKES_MAX)
        return;
    shape_warn(w->reader, w->path, reader_string_offset(w->reader, string, at), odd);
}

/* The references as the evaluation needs them. Frees the watcher's list. */
static struct needs needs_of(struct watcher *w, const struct references *refs)
{
    struct needs n = {.input = refs->input,
                      .task = refs->task,
                      .signals = refs->signals,
                      .output = refs->output,
                      .round = refs->round,
                      .item = refs->item,
                      .index = refs->index,
                      .all_steps = refs->steps,
                      .of_input = *refs->of_input,
                      .count = w->count};

    if (refs->of_output)
        n.of_output = *refs->of_output;
    if (refs->of_item)
        n.of_item = *refs->of_item;
    if (w->count > 0) {
        n.steps = arena_alloc(w->reader->arena, w->count * sizeof *n.steps);
        memcpy(n.steps, w->steps, w->count * sizeof *n.steps);
    }
    free(w->steps);
    return n;
}

static void report_all(struct watcher *w, const struct json *j, const struct references *refs,
                       const struct odd_name *odd)
{
    for (const struct reference *one = refs->list; one; one = one->next)
        report_reference(w, j, one->at, one);
    for (; odd; odd = odd->next)
        report_odd_name(w, j, odd->at, odd);
}

/* The parts of the values that become those of `needs`. */
struct wanted_of {
    struct wanted input, output, item;
};

/* What the expressions being read may refer to. */
static struct references references_of(struct reader *r, struct wanted_of *of)
{
    enum seen_of_rounds rounds = reading_of(r)->rounds;
    enum seen_of_items items = reading_of(r)->items;
    bool output = rounds == ROUNDS_ANSWER || items == ITEM_UNDONE;

    return (struct references){.of_input = &of->input,
                               .of_output = output ? &of->output : NULL,
                               .of_item =
                                   items == ITEM_SEEN || items == ITEM_UNDONE ? &of->item : NULL,
                               .may_fail = items == ITEM_UNDONE,
                               .sees_round = rounds != ROUNDS_NONE,
                               .scope = shape_of_scope(r)};
}

void read_condition(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct watcher w = {.reader = r, .path = path};
    struct wanted_of of = {0};
    struct references refs = references_of(r, &of);
    struct expression *x = NULL;
    struct error e = {0};
    size_t column = 0;

    if (j->type != JSON_STRING) {
        mistake_in(r, path, j, "an expression in a string");
        return;
    }
    if (expression_compile(j->text, r->arena, &x, &column, &e) != ERR_OK) {
        report_fault(&w, j, column - 1, e.text);
        return;
    }
    references_collect(x, false, r->arena, &refs);
    const struct odd_name *odd = shape_odd_in_scope(x, &refs, r->arena);
    report_all(&w, j, &refs, odd);
    if (!refs.input && !refs.task && !refs.steps && !refs.output && !refs.round && !refs.item
        && !refs.index && !refs.list && !odd && reading_of(r)->visible != VISIBLE_MATCH)
        warn_at(r, path, j->at, j->raw, "a condition that depends on something");
    x->needs = needs_of(&w, &refs);
    x->text = j->text;
    *(struct expression **)target = x;
}

typedef struct template *template_reader(const struct json *value, struct arena *a,
                                         struct template_watch *w);

static struct template *read_watched(struct reader *r, const struct json *j,
                                     const struct path *path, template_reader *read)
{
    struct watcher watcher = {.reader = r, .path = path};
    struct wanted_of of = {0};
    struct template_watch w = {&watcher, report_fault, report_reference, report_odd_name,
                               references_of(r, &of)};
    struct template *t = read(j, r->arena, &w);

    *template_needs(t) = needs_of(&watcher, &w.refs);
    return t;
}

void read_template(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    *(struct template **)target = read_watched(r, j, path, template_read);
}

void read_template_parts(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    *(struct template **)target = read_watched(r, j, path, template_read_parts);
}
