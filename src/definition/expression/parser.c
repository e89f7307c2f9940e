/* Parses an expression into a syntax tree (node.h) by precedence climbing, and checks names and
 * arguments of functions. Reads its tokens from lexer.c; evaluates nothing. */
#include "definition/expression/node.h"

#include <stdarg.h>
#include <stdio.h>

#include "definition/expression/expression.h"
#include "definition/expression/lexer.h"
#include "definition/function/function.h"
#include "json/text.h"

struct parser {
    struct slice text;
    struct arena *arena;
    struct token token; /* the next one, not consumed yet */
    uint32_t depth, count;
    bool has_failed;
    size_t fault_at;
    struct error *error;
};

/* The precedence of operators, as in jq's grammar. */
enum binding {
    BIND_PIPE,
    BIND_COMMA,
    BIND_ALTERNATIVE,
    BIND_OR,
    BIND_AND,
    BIND_COMPARE,
    BIND_ADD,
    BIND_MULTIPLY
};

static const struct operation {
    const char *sign;
    enum binding binding;
    enum node_kind kind;
    enum operator op;
} operations[] = {
    {"|", BIND_PIPE, NODE_PIPE, 0},
    {",", BIND_COMMA, NODE_COMMA, 0},
    {"//", BIND_ALTERNATIVE, NODE_ALTERNATIVE, 0},
    {"or", BIND_OR, NODE_OR, 0},
    {"and", BIND_AND, NODE_AND, 0},
    {"==", BIND_COMPARE, NODE_BINARY, OP_EQUAL},
    {"!=", BIND_COMPARE, NODE_BINARY, OP_UNEQUAL},
    {"<", BIND_COMPARE, NODE_BINARY, OP_LESS},
    {"<=", BIND_COMPARE, NODE_BINARY, OP_LESS_EQUAL},
    {">", BIND_COMPARE, NODE_BINARY, OP_GREATER},
    {">=", BIND_COMPARE, NODE_BINARY, OP_GREATER_EQUAL},
    {"+", BIND_ADD, NODE_BINARY, OP_ADD},
    {"-", BIND_ADD, NODE_BINARY, OP_SUBTRACT},
    {"*", BIND_MULTIPLY, NODE_BINARY, OP_MULTIPLY},
    {"/", BIND_MULTIPLY, NODE_BINARY, OP_DIVIDE},
    {"%", BIND_MULTIPLY, NODE_BINARY, OP_MODULO},
};

static struct node *parse_pipe(struct parser *p);
static struct node *parse_binary(struct parser *p, enum binding least);

/* Records the first fault. Every parse function returns a node even then, so callers need no
 * checks. */
static PRINTF(3, 4) void fail(struct parser *p, size_t at, const char *fmt, ...)
{
    va_list ap;
    char what[sizeof p->error->text];

    if (p->has_failed)
        return;
    va_start(ap, fmt);
    text_format(what, sizeof what, fmt, ap);
    va_end(ap);
    p->has_failed = true;
    p->fault_at = at;
    (void)error_set(p->error, ERR_INVALID, "%s", what);
    /* Stops reading. */
    p->token = (struct token){TOKEN_END, SLICE(""), p->text.len, p->text.len, NULL};
}

static void advance(struct parser *p, size_t at)
{
    if (p->has_failed)
        return;
    p->token = token_read(p->text, at);
    if (p->token.kind == TOKEN_BAD)
        fail(p, p->token.at, "\"%.*s\": %s", SLICE_ARG(p->token.text), p->token.why);
}

static bool is_sign(const struct parser *p, const char *sign)
{
    return p->token.kind == TOKEN_SIGN && slice_is(p->token.text, sign);
}

static bool is_word(const struct parser *p, const char *word)
{
    return p->token.kind == TOKEN_NAME && slice_is(p->token.text, word);
}

static bool take_sign(struct parser *p, const char *sign)
{
    if (!is_sign(p, sign))
        return false;
    advance(p, p->token.end);
    return true;
}

static bool take_word(struct parser *p, const char *word)
{
    if (!is_word(p, word))
        return false;
    advance(p, p->token.end);
    return true;
}

static void unexpected(struct parser *p, const char *expected)
{
    if (p->token.kind == TOKEN_END)
        fail(p, p->token.at, "the expression ends, expected %s", expected);
    else
        fail(p, p->token.at, "found \"%.*s\", expected %s", SLICE_ARG(p->token.text), expected);
}

