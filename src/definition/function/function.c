/* The table of functions (made from list.h), which the parser searches by name and number of
 * arguments, and hints for functions of jq that are not supported (function.h). The functions are
 * in the other files of this folder. */

#include "definition/function/parts.h"

#include <stdio.h>

const struct json *function_refuse(struct machine *m, const struct json *in, const char *what)
{
    (void)machine_fail(m, "%s %s", value_summary(m, in).text, what);
    return NULL;
}

bool function_check_iterable(struct machine *m, const struct json *in)
{
    if (!value_is_container(in))
        (void)machine_fail(m, "cannot iterate over %s", value_summary(m, in).text);
    return value_is_container(in) && machine_spend(m, in->count);
}

#define NAME(text)             \
    {                          \
        text, sizeof(text) - 1 \
    }
#define VALUE(text, count, fn)    {NAME(text), count, function_##fn, NULL, NULL},
#define GENERATE(text, count, fn) {NAME(text), count, NULL, function_##fn, NULL},
#define STREAM(text, count, fn)   {NAME(text), count, NULL, NULL, function_##fn},
static const struct function functions[] = {FUNCTION_LIST(VALUE, GENERATE, STREAM)};

const struct function *function_find(struct slice name, uint32_t arg_count, bool *ret_known)
{
    *ret_known = false;
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        if (!slice_eq(name, functions[i].name))
            continue;
        *ret_known = true;
        if (functions[i].arg_count == arg_count)
            return &functions[i];
    }
    return NULL;
}

/* Functions of jq that are outside the subset, and what to use instead. */
static const struct {
    const char *names; /* each surrounded by blanks */
    const char *why;
} outside[] = {
    {" test match capture scan splits sub gsub ",
     "regular expressions are outside the subset; split, startswith, endswith, contains, index "
     "look "
     "into strings"},
    {" now mktime gmtime localtime strftime strptime todate fromdate date dateadd datesub "
     "todateiso8601 fromdateiso8601 strflocaltime ",
     "dates are outside the subset; pass times on as they are"},
    {" recurse recurse_down walk while until repeat env path paths leaf_paths getpath setpath "
     "delpaths del pick ",
     "recursion, loops without an end and paths as values are outside the subset; range, map, "
     "with_entries, limit, first do without"},
    {" input inputs debug stderr input_line_number input_filename halt halt_error "
     "get_search_list builtins modulemeta ",
     "input and output are outside the subset"},
};

const char *function_why_outside(struct slice name)
{
    char padded[40];

    if (name.len > sizeof padded - 3)
        return NULL;
    (void)snprintf(padded, sizeof padded, " %.*s ", SLICE_ARG(name));
    for (size_t i = 0; i < COUNT_OF(outside); i++)
        if (strstr(outside[i].names, padded))
            return outside[i].why;
    return NULL;
}
