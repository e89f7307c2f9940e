#ifndef DEFINITION_FUNCTION_PARTS_H
#define DEFINITION_FUNCTION_PARTS_H

/* Shared by the files of this folder: declarations of all functions of the list, and their
 * signatures. */

#include "definition/expression/number.h"
#include "definition/expression/operator.h"
#include "definition/expression/value.h"
#include "definition/function/function.h"
#include "definition/function/list.h"

typedef const struct json *const *args_t; /* keeps lines short */

#define VALUE_FUNCTION(name) \
    const struct json *function_##name(struct machine *m, const struct json *in, args_t args)
#define GENERATE_FUNCTION(name)                                                      \
    enum flow function_##name(struct machine *m, const struct json *in, args_t args, \
                              uint32_t count, struct sink *out)
#define STREAM_FUNCTION(name)                                                                    \
    enum flow function_##name(struct machine *m, const struct node *call, const struct json *in, \
                              struct sink *out)

#define VALUE(text, count, name) VALUE_FUNCTION(name);
#define GENERATE(text, count, name)
#define STREAM(text, count, name) STREAM_FUNCTION(name);
FUNCTION_LIST(VALUE, GENERATE, STREAM)
GENERATE_FUNCTION(range);
#undef VALUE
#undef GENERATE
#undef STREAM

/* Fails with "VALUE what"; returns NULL. */
const struct json *function_refuse(struct machine *m, const struct json *in, const char *what);

/* Fails for a value without members; otherwise pays one step for each member. */
bool function_check_iterable(struct machine *m, const struct json *in);

#endif
