#ifndef STORE_SQLITE_COLUMNS_H
#define STORE_SQLITE_COLUMNS_H

/*
 * What SQLite makes of the columns of a row, which the headers of store/rows list as X(name, type):
 * pieces of SQL, and code that binds and reads. A statement names its parameters by their columns,
 * in the order of the list, and SQLite numbers them in that order.
 *
 * Types: text (NONE is NULL), number (whatever size the field has), time (0 is NULL), flag, hash.
 */

#include "store/sqlite/body.h"

/* With ", " between them: what to read or insert, the parameters, what an UPDATE sets. */
#define NAME(name, ...)   #name
#define PARAM(name, ...)  ":" #name
#define SET_TO(name, ...) #name " = :" #name

/* Binds row->name as the next parameter of `q`: number `col`, from 1. */
#define BIND(name, type) BIND_##type(row->name)
#define BIND_text(v)     bind_text(q, col++, v);
#define BIND_number(v)   bind_number(q, col++, (int64_t)(v));
#define BIND_time(v)     bind_time(q, col++, v);
#define BIND_flag(v)     bind_number(q, col++, v);
#define BIND_hash(v)     bind_hash(q, col++, v);

/* Reads the next column of `q`: number `col`, from 0. Texts are copied to `a`; with BORROW they are
 * SQLite's, until the next step. */
#define READ(name, type)     READ_##type(row.name)
#define READ_text(field)     (field) = arena_copy(a, query_text(q, col++));
#define READ_number(field)   (field) = (__typeof__(field))sqlite3_column_int64(q, col++);
#define READ_time(field)     READ_number(field)
#define READ_flag(field)     (field) = sqlite3_column_int64(q, col++) == 1;
#define READ_hash(field)     (void)query_hash(q, col++, field);
#define BORROW(name, type)   BORROW_##type(row.name)
#define BORROW_text(field)   (field) = query_text(q, col++);
#define BORROW_number(field) READ_number(field)
#define BORROW_time(field)   READ_number(field)

#endif
