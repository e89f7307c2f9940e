/* The meaning of plain scalars by the core schema of YAML 1.2, and readable versions of libyaml's
 * messages with advice (yaml_words.h). Pure; yaml_read.c is the only caller. */

#include "json/yaml_words.h"

#include <stdio.h>

#include "json/text.h"

/* ---- plain scalars ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(struct slice s, size_t at)
{
    while (at < s.len && is_digit(s.ptr[at]))
        at++;
    return at;
}

/* The end of the exponent that begins at `at`, if there is one. */
static size_t exponent(struct slice s, size_t at)
{
    size_t i = at;

    if (i == s.len || (s.ptr[i] != 'e' && s.ptr[i] != 'E'))
        return at;
    i++;
    i += i < s.len && (s.ptr[i] == '+' || s.ptr[i] == '-');
    size_t end = digits(s, i);
    return end > i ? end : at;
}

static bool is_one_of(struct slice s, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_is(s, words[i]))
            return true;
    return false;
}

/* 0o17, 0x1F */
static bool has_base(struct slice s)
{
    if (s.len < 3 || s.ptr[0] != '0' || (s.ptr[1] != 'o' && s.ptr[1] != 'x'))
        return false;
    const char *allowed = s.ptr[1] == 'o' ? "01234567" : "0123456789abcdefABCDEF";
    for (size_t i = 2; i < s.len; i++)
        if (!strchr(allowed, s.ptr[i]))
            return false;
    return true;
}

/* By the core schema: [-+]? ( . digits | digits ( . digits* )? ) exponent? */
static enum yaml_kind number_kind(struct slice s)
{
    static const char *const no_numbers[] = {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"};
    bool has_sign = s.ptr[0] == '-' || s.ptr[0] == '+';
    struct slice rest = {s.ptr + has_sign, s.len - has_sign};
    size_t whole = digits(rest, 0);
    size_t end = whole;
    size_t decimals = 0;

    if (is_one_of(rest, no_numbers, has_sign ? 3 : COUNT_OF(no_numbers)) || has_base(s))
        return YAML_ODD_NUMBER;
    if (end < rest.len && rest.ptr[end] == '.') {
        end = digits(rest, end + 1);
        decimals = end - whole - 1;
    }
    if (whole + decimals == 0 || exponent(rest, end) != rest.len)
        return YAML_STRING;
    bool is_json = whole > 0 && s.ptr[0] != '+' && (whole == 1 || rest.ptr[0] != '0')
                   && (end == whole || decimals > 0);
    return is_json ? YAML_NUMBER : YAML_ODD_NUMBER;
}

enum yaml_kind yaml_scalar_kind(struct slice text)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    static const char *const trues[] = {"true", "True", "TRUE"};
    static const char *const falses[] = {"false", "False", "FALSE"};

    if (is_one_of(text, nulls, COUNT_OF(nulls)))
        return YAML_NULL;
    if (is_one_of(text, trues, COUNT_OF(trues)))
        return YAML_TRUE;
    if (is_one_of(text, falses, COUNT_OF(falses)))
        return YAML_FALSE;
    return number_kind(text);
}

/* ---- messages ---- */

