/* Splits an expression into tokens: names, numbers, signs and the beginnings of strings
 * (lexer.h). parser.c, its only caller, asks for one token at a time and reads the contents of
 * strings itself, because they may contain expressions. */

#include "definition/expression/lexer.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char char_at(struct slice text, size_t at)
{
    if (at < text.len)
        return text.ptr[at];
    return '\0'; /* a text contains no NUL */
}

static size_t name_end(struct slice text, size_t at)
{
    while (begins_name(char_at(text, at)) || is_digit(char_at(text, at)))
        at++;
    return at;
}

static size_t digits_end(struct slice text, size_t at)
{
    while (is_digit(char_at(text, at)))
        at++;
    return at;
}

/* The end of a JSON number; 0: there is none. */
static size_t number_end(struct slice text, size_t at)
{
    size_t end = digits_end(text, at);

    if (char_at(text, at) == '0' && end > at + 1)
        return 0;
    if (char_at(text, end) == '.') {
        size_t fraction = end + 1;
        end = digits_end(text, fraction);
        if (end == fraction)
            return 0;
    }
    if (char_at(text, end) == 'e' || char_at(text, end) == 'E') {
        size_t exponent = end + 1;
        exponent += char_at(text, exponent) == '+' || char_at(text, exponent) == '-';
        end = digits_end(text, exponent);
        if (end == exponent)
            return 0;
    }
    return begins_name(char_at(text, end)) ? 0 : end;
}

static struct token made(enum token_kind kind, struct slice text, size_t at, size_t end)
{
    return (struct token){kind, {text.ptr + at, end - at}, at, end, NULL};
}

/* A token for one invalid character, of however many bytes. */
static struct token bad(struct slice text, size_t at, const char *why)
{
    size_t end = at + (at < text.len);

    while (end < text.len && ((unsigned char)text.ptr[end] & 0xc0) == 0x80)
        end++;
    struct token t = made(TOKEN_BAD, text, at, end);

    t.why = why;
    return t;
}

/* Operators of jq that are outside the subset. A longer one precedes its prefixes. */
static const struct foreign {
    const char *sign, *why;
} foreign[] = {
    {"?//", "write a blank between ? and //"},
    {"//=", "assignments are outside the subset"},
    {"|=", "assignments are outside the subset"},
    {"+=", "assignments are outside the subset"},
    {"-=", "assignments are outside the subset"},
    {"*=", "assignments are outside the subset"},
    {"/=", "assignments are outside the subset"},
    {"%=", "assignments are outside the subset"},
    {"..", "recursive descent is outside the subset"},
    {"$", "variables are outside the subset"},
    {"@", "formats are outside the subset"},
    {"#", "comments are outside the subset"},
    {"'", "strings are written with \" quotes"},
    {"&&", "write: and"},
    {"||", "write: or"},
};

/* Besides those of is_whole_sign(). */
static const char *const signs[] = {"//", "==", "!=", "<=", ">=", ".", "|", "?",
                                    "+",  "-",  "*",  "/",  "%",  "<", ">"};

static bool stands_at(struct slice text, size_t at, const char *sign)
{
    if (text.ptr[at] != sign[0]) /* fast path */
        return false;
    size_t len = strlen(sign);
    return text.len - at >= len && memcmp(text.ptr + at, sign, len) == 0;
}

/* No other sign begins with one of these. */
static bool is_whole_sign(char c)
{
    switch (c) {
    case '(':
    case ')':
    case '[':
    case ']':
    case '{':
    case '}':
    case ',':
    case ':':
    case ';':
        return true;
    default:
        return false;
    }
}

static struct token sign_read(struct slice text, size_t at)
{
    if (is_whole_sign(text.ptr[at])) /* fast path */
        return made(TOKEN_SIGN, text, at, at + 1);
    for (size_t i = 0; i < COUNT_OF(foreign); i++)
        if (stands_at(text, at, foreign[i].sign))
            return bad(text, at, foreign[i].why);
    for (size_t i = 0; i < COUNT_OF(signs); i++)
        if (stands_at(text, at, signs[i]))
            return made(TOKEN_SIGN, text, at, at + strlen(signs[i]));
    if (text.ptr[at] == '=')
        return bad(text, at, "assignments are outside the subset; to compare write ==");
    return bad(text, at, "no part of an expression");
}

struct token token_read(struct slice text, size_t at)
{
    while (char_at(text, at) == ' ' || char_at(text, at) == '\t' || char_at(text, at) == '\n'
           || char_at(text, at) == '\r')
        at++;
    if (at == text.len)
        return made(TOKEN_END, text, at, at);

    char c = text.ptr[at];
    if (begins_name(c))
        return made(TOKEN_NAME, text, at, name_end(text, at));
    if (c == '.' && begins_name(char_at(text, at + 1))) {
        struct token t = made(TOKEN_FIELD, text, at + 1, name_end(text, at + 1));
        t.at = at;
        return t;
    }
    if (is_digit(c)) {
        size_t end = number_end(text, at);
        return end ? made(TOKEN_NUMBER, text, at, end) : bad(text, at, "not a number");
    }
    if (c == '"')
        return made(TOKEN_QUOTE, text, at, at + 1);
    return sign_read(text, at);
}
