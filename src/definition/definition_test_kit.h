#ifndef DEFINITION_DEFINITION_TEST_KIT_H
#define DEFINITION_DEFINITION_TEST_KIT_H

/* What the tests of definitions share: texts of definitions, and what they become. */

#include "base/test.h"

#include "definition/definition.h"

/* A definition with this besides, of one step; that step alone; one with this besides in its step.
 */
#define TOP(more) "{\"intact\":1,\"workflow\":\"w\"" more ",\n\"steps\":[" STEP("a", "") "]}"
#define STEP(name, more) \
    "{\"name\":\"" name "\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"" more "}"
#define ONE(more) "{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n" STEP("a", more) "]}"

extern const char order_text[]; /* every part of a definition, in small */

struct definition *defined(const char *text); /* it must be without mistakes */

/* Steps of one letter each: "a", "b<a", "c<" (starts at once), "d<b,c". */
struct definition *graph_of(const char *shape);

/* What is known of a task: of each step what it was asked, and answered; how it stands, and the
 * code of its error. And the error of the task, as JSON. */
struct world {
    const char *input[4], *output[4];
    int asked; /* how often somebody looked */
    enum step_state state[4];
    const char *code[4];
    const char *error;
};

struct scope scope_of(const struct definition *d, const char *input, struct world *w);

bool begins(const char *text, const char *with);

#endif
