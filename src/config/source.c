/* Parses a text into a tree, before its contents have a meaning: JSON or YAML, repeated keys, byte
 * order marks. See config_reader.h. */

#include <stdio.h>

#include "config/config_reader.h"
#include "json/escape.h"
#include "json/text.h"
#include "json/yaml_read.h"

/* With more members only the first repeated key is reported, because each is compared with all. */
enum { TWICE_MAX = 1000 };

static bool begins_with_brace(struct slice text)
{
    size_t i = 0;

    while (i < text.len && text.ptr[i] != 0 && strchr(" \t\r\n", text.ptr[i]))
        i++;
    return i < text.len && text.ptr[i] == '{';
}

/* Some editors put a byte order mark in front. */
static struct slice without_mark(struct slice text)
{
    if (text.len >= 3 && memcmp(text.ptr, "\xef\xbb\xbf", 3) == 0)
        return (struct slice){text.ptr + 3, text.len - 3};
    return text;
}

/* The JSON parser's messages, and what they mean to a person. */
static const struct {
    const char *what, *found; /* NULL: the text at that position */
    const char *expected;
} words[] = {
    {"the text ends too early", "the text ends too early", "JSON, up to its last } or ]"},
    {"invalid object key", NULL, "a key in double quotes"},
    {"object key and value must be separated", NULL, "\":\" between key and value"},
    {"after key and value", NULL, "\",\" or \"}\""},
    {"after array element", NULL, "\",\" or \"]\""},
    {"unallowed token", NULL, "a value"},
    {"trailing garbage", NULL, "the end of the text"},
    {"invalid char in json text", NULL,
     "a value: text in double quotes, a number, true, false or null"},
    {"invalid string in json text", NULL, "true, false, null, or text in double quotes"},
    {"inside a string, '\\' occurs", "a backslash that escapes nothing",
     "\\\" \\\\ \\/ \\b \\f \\n \\r \\t or \\u0041"},
    {"invalid character inside string", "a line break or another control character in a text",
     "an escape such as \\n"},
    {"invalid (non-hex) character", "\\u without four hexadecimal digits", "\\u and four of them"},
    {"probable comment", "a comment", "JSON, which has none; YAML has"},
    {"malformed number", "a number without all of its digits", "a number such as -1, 0.5 or 1e3"},
};

static void add_json_mistake(struct reader *r, const struct json_fault *fault)
{
    struct path at_root = {0};
    char there[100];

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strncmp(fault->what, words[i].what, strlen(words[i].what)) == 0) {
            text_quote(r->text, fault->offset, there, sizeof there);
            mistake_at(r, &at_root, fault->offset, words[i].found ? words[i].found : there, "%s",
                       words[i].expected);
            return;
        }
    mistake_at(r, &at_root, fault->offset, fault->what, "JSON");
}

static void add_yaml_mistake(void *arg, size_t offset, const char *found, const char *expected)
{
    struct path at_root = {0};

    mistake_at(arg, &at_root, offset, found, "%s", expected);
}

static void add_repeated_keys(struct reader *r, const struct json *object, const struct path *path)
{
    const struct json *again = json_twice(object);

    for (; again; again = object->count <= TWICE_MAX ? again->next : NULL) {
        struct path at = {path, again->key, 0};
        const struct json *first = object->child;
        char found[100];
        uint32_t line = 0;
        uint32_t column = 0;
        if (r->mistakes->count == MISTAKES_MAX)
            return;
        while (first != again && !slice_eq(first->key, again->key))
            first = first->next;
        if (first == again)
            continue;
        json_position(r->text, first->key_at, &line, &column);
        (void)snprintf(found, sizeof found, "key \"%.*s\" a second time",
                       SLICE_ARG(slice_cut(again->key, 80)));
        mistake_at(r, &at, again->key_at, found, "each key once; it is already in line %u", line);
    }
}

static void check_twice(struct reader *r, const struct json *j, const struct path *path)
{
    size_t i = 0;

    if (j->type == JSON_OBJECT)
        add_repeated_keys(r, j, path);
    for (const struct json *m = j->child; m; m = m->next, i++) {
        struct path at = {path, j->type == JSON_OBJECT ? m->key : SLICE_NONE, i};
        check_twice(r, m, &at);
    }
}

static enum err read_json(struct reader *r, struct slice text, struct json **ret,
                          struct json_fault *fault)
{
    r->is_yaml = false;
    r->text = text;
    return json_parse_twice(r->arena, r->text, JSON_DEPTH_MAX, ret, fault);
}

static enum err read_yaml(struct reader *r, struct slice text, struct json **ret)
{
    struct yaml_watch w = {r, add_yaml_mistake};

    r->is_yaml = true;
    r->text = without_mark(text);
    return yaml_read(r->arena, r->text, JSON_DEPTH_MAX, ret, &w);
}

enum err read_source(struct reader *r, struct slice text, enum source_format format,
                     struct json **ret)
{
    struct json_fault fault = {0};
    struct path at_root = {0};
    bool has_brace = begins_with_brace(text);
    enum err err = ERR_PARSE;

    if (format == SOURCE_JSON || has_brace)
        err = read_json(r, text, ret, &fault);
    if (err != ERR_OK && (format == SOURCE_YAML || (format == SOURCE_GUESS && !has_brace)))
        err = read_yaml(r, text, ret);
    else if (err != ERR_OK)
        add_json_mistake(r, &fault);
    if (err == ERR_OK)
        check_twice(r, *ret, &at_root);
    return err;
}

size_t reader_string_offset(const struct reader *r, const struct json *string, size_t at)
{
    if (r->is_yaml)
        return yaml_string_offset(r->text, string, at);
    return string->at + string_raw_offset(string, at);
}
