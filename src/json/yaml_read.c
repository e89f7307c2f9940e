/* Reads a YAML text with libyaml into the same trees as JSON, with the places of all values in
 * the text (yaml_read.h): its events are written as a JSON text, which json.c parses. Refuses
 * anchors, tags and other features that JSON lacks. yaml_words.c has the meaning of plain scalars
 * and the messages. */

#include "json/yaml_read.h"

#include <stdlib.h>
#include <yaml.h>

#include "json/text.h"
#include "json/yaml_words.h"

struct place {
    uint32_t at, key_at;
};

struct level {
    bool is_mapping;
    bool expects_key;
};

struct reader {
    yaml_parser_t parser;
    struct arena *arena;
    struct slice text;
    const struct yaml_watch *watch;
    size_t chars, bytes;  /* `bytes`: the offset of character `chars` */
    struct buf out;       /* the text read so far, as JSON */
    struct place *places; /* of its values, in the order of their starts */
    size_t place_count, place_cap;
    size_t key_at;
    uint32_t depth, depth_max;
    struct level levels[JSON_DEPTH_MAX];
    bool has_root;
    bool is_broken; /* `out` does not match the text */
    bool is_over;
};

static void set_fault(const struct reader *r, size_t offset, const char *found,
                      const char *expected)
{
    r->watch->fault(r->watch->arg, offset, found, expected);
}

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* Marks come nearly in order, so the search starts at the last one. */
static size_t offset_of(struct reader *r, const yaml_mark_t *mark)
{
    while (r->chars < mark->index && r->bytes < r->text.len) {
        r->bytes++;
        while (r->bytes < r->text.len && is_inside(r->text.ptr[r->bytes]))
            r->bytes++;
        r->chars++;
    }
    while (r->chars > mark->index) {
        r->bytes--;
        while (r->bytes > 0 && is_inside(r->text.ptr[r->bytes]))
            r->bytes--;
        r->chars--;
    }
    return r->bytes;
}

/* ---- checks before libyaml ---- */

/* Reports the first character that is not allowed in the text. */
static bool check_characters(const struct reader *r)
{
    const char *p = r->text.ptr;
    size_t bad = text_utf8_end(r->text);

    if (bad < r->text.len) {
        set_fault(r, bad, "bytes that are not UTF-8", "UTF-8 text");
        return false;
    }
    for (size_t i = 0; i < r->text.len; i++) {
        unsigned char c = (unsigned char)p[i];
        const char *why = NULL;
        if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
            why = c ? "a control character" : "a NUL character";
        else if (c == 0xc2 && (unsigned char)p[i + 1] < 0xa0)
            why = "a control character";
        else if (c == 0xe2
                 && (memcmp(p + i, "\xe2\x80\xa8", 3) == 0
                     || memcmp(p + i, "\xe2\x80\xa9", 3) == 0))
            why = "a line separator of Unicode";
        else if (c == 0xef && memcmp(p + i, "\xef\xbb\xbf", 3) == 0)
            why = "a byte order mark";
        else if (c == 0xef
                 && (memcmp(p + i, "\xef\xbf\xbe", 3) == 0
                     || memcmp(p + i, "\xef\xbf\xbf", 3) == 0))
            why = "an invalid character";
        if (why) {
            set_fault(r, i, why,
                      c ? "an escape in double quotes, such as \"\\u2028\"" : "text without it");
            return false;
        }
    }
    return true;
}

/* ---- values ---- */

static void add_place(struct reader *r, size_t at)
{
    if (r->place_count == r->place_cap) {
        r->place_cap = r->place_cap ? r->place_cap * 2 : 256;
        r->places = realloc(r->places, r->place_cap * sizeof *r->places);
        ASSERT(r->places);
    }
    r->places[r->place_count++] = (struct place){(uint32_t)at, (uint32_t)r->key_at};
}

static struct level *parent_of(struct reader *r)
{
    return r->depth > 0 ? &r->levels[r->depth - 1] : NULL;
}

/* A key or a value is complete. */
static void step_on(struct reader *r)
{
    struct level *l = parent_of(r);

    if (l && l->is_mapping)
        l->expects_key = !l->expects_key;
}