static void expect_sign(struct parser *p, const char *sign)
{
    char quoted[8] = {'"', sign[0], '"'};

    if (!take_sign(p, sign))
        unexpected(p, quoted);
}

static void expect_word(struct parser *p, const char *word)
{
    if (!take_word(p, word))
        unexpected(p, word);
}

static struct node *node_new(struct parser *p, enum node_kind kind, size_t at)
{
    struct node *n = arena_alloc(p->arena, sizeof *n);

    if (++p->count > NODE_COUNT_MAX)
        fail(p, at, "the expression is too long");
    n->kind = kind;
    n->at = at;
    n->depth = 1;
    return n;
}

/* A tree is deepened by nesting and by long chains (1+1+1+...). */
static void deepen(struct parser *p, struct node *n, const struct node *child)
{
    if (!child || child->depth < n->depth)
        return;
    n->depth = child->depth < NODE_DEPTH_MAX ? (uint16_t)(child->depth + 1) : NODE_DEPTH_MAX;
    if (child->depth >= NODE_DEPTH_MAX)
        fail(p, n->at, "the expression is nested too deeply");
}

static struct node *node_of(struct parser *p, enum node_kind kind, size_t at, struct node *a,
                            struct node *b)
{
    struct node *n = node_new(p, kind, at);

    n->a = a;
    n->b = b;
    deepen(p, n, a);
    deepen(p, n, b);
    return n;
}

static void list_add(struct parser *p, struct node *n, struct node *child)
{
    struct node **end = &n->list;
    struct node *before = NULL;

    while (*end) {
        before = *end;
        end = &before->next;
    }
    ASSERT(!child->next);
    *end = child;
    child->before = before;
    n->list_count++;
    deepen(p, n, child);
}

/* `text`: decoded for a string, otherwise as written. */
static struct node *literal(struct parser *p, size_t at, enum json_type type, struct slice text)
{
    struct node *n = node_new(p, NODE_LITERAL, at);
    struct json *j = arena_alloc(p->arena, sizeof *j);
    struct slice copy = arena_copy(p->arena, text);

    j->type = type;
    if (type == JSON_STRING || type == JSON_NUMBER)
        j->text = copy;
    if (type != JSON_STRING)
        j->raw = copy;
    n->value = j;
    n->is_simple = true;
    return n;
}

/* ---- strings ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool hex4(struct slice text, size_t at, uint32_t *ret)
{
    uint32_t v = 0;

    if (text.len - at < 4)
        return false;
    for (size_t i = at; i < at + 4; i++) {
        int digit = hex_digit(text.ptr[i]);
        if (digit < 0)
            return false;
        v = v * 16 + (uint32_t)digit;
    }
    *ret = v;
    return true;
}

/* NUL beyond the end; a text contains none. */
static char char_at(const struct parser *p, size_t at)
{
    if (at < p->text.len)
        return p->text.ptr[at];
    return '\0';
}

