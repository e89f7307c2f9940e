#ifndef DEFINITION_FUNCTION_PARTS_H
#define DEFINITION_FUNCTION_PARTS_H

/* What function_*.c share: the functions of the list, and how they begin. */

#include "definition/function.h"
#include "definition/function_list.h"
#include "definition/number.h"
#include "definition/operator.h"
#include "definition/value.h"

typedef const struct json *const *args_t; /* only to keep the lines short */

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

/* The failure "VALUE what"; NULL. */
const struct json *function_refuse(struct machine *m, const struct json *in, const char *what);

/* Fails for what has no members; takes a step for each. */
bool function_check_iterable(struct machine *m, const struct json *in);

#endif
