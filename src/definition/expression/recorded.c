/* Reads the needed parts of recorded values: a scanner that finds the ends of values without
 * building a tree, and a tree of what is needed. The machine pays for each byte before it is
 * scanned, or with its token. */
#include "definition/expression/recorded.h"

#include "definition/expression/value.h"
#include "json/text.h"

/* Costs in parts of steps (table in machine.h). */
enum {
    BYTES_PER_PART = 16,       /* skipped outside of strings ... */
    TEXT_BYTES_PER_PART = 128, /* ... and inside */
    TEXT_PARTS = 2,            /* a string, and each quote in it */
    SPACES_PER_PART = 8,
    MEMBER_PARTS = 8, /* a member of an object whose members are searched */
    LEAF_PARTS = 8,   /* a value that is needed */
};

struct scanner {
    struct machine *machine;
    const char *p, *end;
    uint32_t deepest;
    bool corrupt;
};

static bool give_up(struct scanner *s)
{
    s->corrupt = true;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The end of the bytes that can be paid for, and slightly more: the overrun is too short to block
 * the event loop. */
static const char *paid_end(const struct scanner *s, size_t bytes_per_part)
{
    size_t most = (s->machine->parts_left + 1) * bytes_per_part;

    return (size_t)(s->end - s->p) < most ? s->end : s->p + most;
}

/* White space is paid with the token before it: recorded values contain little, but may contain
 * much. */
static bool pass_space(struct scanner *s)
{
    const char *from = s->p;
    const char *end = paid_end(s, SPACES_PER_PART);

    while (s->p < end && is_space(*s->p))
        s->p++;
    return machine_pay(s->machine, (size_t)(s->p - from) / SPACES_PER_PART);
}

/* Whether an odd number of backslashes precedes p. */
static bool is_escaped(const char *from, const char *p)
{
    const char *first = p;

    while (first > from && first[-1] == '\\')
        first--;
    return (p - first) % 2 != 0;
}

/* At a quote. Stops after the closing quote. */
static bool pass_text(struct scanner *s)
{
    const char *inside = ++s->p;
    const char *from = inside;

    for (;;) {
        const char *end = paid_end(s, TEXT_BYTES_PER_PART);
        const char *quote = memchr(s->p, '"', (size_t)(end - s->p));
        if (!quote)
            return end == s->end ? give_up(s) : machine_is_spent(s->machine);
        size_t seen = (size_t)(quote - s->p);
        bool is_inside = quote > inside && quote[-1] == '\\';
        size_t slashes = is_inside ? seen / 8 : 0;
        if (!machine_pay(s->machine, TEXT_PARTS + seen / TEXT_BYTES_PER_PART + slashes))
            return false;
        s->p = quote + 1;
        if (!is_inside || !is_escaped(from, quote))
            return true;
        from = s->p; /* each backslash is counted once */
    }
}

/* A table, because it is used for each byte. */
static bool is_structure(char c)
{
    static const bool table[256] = {
        ['"'] = true, ['['] = true, [']'] = true, ['{'] = true, ['}'] = true};

    return table[(unsigned char)c];
}

/* Skips to the next quote or bracket. */
static bool pass_plain(struct scanner *s)
{
    const char *from = s->p;
    const char *end = paid_end(s, BYTES_PER_PART);

    while (s->p < end && !is_structure(*s->p))
        s->p++;
    return machine_pay(s->machine, 1 + (size_t)(s->p - from) / BYTES_PER_PART);
}

/* Skips the container whose bracket is next. */
static bool pass_container(struct scanner *s)
{
    uint32_t depth = 0;

    do {
        if (!pass_plain(s))
            return false;
        if (s->p == s->end)
            return give_up(s);
        char c = *s->p;
        if (c == '"') {
            if (!pass_text(s))
                return false;
            continue;
        }
        s->p++;
        depth += c == '[' || c == '{' ? 1 : UINT32_MAX;
        s->deepest = depth > s->deepest ? depth : s->deepest;
    } while (depth > 0);
    return true;
}

static bool pass_scalar(struct scanner *s)
{
    const char *from = s->p;
    const char *end = paid_end(s, BYTES_PER_PART);

    while (s->p < end && !is_structure(*s->p) && *s->p != ',' && !is_space(*s->p))
        s->p++;
    if (s->p == from)
        return give_up(s);
    return machine_pay(s->machine, 1 + (size_t)(s->p - from) / BYTES_PER_PART);
}

/* Skips the value that begins here. */
static bool pass_value(struct scanner *s)
{
    if (s->p == s->end)
        return give_up(s);
    if (*s->p == '"')
        return pass_text(s);
    return *s->p == '[' || *s->p == '{' ? pass_container(s) : pass_scalar(s);
}

uint32_t recorded_depth(struct machine *m, struct slice text)
{
    struct scanner s = {.machine = m, .p = text.ptr, .end = text.ptr + text.len};

    if (pass_space(&s))
        (void)pass_value(&s);
    return s.deepest;
}

/* ---- values ---- */

static enum json_type type_at(char c)
{
    return c == '{'   ? JSON_OBJECT
           : c == '[' ? JSON_ARRAY
           : c == '"' ? JSON_STRING
           : c == 'n' ? JSON_NULL
           : c == 't' ? JSON_TRUE
           : c == 'f' ? JSON_FALSE
                      : JSON_NUMBER;
}

static struct json *node_of(const struct scanner *s, struct slice raw)
{
    struct json *j = arena_alloc(s->machine->arena, sizeof *j);

    j->type = type_at(raw.ptr[0]);
    j->raw = raw;
    if (j->type == JSON_NUMBER)
        j->text = raw;
    return j;
}

/* Parses with the general parser. */
static struct json *parse(struct scanner *s, struct slice raw)
{
    struct json *j = NULL;
    size_t values = 0;

    if (!value_pay_tree(s->machine, raw, &values))
        return NULL;
    if (json_parse(s->machine->arena, raw, &j, NULL) == ERR_OK)
        return j;
    (void)give_up(s);
    return NULL;
}

/* Whether the quoted string contains no escapes. */
static bool is_literal(struct slice raw)
{
    return !memchr(raw.ptr, '\\', raw.len);
}

/* Builds a tree of the whole value. */
static struct json *whole(struct scanner *s, struct slice raw)
{
    char c = raw.ptr[0];

    if (c == '[' || c == '{')
        return parse(s, raw);
    if (!machine_pay(s->machine, LEAF_PARTS + text_parts(raw.len)))
        return NULL;
    if (c == '"' && !is_literal(raw))
        return parse(s, raw);
    struct json *j = node_of(s, raw);
    if (c == '"')
        j->text = arena_copy(s->machine->arena, (struct slice){raw.ptr + 1, raw.len - 2});
    return j;
}

static const struct wanted *find(const struct wanted *w, struct slice name)
{
    for (const struct wanted *one = w->child; one; one = one->next)
        if (slice_eq(one->name, name))
            return one;
    return NULL;
}

static struct json *value_here(struct scanner *s, const struct wanted *w);

/* Skips this character, which must be next, and the white space around it. */
static bool pass_mark(struct scanner *s, char mark)
{
    if (!pass_space(s))
        return false;
    if (s->p == s->end || *s->p != mark)
        return give_up(s);
    s->p++;
    return pass_space(s);
}

static bool name_here(struct scanner *s, struct slice *ret)
{
    const char *from = s->p;

    if (from == s->end || *from != '"')
        return give_up(s);
    if (!pass_text(s))
        return false;
    struct slice raw = {from, (size_t)(s->p - from)};
    *ret = (struct slice){raw.ptr + 1, raw.len - 2};
    if (is_literal(raw))
        return true;
    const struct json *j = parse(s, raw);
    if (j)
        *ret = j->text;
    return j != NULL;
}

/* Reads one member and adds it to the object if it is needed. */
static bool member_here(struct scanner *s, const struct wanted *w, struct json *object,
                        struct json ***end)
{
    struct slice name;

    if (!machine_pay(s->machine, MEMBER_PARTS + w->count) || !name_here(s, &name)
        || !pass_mark(s, ':'))
        return false;
    const struct wanted *below = find(w, name);
    if (!below)
        return pass_value(s);
    struct json *j = value_here(s, below);
    if (!j)
        return false;
    j->key = name;
    object->count++;
    **end = j;
    *end = &j->next;
    return true;
}

/* At the bracket of an object. Stops when all needed members were found. */
static struct json *members_here(struct scanner *s, const struct wanted *w)
{
    struct json *object = arena_alloc(s->machine->arena, sizeof *object);
    struct json **end = &object->child;

    object->type = JSON_OBJECT;
    if (!pass_mark(s, '{'))
        return NULL;
    while (s->p < s->end && *s->p != '}') {
        if (!member_here(s, w, object, &end))
            return NULL;
        if (object->count == w->count)
            return object;
        if (!pass_space(s))
            return NULL;
        if (s->p < s->end && *s->p == ',' && !pass_mark(s, ','))
            return NULL;
    }
    return object;
}

/* Reads the value that begins here. Only parts that are needed in two ways are scanned twice. */
static struct json *value_here(struct scanner *s, const struct wanted *w)
{
    const char *from = s->p;
    struct json *j = NULL;

    if (!pass_value(s))
        return NULL;
    struct slice raw = {from, (size_t)(s->p - from)};
    if (w->whole)
        return whole(s, raw);
    if (!machine_pay(s->machine, LEAF_PARTS))
        return NULL;
    if (!w->child || *from != '{')
        return node_of(s, raw);
    const char *behind = s->p;
    s->p = from;
    j = members_here(s, w);
    s->p = behind;
    if (j)
        j->raw = raw;
    return j;
}

static struct json *take(struct scanner *s, const struct wanted *w)
{
    if (!pass_space(s))
        return NULL;
    if (s->p == s->end) {
        (void)give_up(s);
        return NULL;
    }
    if (w->whole && (*s->p == '{' || *s->p == '[')) /* nothing follows it */
        return whole(s, (struct slice){s->p, (size_t)(s->end - s->p)});
    if (*s->p == '{' && w->child && !w->is_given)
        return members_here(s, w);
    return value_here(s, w);
}

struct json *recorded_read(struct machine *m, struct slice text, const struct wanted *w,
                           bool *ret_corrupt)
{
    struct scanner s = {.machine = m, .p = text.ptr, .end = text.ptr + text.len};
    struct json *j = take(&s, w);

    *ret_corrupt = !j && !m->is_fatal;
    return j;
}

/* ---- members ---- */

/* Passes the bracket at the beginning, or the comma after a member. False: no member follows. */
static bool pass_to_member(struct scanner *s, struct recorded_walk *w)
{
    if (!pass_space(s))
        return false;
    if (s->p == s->end || (!w->has_begun && *s->p != '[' && *s->p != '{'))
        return give_up(s);
    if (!w->has_begun)
        w->is_object = *s->p == '{';
    if (*s->p == (w->is_object ? '}' : ']'))
        return false;
    if (w->has_begun && *s->p != ',')
        return give_up(s);
    s->p++;
    w->has_begun = true;
    return pass_space(s) && (s->p < s->end || give_up(s)) && *s->p != (w->is_object ? '}' : ']');
}

bool recorded_next(struct recorded_walk *w, struct slice *ret_name, struct slice *ret_value)
{
    struct scanner s = {.machine = w->machine, .p = w->rest.ptr, .end = w->rest.ptr + w->rest.len};
    const char *name = NULL;

    *ret_name = SLICE_NONE;
    bool any = pass_to_member(&s, w);
    name = s.p;
    if (any && w->is_object) {
        any = (*s.p == '"' || give_up(&s)) && pass_text(&s);
        *ret_name = (struct slice){name, (size_t)(s.p - name)};
        any = any && pass_mark(&s, ':');
    }
    const char *value = s.p;
    any = any && machine_pay(s.machine, MEMBER_PARTS) && pass_value(&s);
    *ret_value = (struct slice){value, (size_t)(s.p - value)};
    w->rest = (struct slice){s.p, (size_t)(s.end - s.p)};
    w->is_corrupt |= s.corrupt;
    return any;
}
