#ifndef DEFINITION_FUNCTION_LIST_H
#define DEFINITION_FUNCTION_LIST_H

/*
 * The functions of expressions: name, number of arguments, name in C.
 *
 * VALUE: one value, from the input and one value of each argument.
 *
 * GENERATE: any number of values from the same.
 *
 * STREAM: evaluates its arguments itself, any number of times.
 */

/* clang-format off */
#define FUNCTION_LIST(VALUE, GENERATE, STREAM)   \
    VALUE("add",            0, add)              \
    VALUE("all",            0, all)              \
    STREAM("all",           1, all_of)           \
    STREAM("all",           2, all_in)           \
    VALUE("any",            0, any)              \
    STREAM("any",           1, any_of)           \
    STREAM("any",           2, any_in)           \
    STREAM("arrays",        0, arrays)           \
    VALUE("ascii_downcase", 0, ascii_downcase)   \
    VALUE("ascii_upcase",   0, ascii_upcase)     \
    STREAM("booleans",      0, booleans)         \
    VALUE("ceil",           0, ceil_)            \
    VALUE("contains",       1, contains)         \
    STREAM("empty",         0, empty)            \
    VALUE("endswith",       1, endswith)         \
    VALUE("error",          0, error_in)         \
    VALUE("error",          1, error_of)         \
    VALUE("first",          0, first)            \
    STREAM("first",         1, first_of)         \
    VALUE("flatten",        0, flatten)          \
    VALUE("flatten",        1, flatten_to)       \
    VALUE("floor",          0, floor_)           \
    VALUE("from_entries",   0, from_entries)     \
    VALUE("fromjson",       0, fromjson)         \
    STREAM("group_by",      1, group_by)         \
    VALUE("has",            1, has)              \
    VALUE("in",             1, in)               \
    VALUE("index",          1, index)            \
    VALUE("indices",        1, indices)          \
    VALUE("inside",         1, inside)           \
    STREAM("isempty",       1, isempty)          \
    STREAM("iterables",     0, iterables)        \
    VALUE("join",           1, join)             \
    VALUE("keys",           0, keys)             \
    VALUE("keys_unsorted",  0, keys_unsorted)    \
    VALUE("last",           0, last)             \
    STREAM("last",          1, last_of)          \
    VALUE("length",         0, length)           \
    STREAM("limit",         2, limit)            \
    VALUE("ltrimstr",       1, ltrimstr)         \
    STREAM("map",           1, map)              \
    STREAM("map_values",    1, map_values)       \
    VALUE("max",            0, max)              \
    STREAM("max_by",        1, max_by)           \
    VALUE("min",            0, min)              \
    STREAM("min_by",        1, min_by)           \
    VALUE("not",            0, not_)             \
    STREAM("nulls",         0, nulls)            \
    STREAM("numbers",       0, numbers)          \
    STREAM("objects",       0, objects)          \
    GENERATE("range",       1, range)            \
    GENERATE("range",       2, range)            \
    GENERATE("range",       3, range)            \
    VALUE("reverse",        0, reverse)          \
    VALUE("rindex",         1, rindex)           \
    VALUE("round",          0, round_)           \
    VALUE("rtrimstr",       1, rtrimstr)         \
    STREAM("scalars",       0, scalars)          \
    STREAM("select",        1, select)           \
    VALUE("sort",           0, sort)             \
    STREAM("sort_by",       1, sort_by)          \
    VALUE("split",          1, split)            \
    VALUE("startswith",     1, startswith)       \
    STREAM("strings",       0, strings)          \
    VALUE("to_entries",     0, to_entries)       \
    VALUE("tojson",         0, tojson)           \
    VALUE("tonumber",       0, tonumber)         \
    VALUE("tostring",       0, tostring)         \
    VALUE("type",           0, type)             \
    VALUE("unique",         0, unique)           \
    STREAM("unique_by",     1, unique_by)        \
    STREAM("values",        0, values)           \
    STREAM("with_entries",  1, with_entries)
/* clang-format on */

#endif
