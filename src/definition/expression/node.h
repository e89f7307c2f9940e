#ifndef DEFINITION_EXPRESSION_NODE_H
#define DEFINITION_EXPRESSION_NODE_H

/* The syntax tree of an expression: built by parser.c, evaluated by evaluator.c. */

#include "base/arena.h"
#include "base/err.h"
#include "json/json.h"

/* Limits of the nesting and the number of nodes of an expression. Both bound the stack during
 * evaluation. */
enum { NODE_DEPTH_MAX = 100, NODE_COUNT_MAX = 1000 };

enum node_kind {
    NODE_IDENTITY,    /* . */
    NODE_LITERAL,     /* value */
    NODE_STRING,      /* "..\(..)..": list holds the parts, also the literal ones */
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
    bool is_optional; /* FIELD, INDEX, SLICE, ITERATE: followed by ? */
    bool is_simple;   /* yields exactly one value without allocating: identity, literal, fields of
                         these */
    uint16_t depth;   /* of the tree below it */
    uint32_t list_count;
    size_t at;         /* offset in the text */
    struct slice name; /* FIELD */
    const struct json *value;
    struct node *a, *b, *c;
    struct node *list; /* its first element */
    struct node *next; /* the next element of the parent's list */
    struct node *before;
    const struct function *function;
};

/* The members of a step that an expression can refer to, as bits. */
enum step_member {
    MEMBER_INPUT = 1,
    MEMBER_OUTPUT = 2,
    MEMBER_STATE = 4,
    MEMBER_ERROR = 8,
    MEMBER_FAILED = 16, /* with for_each: how many of its items failed ... */
    MEMBER_ERRORS = 32, /* ... and the first of their errors */
    MEMBERS_ALL = 63,
};

/* The parts of a recorded value that an expression refers to: a tree of names. */
struct wanted {
    struct slice name;
    bool whole;    /* all of it is needed */
    bool is_given; /* it is passed on unchanged, so its text suffices */
    uint8_t count; /* number of children */
    struct wanted *child, *next;
};

/* Beyond either limit the whole value is read. */
enum { WANTED_CHILDREN_MAX = 32, WANTED_DEPTH_MAX = 8 };

/* Adds the path of `count` names below `w`. */
void wanted_add(struct wanted *w, struct arena *a, const struct slice *path, size_t count,
                bool is_given);
/* Adds all paths of `more`, parts of which `w` may share. */
void wanted_join(struct wanted *w, struct arena *a, const struct wanted *more);

/* A step that an expression refers to, and the members needed. */
struct needed_step {
    uint16_t step;
    uint8_t members;
    struct wanted input, output;
};

/* The values that an expression or a template refers to. Filled in by reader/expressions.c. */
struct needs {
    bool input, task;
    bool signals; /* of the task: their URLs */
    bool all_steps;
    bool output, round; /* of the step itself, where it is repeated; `output` of its item */
    bool item, index;   /* of the step itself, with for_each */
    struct wanted of_input, of_output, of_item;
    uint16_t count;
    struct needed_step *steps; /* each step once */
};

struct expression {
    struct node *root;
    struct slice text; /* for messages */
    struct needs needs;
};

/* Parses the expression that begins at text.ptr[0]. If `is_embedded`, it ends before an unmatched
 * "}", at offset *ret_end; otherwise at the end of the text. */
enum err node_parse(struct slice text, bool is_embedded, struct arena *a, struct expression **ret,
                    size_t *ret_end, size_t *ret_column, struct error *e) MUST_USE;

#endif