static void check_properties(struct reader *r, const yaml_event_t *e, const yaml_char_t *anchor,
                             const yaml_char_t *tag)
{
    if (anchor)
        set_fault(r, offset_of(r, &e->start_mark), "an anchor (&)",
                  "the value written out: anchors and aliases are not supported");
    else if (tag)
        set_fault(r, offset_of(r, &e->start_mark), "a tag (!)",
                  "a plain value: tags are not supported");
}

static void take_key(struct reader *r, const yaml_event_t *e, struct slice text, bool is_plain)
{
    size_t at = offset_of(r, &e->start_mark);

    r->key_at = at;
    if (is_plain && slice_is(text, "<<")) {
        set_fault(r, at, "a merge key (<<)", "the keys written out: merge keys are not supported");
        r->is_broken = true;
    }
    if (is_plain && text.len == 0) {
        set_fault(r, at, "a value without a key", "a key before the \":\"");
        r->is_broken = true;
    }
    json_key_slice(&r->out, text);
}

static void take_plain(struct reader *r, struct slice text, size_t at)
{
    switch (yaml_scalar_kind(text)) {
    case YAML_NULL:
        json_null(&r->out);
        return;
    case YAML_TRUE:
    case YAML_FALSE:
        json_bool(&r->out, yaml_scalar_kind(text) == YAML_TRUE);
        return;
    case YAML_NUMBER:
        json_raw(&r->out, text);
        return;
    case YAML_ODD_NUMBER: {
        CLEANUP(buf_fini) struct buf found = {0};
        buf_fmt(&found, "%.*s", SLICE_ARG(slice_cut(text, 80)));
        set_fault(r, at, found.ptr,
                  "a number as JSON writes it (10, -1, 0.5, 1e3), or a text in quotes");
        r->is_broken = true;
        json_null(&r->out);
        return;
    }
    case YAML_STRING:
        json_string(&r->out, text);
        return;
    }
    UNREACHABLE();
}

static void take_scalar(struct reader *r, const yaml_event_t *e)
{
    struct slice text = {(const char *)e->data.scalar.value, e->data.scalar.length};
    bool is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    struct level *l = parent_of(r);
    size_t at = offset_of(r, &e->start_mark);

    check_properties(r, e, e->data.scalar.anchor, e->data.scalar.tag);
    if (memchr(text.ptr, 0, text.len)) {
        set_fault(r, at, "a NUL character (\\0)", "text without it");
        r->is_broken = true;
        text = SLICE("");
    }
    if (l && l->is_mapping && l->expects_key) {
        take_key(r, e, text, is_plain);
    } else {
        add_place(r, at);
        if (is_plain)
            take_plain(r, text, at);
        else
            json_string(&r->out, text);
    }
    step_on(r);
}

static void take_alias(struct reader *r, const yaml_event_t *e)
{
    struct level *l = parent_of(r);

    set_fault(r, offset_of(r, &e->start_mark), "an alias (*)",
              "the value written out: anchors and aliases are not supported");
    r->is_broken = true;
    if (l && l->is_mapping && l->expects_key) {
        json_key_slice(&r->out, SLICE(""));
    } else {
        add_place(r, offset_of(r, &e->start_mark));
        json_null(&r->out);
    }
    step_on(r);
}

static void open_level(struct reader *r, const yaml_event_t *e, bool is_mapping)
{
    struct level *l = parent_of(r);
    size_t at = offset_of(r, &e->start_mark);

    if (r->depth == r->depth_max) {
        CLEANUP(buf_fini) struct buf limit = {0};
        buf_fmt(&limit, "at most %u levels", r->depth_max);
        set_fault(r, at, "a value nested too deeply", limit.ptr);
        r->is_broken = r->is_over = true;
        return;
    }
    if (l && l->is_mapping && l->expects_key) {
        set_fault(r, at, is_mapping ? "a mapping as a key" : "a list as a key",
                  "a text as a key: text that begins with { or [ needs quotes");
        r->is_broken = true;
        json_key_slice(&r->out, SLICE(""));
    }
    add_place(r, at);
    json_open(&r->out, is_mapping ? '{' : '[');
    r->levels[r->depth++] = (struct level){is_mapping, is_mapping};
}

static void close_level(struct reader *r)
{
    ASSERT(r->depth > 0);
    json_close(&r->out, r->levels[--r->depth].is_mapping ? '}' : ']');
    step_on(r);
}