static const struct words {
    const char *problem, *context; /* prefix of the context; NULL: any */
    bool at_context;
    const char *found; /* NULL: the text at that position */
    const char *expected;
} table[] = {
    {"mapping values are not allowed", NULL, false, "\":\" in the middle of a value",
     "one key: value on a line; a text that holds \": \" in quotes"},
    {"mapping keys are not allowed", NULL, false, "\"?\" where no key can stand",
     "one key: value on a line"},
    {"block sequence entries are not allowed", NULL, false, "\"- \" where no list can begin",
     "the list in a line of its own, below its key"},
    {"could not find expected ':'", NULL, true, NULL, "key: value"},
    {"did not find expected key", NULL, false, NULL,
     "a key, in the same column as the others beside it"},
    {"did not find expected '-' indicator", NULL, false, NULL,
     "\"- \", in the same column as the others of the list"},
    {"did not find expected ',' or ']'", NULL, false, NULL, "\",\" or \"]\""},
    {"did not find expected ',' or '}'", NULL, false, NULL, "\",\" or \"}\""},
    {"did not find expected node content", NULL, false, NULL, "a value"},
    {"did not find expected <document start>", NULL, false, NULL, "the end of the text"},
    {"found unexpected end of stream", NULL, true, "a text in quotes that is never closed",
     "the closing quote"},
    {"found unexpected document indicator", NULL, true, "a text in quotes that is never closed",
     "the closing quote"},
    {"found unknown escape character", NULL, false, NULL,
     "an escape that YAML knows, such as \\n, \\\" or \\\\; or single quotes"},
    {"did not find expected hex", NULL, false, NULL,
     "hexadecimal digits: \\x41, \\u0041 or \\U00000041"},
    {"found invalid Unicode character escape", NULL, false, "an escape that is no character",
     "a character; beyond \\uffff write \\U0001f600"},
    {"found a tab character", NULL, false, "a tab", "blanks: YAML is not indented by tabs"},
    {"found an indentation indicator equal to 0", NULL, false, "0 as indentation",
     "an indentation from 1 to 9, or none"},
    {"did not find expected comment or line break", NULL, false, NULL,
     "the end of the line: the text begins in the next one"},
    {"found unexpected ':'", NULL, false, "\":\" in a text without quotes",
     "quotes around the text"},
    {"found unknown directive name", NULL, true, "a line that begins with %",
     "no directives, or the text in quotes"},
    {"found incompatible YAML document", NULL, false, "another version of YAML",
     "%YAML 1.2, or no such line"},
    {"found duplicate %YAML directive", NULL, false, "%YAML a second time",
     "%YAML 1.2 once, or no such line"},
    {"found undefined tag handle", NULL, false, "a tag (!)",
     "a plain value: tags are not supported"},
    {"", "while scanning an anchor", true, "an anchor (&)",
     "the value written out, or the text in quotes: anchors are not supported"},
    {"", "while scanning an alias", true, "an alias (*)",
     "the value written out, or the text in quotes: aliases are not supported"},
    {"", "while scanning a tag", true, "a tag (!)",
     "a plain value, or the text in quotes: tags are not supported"},
    {"", "while parsing a tag", true, "a tag (!)",
     "a plain value, or the text in quotes: tags are not supported"},
    {"", "while scanning a directive", true, "a line that begins with %",
     "no directives, or the text in quotes"},
    {"", "while scanning a %", true, "a line that begins with %", "%YAML 1.2, or no such line"},
};

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static const struct words *words_for(const char *problem, const char *context)
{
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (begins(problem, table[i].problem)
            && (!table[i].context || begins(context, table[i].context)))
            return &table[i];
    return NULL;
}

/* Missing quotes are most frequent around an expression. */
static bool has_expression(struct slice text, size_t at)
{
    size_t start = at;
    size_t end = text_line_end(text, at);

    while (start > 0 && text.ptr[start - 1] != '\n')
        start--;
    return end - start > 1 && memmem(text.ptr + start, end - start, "${", 2);
}

static void odd_character(struct slice text, struct yaml_words *ret)
{
    char c = ' ';

    if (ret->at < text.len)
        c = text.ptr[ret->at];
    (void)snprintf(ret->found, sizeof ret->found,
                   c == '\t' ? "a tab" : "a text that begins with %c", c);
    (void)snprintf(ret->expected, sizeof ret->expected, "%s",
                   c == '\t' ? "blanks: YAML is not indented by tabs" : "the text in quotes");
}

void yaml_explain(struct slice text, const char *problem, const char *context, size_t problem_at,
                  size_t context_at, struct yaml_words *ret)
{
    const struct words *w = words_for(problem, context);

    ASSERT(problem_at <= text.len);
    ASSERT(context_at <= text.len);
    *ret = (struct yaml_words){.at = problem_at};
    if (begins(problem, "found character that cannot start any token")) {
        odd_character(text, ret);
        return;
    }
    if (!w) {
        (void)snprintf(ret->found, sizeof ret->found, "%s", problem);
        (void)snprintf(ret->expected, sizeof ret->expected, "YAML");
        return;
    }
    if (w->at_context)
        ret->at = context_at;
    else if (problem_at >= 2 && text.ptr[problem_at - 2] == '\\' && strstr(context, "quoted"))
        ret->at = problem_at - 2; /* the start of the escape, not after its \\u */
    if (w->found)
        (void)snprintf(ret->found, sizeof ret->found, "%s", w->found);
    else
        text_quote(text, ret->at, ret->found, sizeof ret->found);
    (void)snprintf(ret->expected, sizeof ret->expected, "%s%s", w->expected,
                   has_expression(text, ret->at) ? " (put quotes around \"${ ... }\" here)" : "");
}
