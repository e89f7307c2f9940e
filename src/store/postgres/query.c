/*
 * A statement with its parameters in binary form, and values of a result. pg_sql_expand turns the
 * texts of sql.c into what the database is sent.
 */
#include "store/postgres/body.h"

#include "json/text.h"

/* Values of pg_type; they never change. */
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_INT8 = 20,
    OID_TEXT = 25,
    OID_TEXTS = 1009,
    OID_INT8S = 1016
};

enum { BINARY = 1 };

static void put_u32(char *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (char)(v >> (24 - 8 * i));
}

static void put_i64(char *to, int64_t v)
{
    for (int i = 0; i < 8; i++)
        to[i] = (char)((uint64_t)v >> (56 - 8 * i));
}

/* ---- texts ---- */

/* The names of a statement's parameters, in the order in which it names them first. */
struct names {
    struct slice list[PG_PARAMS_MAX];
    size_t count;
};

static size_t name_number(struct names *n, struct slice name)
{
    size_t i = 0;

    while (i < n->count && !slice_eq(n->list[i], name))
        i++;
    ASSERT(i < PG_PARAMS_MAX);
    if (i == n->count)
        n->list[n->count++] = name;
    return i + 1;
}

void pg_sql_expand(struct buf *b, const char *text, const char *prefix)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    struct names names = {.count = 0};

    for (; *text; text++) {
        size_t len = *text == '$' ? strspn(text + 1, letters) : 0;
        if (len > 0)
            buf_fmt(b, "$%zu", name_number(&names, (struct slice){text + 1, len}));
        else if (*text == '~' && text[1] != ' ' && text[1] != '\'') /* an operator is none */
            buf_str(b, prefix);
        else
            buf_byte(b, *text);
        text += len;
    }
}

/* ---- parameters ---- */

void query_of(struct query *q, const struct postgres_store *s, enum pg_sql which, struct arena *a)
{
    q->sql = s->sql[which];
    q->statement = 1 + (unsigned)which;
    q->arena = a;
    q->count = 0;
}

static void add(struct query *q, Oid type, const char *value, size_t size)
{
    ASSERT(q->count < PG_PARAMS_MAX);
    q->types[q->count] = type;
    q->values[q->count] = value;
    q->lengths[q->count] = (int)size;
    q->formats[q->count++] = BINARY;
}

void param_text(struct query *q, struct slice s)
{
    add(q, OID_TEXT, s.ptr ? arena_copy(q->arena, s).ptr : NULL, s.len);
}

void param_number(struct query *q, int64_t v)
{
    char *bytes = arena_bytes(q->arena, 8);

    put_i64(bytes, v);
    add(q, OID_INT8, bytes, 8);
}

void param_time(struct query *q, int64_t at)
{
    if (at == 0)
        add(q, OID_INT8, NULL, 0);
    else
        param_number(q, at);
}

void param_flag(struct query *q, bool v)
{
    char *byte = arena_bytes(q->arena, 1);

    *byte = (char)v;
    add(q, OID_BOOL, byte, 1);
}

void param_bytes(struct query *q, const void *bytes, size_t size)
{
    add(q, OID_BYTEA, arena_copy(q->arena, (struct slice){bytes, size}).ptr, size);
}

/* ---- arrays: dimensions, flags, type, then length and bytes of each element ---- */

static void element(struct array *a, Oid type, const char *bytes, size_t size)
{
    char head[4];

    ASSERT(a->count == 0 || a->type == type);
    a->type = type; /* set by the first */
    a->count++;
    put_u32(head, bytes ? (uint32_t)size : UINT32_MAX);
    a->nulls |= !bytes;
    buf_add(&a->elements, head, sizeof head);
    if (bytes)
        buf_add(&a->elements, bytes, size);
}

void array_text(struct array *a, struct slice s)
{
    element(a, OID_TEXT, s.ptr, s.len);
}

void array_number(struct array *a, int64_t v)
{
    char bytes[8];

    put_i64(bytes, v);
    element(a, OID_INT8, bytes, sizeof bytes);
}

void array_time(struct array *a, int64_t at)
{
    if (at == 0)
        element(a, OID_INT8, NULL, 0);
    else
        array_number(a, at);
}

void param_array(struct query *q, struct array *a, enum array_kind kind)
{
    enum { HEAD = 20 };
    struct slice elements = buf_view(&a->elements);
    Oid type = kind == ARRAY_TEXTS ? OID_TEXT : OID_INT8;
    size_t head = a->count ? HEAD : 12;
    char *bytes = arena_bytes(q->arena, head + elements.len);

    ASSERT(a->count == 0 || a->type == type);
    put_u32(bytes, a->count ? 1 : 0);
    put_u32(bytes + 4, a->nulls);
    put_u32(bytes + 8, type);
    if (a->count) {
        put_u32(bytes + 12, a->count);
        put_u32(bytes + 16, 1); /* where indices begin */
        memcpy(bytes + head, elements.ptr, elements.len);
    }
    add(q, kind == ARRAY_TEXTS ? OID_TEXTS : OID_INT8S, bytes, head + elements.len);
    buf_fini(&a->elements);
    *a = (struct array){0};
}

bool text_is_storable(struct slice s)
{
    return !s.ptr || (text_utf8_end(s) == s.len && !memchr(s.ptr, 0, s.len));
}

/* ---- results ---- */

static uint64_t get_bytes(const char *from, size_t size)
{
    uint64_t v = 0;

    for (size_t i = 0; i < size; i++)
        v = v << 8 | (unsigned char)from[i];
    return v;
}

struct slice result_text(const PGresult *r, int row, int column)
{
    if (PQgetisnull(r, row, column))
        return SLICE_NONE;
    return (struct slice){PQgetvalue(r, row, column), (size_t)PQgetlength(r, row, column)};
}

int64_t result_number(const PGresult *r, int row, int column)
{
    if (PQgetisnull(r, row, column))
        return 0;
    ASSERT(PQgetlength(r, row, column) == 8);
    return (int64_t)get_bytes(PQgetvalue(r, row, column), 8);
}

bool result_flag(const PGresult *r, int row, int column)
{
    return !PQgetisnull(r, row, column) && PQgetvalue(r, row, column)[0];
}