static void begin_document(struct reader *r, const yaml_event_t *e)
{
    const yaml_version_directive_t *v = e->data.document_start.version_directive;
    size_t at = offset_of(r, &e->start_mark);

    if (r->has_root) {
        set_fault(r, at, "a second document", "one document");
        r->is_over = true;
        return;
    }
    r->has_root = true;
    if (v && (v->major != 1 || v->minor != 2))
        set_fault(r, at, "another version of YAML", "%YAML 1.2, or no such line");
    if (e->data.document_start.tag_directives.start != e->data.document_start.tag_directives.end)
        set_fault(r, at, "a %TAG line", "no tags: they are not supported");
}

static void take_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_STREAM_END_EVENT:
        r->is_over = true;
        return;
    case YAML_DOCUMENT_START_EVENT:
        begin_document(r, e);
        return;
    case YAML_ALIAS_EVENT:
        take_alias(r, e);
        return;
    case YAML_SCALAR_EVENT:
        take_scalar(r, e);
        return;
    case YAML_SEQUENCE_START_EVENT:
        check_properties(r, e, e->data.sequence_start.anchor, e->data.sequence_start.tag);
        open_level(r, e, false);
        return;
    case YAML_MAPPING_START_EVENT:
        check_properties(r, e, e->data.mapping_start.anchor, e->data.mapping_start.tag);
        open_level(r, e, true);
        return;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        close_level(r);
        return;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return;
    }
    UNREACHABLE();
}

static void explain(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    bool has_context = p->context && p->context_mark.index <= p->problem_mark.index;
    size_t context = has_context ? offset_of(r, &p->context_mark) : 0;
    size_t problem = offset_of(r, &p->problem_mark);
    struct yaml_words w;

    ASSERT(p->error != YAML_MEMORY_ERROR);
    yaml_explain(r->text, p->problem ? p->problem : "", has_context ? p->context : "", problem,
                 context, &w);
    set_fault(r, w.at, w.found, w.expected);
    r->is_broken = r->is_over = true;
}

static void read_events(struct reader *r)
{
    while (!r->is_over) {
        yaml_event_t e;
        if (!yaml_parser_parse(&r->parser, &e)) {
            explain(r);
            return;
        }
        take_event(r, &e);
        yaml_event_delete(&e);
    }
    if (!r->has_root) {
        set_fault(r, 0, "nothing", "keys and values");
        r->is_broken = true;
    }
}

/* The tree of the JSON text has its values in the same order. */
static size_t set_places(struct json *j, const struct place *places, size_t i)
{
    j->at = places[i].at;
    j->key_at = places[i].key_at;
    i++;
    for (struct json *m = j->child; m; m = m->next)
        i = set_places(m, places, i);
    return i;
}

static enum err make_tree(struct reader *r, struct json **ret)
{
    struct json_fault fault = {0};
    struct slice out = arena_copy(r->arena, buf_view(&r->out));
    enum err err = json_parse_twice(r->arena, out, r->depth_max, ret, &fault);

    ASSERT(err == ERR_OK); /* this file wrote that JSON */
    size_t count = set_places(*ret, r->places, 0);
    ASSERT(count == r->place_count);
    return ERR_OK;
}

enum err yaml_read(struct arena *a, struct slice text, uint32_t depth_max, struct json **ret,
                   const struct yaml_watch *w)
{
    struct reader r = {.arena = a,
                       .text = text.ptr ? text : SLICE(""),
                       .watch = w,
                       .depth_max = depth_max};
    enum err err = ERR_PARSE;

    ASSERT(depth_max <= JSON_DEPTH_MAX);
    if (text.len >= UINT32_MAX) {
        set_fault(&r, 0, "a text of 4 GiB or more", "a shorter one");
        return ERR_PARSE;
    }
    if (!check_characters(&r))
        return ERR_PARSE;
    int ok = yaml_parser_initialize(&r.parser);
    ASSERT(ok);
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)r.text.ptr, r.text.len);
    read_events(&r);
    yaml_parser_delete(&r.parser);
    if (!r.is_broken)
        err = make_tree(&r, ret);
    free(r.places);
    buf_fini(&r.out);
    return err;
}
