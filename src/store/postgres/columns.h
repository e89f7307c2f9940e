#ifndef STORE_POSTGRES_COLUMNS_H
#define STORE_POSTGRES_COLUMNS_H

/*
 * What PostgreSQL makes of the columns of a row, which the headers of store/rows list as
 * X(name, type): pieces of SQL, and code that binds and reads. A parameter is named by its column;
 * pg_sql_expand numbers the names of a statement in the order in which it names them first, and
 * code binds in that order.
 *
 * Types: text (NONE is NULL), number (whatever size the field has), time (0 is NULL), flag, hash.
 */

#include "store/postgres/body.h"

/* With ", " between them: what to read or insert, the parameters, what an UPDATE sets. */
#define NAME(name, ...)   #name
#define PARAM(name, ...)  "$" #name
#define SET_TO(name, ...) #name " = $" #name

/* The parameter is an array: one element for each row, of which a statement unnests them. */
#define UNNEST(name, type) "$" #name "::" SQL_##type "[]"
#define SQL_text           "text"
#define SQL_number         "int8"
#define SQL_time           "int8"
#define SQL_flag           "bool"

/* Binds row->name as the next parameter of the query `q`. */
#define BIND(name, type) BIND_##type(row->name)
#define BIND_text(v)     param_text(q, v);
#define BIND_number(v)   param_number(q, (int64_t)(v));
#define BIND_time(v)     param_time(q, v);
#define BIND_flag(v)     param_flag(q, v);
#define BIND_hash(v)     param_bytes(q, v, sizeof(v));

/* Arrays in `k` with the names of the columns: declared, one row added, bound. */
#define MEMBER(name, ...)      struct array name;
#define ADD(name, type)        ADD_##type(&k->name, row->name);
#define ADD_text(array, v)     array_text(array, v)
#define ADD_number(array, v)   array_number(array, (int64_t)(v))
#define ADD_time(array, v)     array_time(array, v)
#define BIND_ARRAY(name, type) param_array(q, &k->name, KIND_##type);
#define KIND_text              ARRAY_TEXTS
#define KIND_number            ARRAY_NUMBERS
#define KIND_time              ARRAY_NUMBERS

/* Reads the next column of row `i` of the result `r`: number `col`, from 0. Texts are copied to
 * `a`. */
#define READ(name, type)   READ_##type(row.name)
#define READ_text(field)   (field) = arena_copy(a, result_text(r, i, col++));
#define READ_number(field) (field) = (__typeof__(field))result_number(r, i, col++);
#define READ_time(field)   READ_number(field)
#define READ_flag(field)   (field) = result_flag(r, i, col++);
#define READ_hash(field)   (void)result_hash(r, i, col++, field);

/* Is the column of `row` UTF-8 without NULs? With nothing between them. */
#define IS_STORABLE(name, type) IS_STORABLE_##type(row->name)
#define IS_STORABLE_text(v)     &&text_is_storable(v)
#define IS_STORABLE_number(v)
#define IS_STORABLE_time(v)
#define IS_STORABLE_flag(v)

#endif
