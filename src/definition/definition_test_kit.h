#ifndef DEFINITION_DEFINITION_TEST_KIT_H
#define DEFINITION_DEFINITION_TEST_KIT_H

/* Shared by the tests of definitions: texts of definitions, and the values of a task. */

#include "base/test.h"

#include "definition/definition.h"

/* TOP: a definition with one step and these additional fields. STEP: one step with additional
 * fields. */
#define TOP(more) "{\"intact\":1,\"workflow\":\"w\"" more ",\n\"steps\":[" STEP("a", "") "]}"
#define STEP(name, more) \
    "{\"name\":\"" name "\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"" more "}"
#define ONE(more) "{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n" STEP("a", more) "]}"

extern const char order_text[]; /* a small definition that uses every part of the grammar */

struct definition *defined(const char *text); /* fails the test if the text has mistakes */

/* Steps of one letter each: "a", "b<a", "c<" (starts at once), "d<b,c". */
struct definition *graph_of(const char *shape);

/* The values of a task: input, output, state and error code of each step, and the task's error as
 * JSON. */
struct world {
    const char *input[4], *output[4];
    int asked; /* number of calls for what steps have */
    int urls;  /* ... and for URLs of signals */
    enum step_state state[4];
    const char *code[4];
    const char *error;
};

struct scope scope_of(const struct definition *d, const char *input, struct world *w);

bool begins(const char *text, const char *with);

/* A definition in JSON with one mistake, and how that is reported. */
struct mistake_case {
    const char *text;
    uint32_t line, column;
    const char *path, *found, *expected; /* found and expected begin with these */
};

void expect_mistakes(const struct mistake_case *list, size_t count);

#endif
