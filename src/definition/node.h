#ifndef DEFINITION_NODE_H
#define DEFINITION_NODE_H

/* The syntax tree of an expression, between parser.c and evaluator.c. */

#include "base/arena.h"
#include "base/err.h"
#include "json/json.h"

/* An expression may nest this deep and have this many nodes; both bound the stack that evaluation
 * takes. */
enum { NODE_DEPTH_MAX = 100, NODE_COUNT_MAX = 1000 };

enum node_kind {
    NODE_IDENTITY,    /* . */
    NODE_LITERAL,     /* value */
    NODE_STRING,      /* "..\(..)..": parts in list, literals among them */
    NODE_FIELD,       /* a.name */
    NODE_INDEX,       /* a[b] */
    NODE_SLICE,       /* a[b:c]; b or c may be NULL */
    NODE_ITERATE,     /* a[] */
    NODE_TRY,         /* a? */
    NODE_PIPE,        /* a | b */
    NODE_COMMA,       /* list: a, b, ... */
    NODE_ALTERNATIVE, /* a // b */
    NODE_AND,
    NODE_OR,
    NODE_BINARY, /* a op b */
    NODE_NEGATE,
    NODE_ARRAY,  /* [a]; a is NULL for [] */
    NODE_OBJECT, /* list of NODE_MEMBER */
    NODE_MEMBER, /* a: key, b: value */
    NODE_IF,     /* if a then b else c */
    NODE_CALL,   /* function(list) */
};

enum operator{
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL,
};

struct function;

struct node {
    enum node_kind kind;
    enum operator op;
    bool is_optional; /* FIELD, INDEX, SLICE, ITERATE: with ? behind it */
    bool is_simple; /* exactly one value, made without others: identity, literal, fields of such */
    uint16_t depth; /* of the tree below */
    uint32_t list_count;
    size_t at;         /* offset in the text */
    struct slice name; /* FIELD */
    const struct json *value;
    struct node *a, *b, *c;
    struct node *list; /* first one */
    struct node *next; /* in the list of the parent */
    struct node *before;
    const struct function *function;
};

/* What can be seen of a step, as bits. */
enum step_member {
    MEMBER_INPUT = 1,
    MEMBER_OUTPUT = 2,
    MEMBER_STATE = 4,
    MEMBER_ERROR = 8,
    MEMBERS_ALL = 15,
};

/* Which parts of a recorded value are looked at: a tree of names. */
struct wanted {
    struct slice name;
    bool whole;    /* all of it */
    bool is_given; /* it is passed on as it stands: its text will do */
    uint8_t count; /* of children */
    struct wanted *child, *next;
};

enum { WANTED_CHILDREN_MAX = 32, WANTED_DEPTH_MAX = 8 }; /* beyond either: the whole */

/* Adds the path below `w`, of `count` names. */
void wanted_add(struct wanted *w, struct arena *a, const struct slice *path, size_t count,
                bool is_given);
/* What is below `more` may become a part of `w`. */
void wanted_join(struct wanted *w, struct arena *a, const struct wanted *more);

/* A step that is looked at, and which of its members. */
struct needed_step {
    uint16_t step; /* its index */
    uint8_t members;
    struct wanted input, output;
};

/* What of the root an expression or a template looks at; filled in by definition.c. */
struct needs {
    bool input, task;
    bool all_steps;
    struct wanted of_input;
    uint16_t count;
    struct needed_step *steps; /* each once */
};

struct expression {
    struct node *root;
    struct slice text; /* for messages */
    struct needs needs;
};

/* Parses the expression that begins at text.ptr[0]. If `is_embedded` it ends before a "}" of its
 * own, whose offset is *ret_end; otherwise the text must end with it. */
enum err node_parse(struct slice text, bool is_embedded, struct arena *a, struct expression **ret,
                    size_t *ret_end, size_t *ret_column, struct error *e) MUST_USE;

#endif
