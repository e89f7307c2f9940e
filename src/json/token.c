#include "json/token.h"

#include "json/text.h"

static enum json_token bad(struct json_tokens *t, size_t at, const char *why)
{
    t->bad_at = at;
    t->why = why;
    return JSON_TOKEN_BAD;
}

/* The byte there, or NUL behind the end: no token has one in it. */
static char byte_at(const struct json_tokens *t, size_t at)
{
    return at < t->text.len ? t->text.ptr[at] : '\0';
}

/* ---- words ---- */

static enum json_token word(struct json_tokens *t, struct slice text, enum json_token token)
{
    if (t->text.len - t->start < text.len
        || memcmp(t->text.ptr + t->start, text.ptr, text.len) != 0)
        return bad(t, t->start, "invalid string in json text");
    t->end = t->start + text.len;
    return token;
}

/* ---- numbers ---- */

/* Behind the digits at `at`; `at`, if there are none. */
static size_t digits_end(const struct json_tokens *t, size_t at)
{
    while (byte_at(t, at) >= '0' && byte_at(t, at) <= '9')
        at++;
    return at;
}

static enum json_token number(struct json_tokens *t)
{
    size_t from = t->start + (byte_at(t, t->start) == '-');
    size_t at = byte_at(t, from) == '0' ? from + 1 : digits_end(t, from);

    if (at == from)
        return bad(t, t->start, "malformed number, a digit is required after the minus sign");
    if (byte_at(t, at) == '.') {
        from = at + 1;
        at = digits_end(t, from);
        if (at == from)
            return bad(t, t->start,
                       "malformed number, a digit is required after the decimal point");
    }
    if ((byte_at(t, at) | 0x20) == 'e') {
        from = at + 1;
        from += byte_at(t, from) == '-' || byte_at(t, from) == '+';
        at = digits_end(t, from);
        if (at == from)
            return bad(t, t->start, "malformed number, a digit is required after the exponent");
    }
    t->end = at;
    return JSON_TOKEN_NUMBER;
}

/* ---- strings ---- */

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Moves *at behind the escape whose backslash stands there. False: there is none. */
static bool escape_skip(struct json_tokens *t, size_t *at)
{
    size_t i = *at + 1;

    *at += 2;
    if (i >= t->text.len || (t->text.ptr[i] && strchr("\"\\/bfnrt", t->text.ptr[i])))
        return true;
    if (t->text.ptr[i] != 'u') {
        (void)bad(t, i, "inside a string, '\\' occurs before a character which it may not");
        return false;
    }
    for (size_t k = i + 1; k <= i + 4 && k < t->text.len; k++)
        if (!is_hex(t->text.ptr[k])) {
            (void)bad(t, k, "invalid (non-hex) character occurs after '\\u' inside string");
            return false;
        }
    *at = i + 5;
    return true;
}

static enum json_token string(struct json_tokens *t)
{
    size_t at = t->start + 1;

    t->has_escapes = false;
    for (;;) {
        if (at < t->text.len)
            at += text_plain_run(t->text.ptr + at, t->text.len - at);
        if (at >= t->text.len)
            return bad(t, t->text.len, "the text ends too early");
        if (t->text.ptr[at] == '"') {
            t->end = at + 1;
            return JSON_TOKEN_STRING;
        }
        if (t->text.ptr[at] != '\\')
            return bad(t, at, "invalid character inside string");
        t->has_escapes = true;
        if (!escape_skip(t, &at))
            return JSON_TOKEN_BAD;
    }
}

/* ---- any ---- */

static enum json_token one(struct json_tokens *t, enum json_token token)
{
    t->end = t->start + 1;
    return token;
}

enum json_token json_token_next(struct json_tokens *t)
{
    size_t at = t->end;

    while (at < t->text.len
           && (t->text.ptr[at] == ' ' || t->text.ptr[at] == '\n' || t->text.ptr[at] == '\t'
               || t->text.ptr[at] == '\r'))
        at++;
    t->start = t->end = at;
    if (at == t->text.len)
        return JSON_TOKEN_END;
    switch (t->text.ptr[at]) {
    case '{':
        return one(t, JSON_TOKEN_OBJECT);
    case '}':
        return one(t, JSON_TOKEN_OBJECT_END);
    case '[':
        return one(t, JSON_TOKEN_ARRAY);
    case ']':
        return one(t, JSON_TOKEN_ARRAY_END);
    case ':':
        return one(t, JSON_TOKEN_COLON);
    case ',':
        return one(t, JSON_TOKEN_COMMA);
    case '"':
        return string(t);
    case 'n':
        return word(t, SLICE("null"), JSON_TOKEN_NULL);
    case 'f':
        return word(t, SLICE("false"), JSON_TOKEN_FALSE);
    case 't':
        return word(t, SLICE("true"), JSON_TOKEN_TRUE);
    case '/':
        return bad(t, at, "probable comment found in input text, comments are not enabled");
    default:
        break;
    }
    if (t->text.ptr[at] == '-' || (t->text.ptr[at] >= '0' && t->text.ptr[at] <= '9'))
        return number(t);
    return bad(t, at, "invalid char in json text");
}