static void utf8_add(struct buf *b, uint32_t c)
{
    if (c < 0x80) {
        buf_byte(b, (char)c);
    } else if (c < 0x800) {
        buf_byte(b, (char)(0xc0 | c >> 6));
        buf_byte(b, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_byte(b, (char)(0xe0 | c >> 12));
        buf_byte(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_byte(b, (char)(0x80 | (c & 0x3f)));
    } else {
        buf_byte(b, (char)(0xf0 | c >> 18));
        buf_byte(b, (char)(0x80 | (c >> 12 & 0x3f)));
        buf_byte(b, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_byte(b, (char)(0x80 | (c & 0x3f)));
    }
}

/* `at` is after the "\u". Returns the end of the escape. */
static size_t unicode_escape(struct parser *p, struct buf *b, size_t at)
{
    uint32_t c = 0;
    uint32_t low = 0;

    if (!hex4(p->text, at, &c)) {
        fail(p, at - 2, "\\u wants four hexadecimal digits");
        return at;
    }
    if (c >= 0xd800 && c <= 0xdbff) {
        struct slice t = p->text;
        if (t.len - at < 10 || t.ptr[at + 4] != '\\' || t.ptr[at + 5] != 'u'
            || !hex4(t, at + 6, &low) || low < 0xdc00 || low > 0xdfff) {
            fail(p, at - 2, "half of a surrogate pair");
            return at;
        }
        utf8_add(b, 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff));
        return at + 10;
    }
    if (c == 0 || (c >= 0xdc00 && c <= 0xdfff))
        fail(p, at - 2, c ? "half of a surrogate pair" : "\\u0000 is not allowed");
    utf8_add(b, c);
    return at + 4;
}

/* `at` is at the backslash. Returns the end of the escape. */
static size_t escape(struct parser *p, struct buf *b, size_t at)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    char c = char_at(p, at + 1);
    const char *name = c ? strchr(names, c) : NULL;

    if (c == 'u')
        return unicode_escape(p, b, at + 2);
    if (name)
        buf_byte(b, values[name - names]);
    else
        fail(p, at, "no such escape in a string");
    return at + 2;
}

static void string_part(struct parser *p, struct node *string, struct buf *b, size_t at)
{
    list_add(p, string, literal(p, at, JSON_STRING, buf_view(b)));
    buf_clear(b);
}

/* From after the "\(" to after the ")". */
static size_t interpolation(struct parser *p, struct node *string, size_t at)
{
    advance(p, at);
    list_add(p, string, parse_pipe(p));
    if (!is_sign(p, ")")) {
        unexpected(p, "\")\"");
        return p->text.len;
    }
    return p->token.end;
}

/* Yields a literal if the string has no interpolation. The next token is the opening quote. */
static struct node *parse_string(struct parser *p)
{
    CLEANUP(buf_fini) struct buf b = {0};
    size_t start = p->token.at;
    size_t at = p->token.end;
    struct node *string = node_new(p, NODE_STRING, start);

    for (;;) {
        if (p->has_failed)
            return string;
        char c = char_at(p, at);
        if (c == '"')
            break;
        if (c == '\0') {
            fail(p, start, "this string has no end");
        } else if (c == '\\' && char_at(p, at + 1) == '(') {
            string_part(p, string, &b, at);
            at = interpolation(p, string, at + 2);
        } else if (c == '\\') {
            at = escape(p, &b, at);
        } else {
            buf_byte(&b, c);
            at++;
        }
    }
    string_part(p, string, &b, start);
    advance(p, at + 1);
    return string->list_count == 1 ? string->list : string;
}

/* ---- terms ---- */

static struct node *parse_number(struct parser *p)
{
    struct node *n = literal(p, p->token.at, JSON_NUMBER, p->token.text);

    advance(p, p->token.end);
    return n;
}

static struct node *parse_array(struct parser *p)
{
    size_t at = p->token.at;
    struct node *inside = NULL;

    expect_sign(p, "[");
    if (!is_sign(p, "]"))
        inside = parse_pipe(p);
    expect_sign(p, "]");
    return node_of(p, NODE_ARRAY, at, inside, NULL);
}

static struct node *field_of(struct parser *p, struct node *a, struct slice name, size_t at)
{
    struct node *n = node_of(p, NODE_FIELD, at, a, NULL);

    n->name = arena_copy(p->arena, name);
    n->is_simple = a->is_simple;
    return n;
}

/* a["name"] is the same as a.name. */
static struct node *index_of(struct parser *p, struct node *a, struct node *key, size_t at)
{
    ASSERT(key);
    if (key->kind == NODE_LITERAL && key->value->type == JSON_STRING)
        return field_of(p, a, key->value->text, at);
    return node_of(p, NODE_INDEX, at, a, key);
}

/* a, "a b" or (.x). *ret_short: the key may have no value. */
static struct node *parse_key(struct parser *p, bool *ret_short)
{
    size_t at = p->token.at;
    struct node *key = NULL;

    *ret_short = p->token.kind == TOKEN_NAME || p->token.kind == TOKEN_QUOTE;
    if (p->token.kind == TOKEN_QUOTE)
        return parse_string(p);
    if (p->token.kind == TOKEN_NAME) {
        key = literal(p, at, JSON_STRING, p->token.text);
        advance(p, p->token.end);
        return key;
    }
    if (!take_sign(p, "(")) {
        unexpected(p, "a key: a name, a string, or an expression in parentheses");
        return node_new(p, NODE_IDENTITY, at);
    }
    key = parse_pipe(p);
    expect_sign(p, ")");
    return key;
}

/* Unlike in jq 1.6, operators need no parentheses. */
static struct node *parse_member_value(struct parser *p)
{
    struct node *value = parse_binary(p, BIND_ALTERNATIVE);

    while (is_sign(p, "|")) {
        size_t at = p->token.at;
        expect_sign(p, "|");
        value = node_of(p, NODE_PIPE, at, value, parse_binary(p, BIND_ALTERNATIVE));
    }
    return value;
}

/* {a}, {"a b"}, {a: 1}, {"a": 1}, {(.x): 1} */
static struct node *parse_member(struct parser *p)
{
    size_t at = p->token.at;
    bool may_be_short = false;
    struct node *key = parse_key(p, &may_be_short);

    if (may_be_short && (is_sign(p, ",") || is_sign(p, "}"))) {
        struct node *self = node_new(p, NODE_IDENTITY, at);
        struct node *again = node_new(p, key->kind, at);
        self->is_simple = true;
        *again = *key; /* a node can be in the tree only once */
        return node_of(p, NODE_MEMBER, at, key, index_of(p, self, again, at));
    }
    expect_sign(p, ":");
    return node_of(p, NODE_MEMBER, at, key, parse_member_value(p));
}

static struct node *parse_object(struct parser *p)
{
    struct node *n = node_new(p, NODE_OBJECT, p->token.at);

    expect_sign(p, "{");
    if (take_sign(p, "}"))
        return n;
    do
        list_add(p, n, parse_member(p));
    while (take_sign(p, ","));
    if (!take_sign(p, "}"))
        unexpected(p, "\",\" or \"}\"");
    return n;
}

/* From after "if" or "elif" to after "end". */
static struct node *parse_if(struct parser *p, size_t at)
{
    struct node *condition = parse_pipe(p);

    expect_word(p, "then");
    struct node *n = node_of(p, NODE_IF, at, condition, parse_pipe(p));
    size_t next_at = p->token.at;
    if (p->depth >= NODE_DEPTH_MAX) {
        fail(p, next_at, "the expression is nested too deeply");
    } else if (take_word(p, "elif")) {
        p->depth++;
        n->c = parse_if(p, next_at);
        p->depth--;
    } else if (take_word(p, "else")) {
        n->c = parse_pipe(p);
        expect_word(p, "end");
    } else {
        unexpected(p, "elif or else");
    }
    deepen(p, n, n->c);
    return n;
}

static void unknown_function(struct parser *p, const struct token *name, uint32_t count,
                             bool is_known)
{
    const char *why = function_why_outside(name->text);
    bool is_behind_minus = name->at > 0 && p->text.ptr[name->at - 1] == '-';

    if (is_known)
        fail(p, name->at, "function \"%.*s\" with %u arguments is not known", SLICE_ARG(name->text),
             count);
    else if (is_behind_minus)
        fail(p, name->at,
             "unknown function \"%.*s\"; a name with \"-\" in it is written .[\"a-b\"]",
             SLICE_ARG(slice_cut(name->text, 60)));
    else if (why)
        fail(p, name->at, "unknown function \"%.*s\": %s", SLICE_ARG(name->text), why);
    else
        fail(p, name->at, "unknown function \"%.*s\"", SLICE_ARG(slice_cut(name->text, 60)));
}

static struct node *parse_call(struct parser *p)
{
    struct token name = p->token;
    struct node *n = node_new(p, NODE_CALL, name.at);
    bool is_known = false;

    advance(p, name.end);
    if (take_sign(p, "(")) {
        do
            list_add(p, n, parse_pipe(p));
        while (take_sign(p, ";"));
        if (!take_sign(p, ")"))
            unexpected(p, "\")\" or \";\"");
    }
    n->function = function_find(name.text, n->list_count, &is_known);
    if (!n->function)
        unknown_function(p, &name, n->list_count, is_known);
    return n;
}

static bool is_foreign_word(struct slice name)
{
    static const char *const words[] = {"def",   "as",     "reduce",  "foreach", "try",  "catch",
                                        "label", "import", "include", "__loc__", "then", "elif",
                                        "else",  "end",    "and",     "or"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (slice_is(name, words[i]))
            return true;
    return false;
}

static struct node *parse_word(struct parser *p)
{
    static const struct {
        const char *name;
        enum json_type type;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
    size_t at = p->token.at;

    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (take_word(p, words[i].name))
            return literal(p, at, words[i].type, slice_of(words[i].name));
    if (take_word(p, "if"))
        return parse_if(p, at);
    if (is_foreign_word(p->token.text)) {
        unexpected(p, "an expression (def, as, reduce, foreach, try are outside the subset)");
        return node_new(p, NODE_IDENTITY, at);
    }
    return parse_call(p);
}

/* After the dot of a path: a string, a bracket, or nothing. */
static struct node *parse_dot(struct parser *p)
{
    size_t at = p->token.at;
    struct node *n = node_new(p, NODE_IDENTITY, at);

    expect_sign(p, ".");
    n->is_simple = true;
    if (p->token.kind == TOKEN_QUOTE)
        return index_of(p, n, parse_string(p), at);
    return n;
}

static struct node *parse_primary(struct parser *p)
{
    size_t at = p->token.at;

    switch (p->token.kind) {
    case TOKEN_NAME:
        return parse_word(p);
    case TOKEN_NUMBER:
        return parse_number(p);
    case TOKEN_QUOTE:
        return parse_string(p);
    case TOKEN_FIELD: {
        struct node *self = node_new(p, NODE_IDENTITY, at);
        struct node *n;
        self->is_simple = true;
        n = field_of(p, self, p->token.text, at);
        advance(p, p->token.end);
        return n;
    }
    case TOKEN_SIGN:
        if (is_sign(p, "."))
            return parse_dot(p);
        if (is_sign(p, "["))
            return parse_array(p);
        if (is_sign(p, "{"))
            return parse_object(p);
        if (take_sign(p, "(")) {
            struct node *n = parse_pipe(p);
            expect_sign(p, ")");
            return n;
        }
        break;
    case TOKEN_END:
    case TOKEN_BAD:
        break;
    }
    unexpected(p, "an expression");
    return node_new(p, NODE_IDENTITY, at);
}

/* [], [i], [i:j], [i:], [:j] after a term. */
static struct node *parse_bracket(struct parser *p, struct node *a)
{
    size_t at = p->token.at;
    struct node *from = NULL;

    expect_sign(p, "[");
    if (take_sign(p, "]"))
        return node_of(p, NODE_ITERATE, at, a, NULL);
    if (!is_sign(p, ":"))
        from = parse_pipe(p);
    if (!take_sign(p, ":")) {
        if (!take_sign(p, "]"))
            unexpected(p, "\"]\" or \":\"");
        return index_of(p, a, from, at);
    }
    struct node *n = node_of(p, NODE_SLICE, at, a, from);
    if (!from || !is_sign(p, "]"))
        n->c = parse_pipe(p);
    deepen(p, n, n->c);
    expect_sign(p, "]");
    return n;
}

/* After a path, a question mark ignores values to which the path does not apply. After anything
 * else it catches every failure. */
static struct node *parse_question(struct parser *p, struct node *a, bool is_group)
{
    size_t at = p->token.at;
    bool is_path = a->kind == NODE_FIELD || a->kind == NODE_INDEX || a->kind == NODE_SLICE
                   || a->kind == NODE_ITERATE;

    expect_sign(p, "?");
    if (is_group || !is_path || a->is_optional)
        return node_of(p, NODE_TRY, at, a, NULL);
    a->is_optional = true;
    a->is_simple = false;
    return a;
}

static struct node *parse_postfix(struct parser *p)
{
    bool is_group = is_sign(p, "(");
    struct node *n = parse_primary(p);

    for (;;) {
        size_t at = p->token.at;
        if (p->token.kind == TOKEN_FIELD) {
            n = field_of(p, n, p->token.text, at);
            advance(p, p->token.end);
        } else if (is_sign(p, "[")) {
            n = parse_bracket(p, n);
        } else if (is_sign(p, "?")) {
            n = parse_question(p, n, is_group);
        } else if (take_sign(p, ".")) {
            if (p->token.kind == TOKEN_QUOTE)
                n = index_of(p, n, parse_string(p), at);
            else if (!is_sign(p, "["))
                unexpected(p, "a name, a string or \"[\"");
        } else {
            return n;
        }
        is_group = false;
    }
}

/* -5 is a literal, not a negation, so it may have any size. */
static struct node *negative_literal(struct parser *p, size_t at, struct slice digits)
{
    CLEANUP(buf_fini) struct buf text = {0};
    bool is_negative = digits.ptr[0] == '-';

    buf_str(&text, is_negative ? "" : "-");
    buf_add(&text, digits.ptr + is_negative, digits.len - is_negative);
    return literal(p, at, JSON_NUMBER, buf_view(&text));
}

static struct node *parse_unary(struct parser *p)
{
    size_t at = p->token.at;

    if (p->depth >= NODE_DEPTH_MAX) {
        fail(p, at, "the expression is nested too deeply");
        return node_new(p, NODE_IDENTITY, at);
    }
    if (!take_sign(p, "-"))
        return parse_postfix(p);
    p->depth++;
    struct node *operand = parse_binary(p, BIND_MULTIPLY);
    p->depth--;
    if (operand->kind == NODE_LITERAL && operand->value->type == JSON_NUMBER)
        return negative_literal(p, at, operand->value->text);
    return node_of(p, NODE_NEGATE, at, operand, NULL);
}

static const struct operation *operation_of(const struct parser *p)
{
    if (p->token.kind != TOKEN_SIGN && p->token.kind != TOKEN_NAME)
        return NULL;
    for (size_t i = 0; i < COUNT_OF(operations); i++)
        if (slice_is(p->token.text, operations[i].sign))
            return &operations[i];
    return NULL;
}

/* a, b, c is one node with a list. */
static struct node *comma_of(struct parser *p, size_t at, struct node *left, struct node *right)
{
    if (left->kind == NODE_COMMA) {
        list_add(p, left, right);
        return left;
    }
    struct node *n = node_new(p, NODE_COMMA, at);
    list_add(p, n, left);
    list_add(p, n, right);
    return n;
}

static struct node *operation_node(struct parser *p, const struct operation *o, size_t at,
                                   struct node *left, struct node *right)
{
    if (o->kind == NODE_COMMA)
        return comma_of(p, at, left, right);
    struct node *n = node_of(p, o->kind, at, left, right);
    n->op = o->op;
    return n;
}

static struct node *parse_binary(struct parser *p, enum binding least)
{
    struct node *left = parse_unary(p);

    for (;;) {
        const struct operation *o = operation_of(p);
        size_t at = p->token.at;
        if (!o || o->binding < least)
            return left;
        bool is_right = o->kind == NODE_PIPE || o->kind == NODE_ALTERNATIVE;
        advance(p, p->token.end);
        p->depth++;
        struct node *right = parse_binary(p, is_right ? o->binding : o->binding + 1);
        p->depth--;
        left = operation_node(p, o, at, left, right);
        const struct operation *next = operation_of(p);
        if (o->binding == BIND_COMPARE && next && next->binding == BIND_COMPARE)
            fail(p, p->token.at, "comparisons do not chain; write: and");
    }
}

static struct node *parse_pipe(struct parser *p)
{
    size_t at = p->token.at;

    if (p->depth >= NODE_DEPTH_MAX) {
        fail(p, at, "the expression is nested too deeply");
        return node_new(p, NODE_IDENTITY, at);
    }
    p->depth++;
    struct node *n = parse_binary(p, BIND_PIPE);
    p->depth--;
    return n;
}

enum err node_parse(struct slice text, bool is_embedded, struct arena *a, struct expression **ret,
                    size_t *ret_end, size_t *ret_column, struct error *e)
{
    struct parser p = {.text = text, .arena = a, .error = e};
    struct expression *x = arena_alloc(a, sizeof *x);

    size_t valid = is_embedded ? text.len : text_utf8_end(text); /* embedded: checked before */

    advance(&p, 0);
    if (valid < text.len)
        fail(&p, valid, "bytes that are not UTF-8");
    x->root = parse_pipe(&p);
    *ret_end = p.token.at;
    if (is_embedded && !is_sign(&p, "}"))
        unexpected(&p, "an operator or \"}\"");
    else if (!is_embedded && p.token.kind != TOKEN_END)
        unexpected(&p, "an operator or the end");
    if (p.has_failed) {
        *ret_column = p.fault_at + 1;
        return e->code;
    }
    *ret = x;
    return ERR_OK;
}
