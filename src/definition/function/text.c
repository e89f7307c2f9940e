/* Functions of strings: upper and lower case, join, prefixes, suffixes and others (list.h).
 * indices, index and rindex also search arrays. Positions are counted in characters, not in
 * bytes. */

#include "definition/function/parts.h"

/* Adds `shift` to the 26 letters that begin at `from`. */
static const struct json *with_case(struct machine *m, const struct json *in, char from, int shift)
{
    if (in->type != JSON_STRING)
        return function_refuse(m, in, "is not a string");
    char *ptr = machine_pay(m, text_parts(in->text.len)) ? value_bytes(m, in->text.len) : NULL;
    if (!ptr)
        return NULL;
    for (size_t i = 0; i < in->text.len; i++) {
        int c = (unsigned char)in->text.ptr[i];
        bool is_letter = c >= from && c <= from + 25;
        ptr[i] = (char)(is_letter ? c + shift : c);
    }
    return value_text(m, (struct slice){ptr, in->text.len});
}

VALUE_FUNCTION(ascii_downcase)
{
    (void)args;
    return with_case(m, in, 'A', 'a' - 'A');
}

VALUE_FUNCTION(ascii_upcase)
{
    (void)args;
    return with_case(m, in, 'a', 'A' - 'a');
}

VALUE_FUNCTION(split)
{
    if (in->type == JSON_STRING && args[0]->type == JSON_STRING)
        return operator_split(m, in->text, args[0]->text);
    (void)machine_fail(m, "split input and separator must be strings");
    return NULL;
}

/* The text of an array's member in join; NULL: failed. */
static const struct json *join_piece(struct machine *m, const struct json *j)
{
    if (j->type == JSON_NULL)
        return value_text(m, SLICE(""));
    if (value_is_container(j))
        return function_refuse(m, j, "cannot be joined to a string");
    return value_to_text(m, j);
}

VALUE_FUNCTION(join)
{
    CLEANUP(buf_fini) struct buf b = {.max = EXPRESSION_BYTES_MAX + 1};

    if (!function_check_iterable(m, in))
        return NULL;
    if (in->count > 0 && args[0]->type != JSON_STRING && args[0]->type != JSON_NULL)
        return function_refuse(m, args[0], "cannot join strings");
    const struct json *j = in->child;
    for (; j && !b.overflow; j = j->next) {
        const struct json *piece = join_piece(m, j);
        if (!piece || !machine_pay(m, text_parts(piece->text.len + args[0]->text.len)))
            return NULL;
        if (j != in->child)
            buf_slice(&b, args[0]->text);
        buf_slice(&b, piece->text);
    }
    if (b.overflow && !machine_claim(m, (size_t)EXPRESSION_BYTES_MAX + 1)) /* it cannot fit */
        return NULL;
    return value_text_copy(m, buf_view(&b));
}

static bool is_end(struct slice text, struct slice part, bool at_end)
{
    if (part.len > text.len)
        return false;
    const char *at = at_end ? text.ptr + text.len - part.len : text.ptr;
    return part.len == 0 || memcmp(at, part.ptr, part.len) == 0;
}

static const struct json *ends(struct machine *m, const struct json *in, const struct json *part,
                               bool at_end)
{
    if (in->type != JSON_STRING || part->type != JSON_STRING) {
        (void)machine_fail(m, "%s() requires string inputs", at_end ? "endswith" : "startswith");
        return NULL;
    }
    if (!machine_pay(m, text_parts(part->text.len)))
        return NULL;
    return value_bool(is_end(in->text, part->text, at_end));
}

VALUE_FUNCTION(startswith)
{
    return ends(m, in, args[0], false);
}

VALUE_FUNCTION(endswith)
{
    return ends(m, in, args[0], true);
}

/* A value that is no string, or lacks that prefix or suffix, is returned unchanged. */
static const struct json *without_end(struct machine *m, const struct json *in,
                                      const struct json *part, bool at_end)
{
    if (in->type != JSON_STRING || part->type != JSON_STRING)
        return in;
    if (!machine_pay(m, text_parts(part->text.len)))
        return NULL;
    if (!is_end(in->text, part->text, at_end))
        return in;
    size_t len = in->text.len - part->text.len;
    return value_text_copy(m, (struct slice){in->text.ptr + (at_end ? 0 : part->text.len), len});
}

VALUE_FUNCTION(ltrimstr)
{
    return without_end(m, in, args[0], false);
}

VALUE_FUNCTION(rtrimstr)
{
    return without_end(m, in, args[0], true);
}

/* ---- searching ---- */

/* Positions are counted in characters; as in jq 1.6, matches do not overlap. The text is scanned
 * once; `part` is scanned again after each match. */
static const struct json *indices_of_text(struct machine *m, struct slice text, struct slice part)
{
    struct builder b = builder_begin(m, JSON_ARRAY);
    size_t characters = 0;

    if (part.len == 0)
        return b.container;
    if (!machine_pay(m, search_parts(text, part.len)))
        return NULL;
    while (machine_pay(m, PARTS_PER_STEP + text_parts(part.len))) {
        const char *at = memmem(text.ptr, text.len, part.ptr, part.len);
        if (!at)
            return b.container;
        size_t skipped = (size_t)(at - text.ptr);
        characters += text_length((struct slice){text.ptr, skipped});
        if (!builder_add_int(&b, characters))
            return NULL;
        characters += text_length(part);
        skipped += part.len;
        text = (struct slice){text.ptr + skipped, text.len - skipped};
    }
    return NULL;
}

VALUE_FUNCTION(indices)
{
    const struct json *part = args[0];

    if (in->type == JSON_NULL)
        return in;
    if (in->type == JSON_STRING && part->type == JSON_STRING)
        return indices_of_text(m, in->text, part->text);
    if (in->type == JSON_ARRAY && part->type == JSON_ARRAY)
        return operator_indices(m, in, part->child, part->count);
    if (in->type == JSON_ARRAY)
        return operator_indices(m, in, part, 1);
    (void)machine_fail(m, "cannot look for %s in %s", value_kind(part), value_kind(in));
    return NULL;
}

/* index: the first position, or null. */
VALUE_FUNCTION(index)
{
    const struct json *all = function_indices(m, in, args);

    return all && all->type == JSON_ARRAY ? function_first(m, all, NULL) : all;
}

VALUE_FUNCTION(rindex)
{
    const struct json *all = function_indices(m, in, args);

    return all && all->type == JSON_ARRAY ? function_last(m, all, NULL) : all;
}
