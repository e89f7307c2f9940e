/* Encodes and decodes AMQP 1.0 messages with Proton (amqp_message.h). A body that is an AMQP value
 * becomes JSON, and so do properties; what has no JSON form is refused. Texts from peers may be
 * any bytes, so each is checked. Uses no connection: broker.c and way.c have them. */

#include "amqp/amqp_message.h"

#include <proton/codec.h>
#include <proton/message.h>
#include <stdio.h>
#include <stdlib.h>

#include "amqp/amqp_shape.h"
#include "json/json.h"
#include "json/text.h"

enum { DATA_SECTION = 0x75 };

static const int64_t YEAR_9999_MS = INT64_C(253402300799999); /* its last millisecond */

/* ---- values, as JSON ---- */

static struct slice slice_of_bytes(pn_bytes_t b)
{
    return (struct slice){b.start ? b.start : "", b.size};
}

/* A peer may send any bytes as text. */
static bool is_text(struct slice s)
{
    return text_utf8_end(s) == s.len && !memchr(s.ptr, 0, s.len);
}

static bool write_text(struct buf *b, pn_bytes_t bytes)
{
    struct slice s = slice_of_bytes(bytes);

    if (is_text(s))
        json_string(b, s);
    return is_text(s);
}

static bool write_value(struct buf *b, pn_data_t *d);

static bool write_members(struct buf *b, pn_data_t *d, bool is_map)
{
    bool ok = pn_data_enter(d);

    json_open(b, is_map ? '{' : '[');
    while (ok && pn_data_next(d)) {
        if (is_map) {
            if (pn_data_type(d) != PN_STRING && pn_data_type(d) != PN_SYMBOL)
                return false;
            struct slice key = slice_of_bytes(pn_data_type(d) == PN_STRING ? pn_data_get_string(d)
                                                                           : pn_data_get_symbol(d));
            if (!is_text(key) || !pn_data_next(d))
                return false;
            json_key_slice(b, key);
        }
        ok = write_value(b, d);
    }
    json_close(b, is_map ? '}' : ']');
    return ok && pn_data_exit(d);
}

static void write_float(struct buf *b, double v)
{
    char text[40];

    (void)snprintf(text, sizeof text, "%.17g", v);
    if (v - v != 0)
        json_null(b); /* JSON cannot express it */
    else
        json_raw(b, slice_of(text));
}

/* In the range of RFC 3339. */
static bool write_time(struct buf *b, int64_t at)
{
    bool can = at > 0 && at <= YEAR_9999_MS;

    if (can)
        json_time(b, at);
    return can;
}

static void write_unsigned(struct buf *b, uint64_t v)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, v);
    json_raw(b, slice_of(text));
}

/* False: it has no JSON form. Recurses at most AMQP_NESTING_MAX times. */
static bool write_value(struct buf *b, pn_data_t *d)
{
    pn_type_t type = pn_data_type(d);

    switch ((int)type) {
    case PN_NULL:
        json_null(b);
        return true;
    case PN_BOOL:
        json_bool(b, pn_data_get_bool(d));
        return true;
    case PN_UBYTE:
        write_unsigned(b, pn_data_get_ubyte(d));
        return true;
    case PN_USHORT:
        write_unsigned(b, pn_data_get_ushort(d));
        return true;
    case PN_UINT:
        write_unsigned(b, pn_data_get_uint(d));
        return true;
    case PN_ULONG:
        write_unsigned(b, pn_data_get_ulong(d));
        return true;
    case PN_BYTE:
        json_number(b, pn_data_get_byte(d));
        return true;
    case PN_SHORT:
        json_number(b, pn_data_get_short(d));
        return true;
    case PN_INT:
        json_number(b, pn_data_get_int(d));
        return true;
    case PN_LONG:
        json_number(b, pn_data_get_long(d));
        return true;
    case PN_TIMESTAMP:
        return write_time(b, pn_data_get_timestamp(d));
    case PN_FLOAT:
        write_float(b, (double)pn_data_get_float(d));
        return true;
    case PN_DOUBLE:
        write_float(b, pn_data_get_double(d));
        return true;
    case PN_STRING:
        return write_text(b, pn_data_get_string(d));
    case PN_SYMBOL:
        return write_text(b, pn_data_get_symbol(d));
    case PN_MAP:
    case PN_LIST:
        return write_members(b, d, type == PN_MAP);
    default:
        return false;
    }
}

/* ---- reading ---- */

static struct slice id_text(struct arena *a, pn_msgid_t id)
{
    CLEANUP(buf_fini) struct buf b = {0};
    pn_bytes_t bytes = id.u.as_bytes;

    switch ((int)id.type) {
    case PN_STRING:
        return arena_copy(a, slice_of_bytes(bytes));
    case PN_ULONG:
        buf_fmt(&b, "%" PRIu64, id.u.as_ulong);
        break;
    case PN_BINARY:
        for (size_t i = 0; i < bytes.size; i++)
            buf_fmt(&b, "%02x", (unsigned)(unsigned char)bytes.start[i]);
        break;
    case PN_UUID:
        for (size_t i = 0; i < 16; i++)
            buf_fmt(&b, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                    (unsigned)(unsigned char)id.u.as_uuid.bytes[i]);
        break;
    default:
        return SLICE_NONE;
    }
    return arena_copy(a, buf_view(&b));
}

static struct slice text_of(struct arena *a, const char *text)
{
    return text ? arena_copy(a, slice_of(text)) : SLICE_NONE;
}

/* A property as text: strings as they are, other types as JSON. */
static struct slice property_text(struct arena *a, pn_data_t *d)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (pn_data_type(d) == PN_STRING || pn_data_type(d) == PN_SYMBOL)
        return arena_copy(a, slice_of_bytes(pn_data_type(d) == PN_STRING ? pn_data_get_string(d)
                                                                         : pn_data_get_symbol(d)));
    if (pn_data_type(d) == PN_MAP || pn_data_type(d) == PN_LIST || !write_value(&b, d))
        return SLICE_NONE;
    return arena_copy(a, buf_view(&b));
}

static void read_properties(struct arena *a, pn_data_t *d, struct amqp_message *m)
{
    pn_data_rewind(d);
    if (!pn_data_next(d) || pn_data_type(d) != PN_MAP || !pn_data_enter(d))
        return;
    while (pn_data_next(d) && pn_data_type(d) == PN_STRING) {
        struct slice name = arena_copy(a, slice_of_bytes(pn_data_get_string(d)));
        if (!pn_data_next(d))
            return;
        struct slice value = property_text(a, d);
        if (!value.ptr)
            continue;
        struct amqp_property *p = arena_alloc(a, sizeof *p);
        *p = (struct amqp_property){m->properties, name, value};
        m->properties = p;
    }
}

/* ---- several data sections ---- */

static uint64_t big_endian(const char *p, size_t size)
{
    uint64_t v = 0;

    for (size_t i = 0; i < size; i++)
        v = v << 8 | (unsigned char)p[i];
    return v;
}

/* The size of a value, by its first bytes; 0: unknown, or truncated. */
static size_t value_size(struct slice s)
{
    static const size_t fixed[] = {[4] = 1, [5] = 2, [6] = 3, [7] = 5, [8] = 9, [9] = 17};
    unsigned kind = s.len > 0 ? (unsigned char)s.ptr[0] >> 4 : 0;
    size_t size = 0;

    if (kind >= 4 && kind <= 9)
        size = fixed[kind];
    else if (kind >= 10 && kind % 2 == 0 && s.len >= 2)
        size = 2 + (unsigned char)s.ptr[1];
    else if (kind >= 10 && kind % 2 == 1 && s.len >= 5)
        size = 5 + big_endian(s.ptr + 1, 4);
    return size <= s.len ? size : 0;
}

static bool is_data(struct slice descriptor)
{
    unsigned char kind = (unsigned char)descriptor.ptr[0];

    return (kind == 0x53 || kind == 0x80)
           && big_endian(descriptor.ptr + 1, descriptor.len - 1) == DATA_SECTION;
}

/* A body may have several data sections, of which Proton returns only the last. Joins them, and
 * returns their number. */
static size_t join_data(struct slice text, struct buf *ret)
{
    size_t count = 0;

    while (text.len > 0 && text.ptr[0] == 0) {
        struct slice rest = {text.ptr + 1, text.len - 1};
        struct slice descriptor = {rest.ptr, value_size(rest)};
        rest = (struct slice){rest.ptr + descriptor.len, rest.len - descriptor.len};
        size_t size = descriptor.len > 0 ? value_size(rest) : 0;
        if (size == 0)
            return count;
        size_t head = (unsigned char)rest.ptr[0] == 0xb0 ? 5 : 2;
        if (is_data(descriptor) && size >= head) {
            buf_add(ret, rest.ptr + head, size - head);
            count++;
        }
        text = (struct slice){rest.ptr + size, rest.len - size};
    }
    return count;
}

static enum err read_body(struct arena *a, struct slice text, pn_data_t *d, struct amqp_message *m,
                          struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf joined = {0};

    pn_data_rewind(d);
    if (!pn_data_next(d)) {
        m->body = SLICE("");
        return ERR_OK;
    }
    if (pn_data_type(d) == PN_BINARY && join_data(text, &joined) > 1)
        m->body = arena_copy(a, buf_view(&joined));
    else if (pn_data_type(d) == PN_BINARY)
        m->body = arena_copy(a, slice_of_bytes(pn_data_get_binary(d)));
    else if (pn_data_type(d) == PN_STRING)
        m->body = arena_copy(a, slice_of_bytes(pn_data_get_string(d)));
    else if (write_value(&b, d))
        m->body = arena_copy(a, buf_view(&b));
    else
        return error_set(e, ERR_PARSE,
                         "the body is an AMQP value that JSON has nothing for; send JSON as bytes "
                         "or text");
    return ERR_OK;
}

static bool texts_are_sound(const struct amqp_message *m)
{
    const struct slice list[] = {m->id,      m->correlation_id, m->reply_to,
                                 m->subject, m->group_id,       m->content_type};

    for (size_t i = 0; i < COUNT_OF(list); i++)
        if (list[i].ptr && !is_text(list[i]))
            return false;
    for (const struct amqp_property *p = m->properties; p; p = p->next)
        if (!is_text(p->name) || !is_text(p->value))
            return false;
    return true;
}

static enum err check_shape(struct slice text, struct error *e)
{
    switch (amqp_shape(text)) {
    case AMQP_SHAPE_SOUND:
        return ERR_OK;
    case AMQP_SHAPE_DEEP:
        return error_set(e, ERR_PARSE,
                         "it has an AMQP value that is nested deeper than %d levels; send JSON as "
                         "bytes or text",
                         AMQP_NESTING_MAX);
    case AMQP_SHAPE_LARGE:
        return error_set(e, ERR_PARSE,
                         "it has AMQP values of more than %d parts; send JSON as bytes or text",
                         AMQP_PARTS_MAX);
    case AMQP_SHAPE_BROKEN:
        break;
    }
    return error_set(e, ERR_PARSE, "it is no message of AMQP 1.0");
}

enum err amqp_message_decode(struct arena *a, struct slice text, struct amqp_message *ret,
                             struct error *e)
{
    enum err err = check_shape(text, e);

    *ret = (struct amqp_message){.body = SLICE("")};
    if (err != ERR_OK)
        return err;
    pn_message_t *m = pn_message();
    if (pn_message_decode(m, text.ptr, text.len) != 0) {
        err = error_set(e, ERR_PARSE, "it is no message of AMQP 1.0");
    } else {
        ret->id = id_text(a, pn_message_get_id(m));
        ret->correlation_id = id_text(a, pn_message_get_correlation_id(m));
        ret->reply_to = text_of(a, pn_message_get_reply_to(m));
        ret->subject = text_of(a, pn_message_get_subject(m));
        ret->group_id = text_of(a, pn_message_get_group_id(m));
        ret->content_type = text_of(a, pn_message_get_content_type(m));
        read_properties(a, pn_message_properties(m), ret);
        err = read_body(a, text, pn_message_body(m), ret, e);
        if (err == ERR_OK && !texts_are_sound(ret))
            err = error_set(e, ERR_PARSE, "one of its properties is not UTF-8");
    }
    pn_message_free(m);
    return err;
}

struct slice amqp_message_property(const struct amqp_message *m, const char *name)
{
    for (const struct amqp_property *p = m->properties; p; p = p->next)
        if (slice_is(p->name, name))
            return p->value;
    return SLICE_NONE;
}

/* ---- writing ---- */

static pn_msgid_t id_of(struct slice text)
{
    return (pn_msgid_t){.type = PN_STRING, .u.as_bytes = pn_bytes(text.len, text.ptr)};
}

static void set_text(pn_message_t *m, int (*set)(pn_message_t *, const char *), struct slice text)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (!text.ptr)
        return;
    buf_slice(&b, text);
    (void)set(m, buf_view(&b).ptr); /* only memory could fail */
}

static void write_properties(pn_data_t *d, const struct amqp_property *first)
{
    if (!first)
        return;
    (void)pn_data_put_map(d);
    (void)pn_data_enter(d);
    for (const struct amqp_property *p = first; p; p = p->next) {
        (void)pn_data_put_string(d, pn_bytes(p->name.len, p->name.ptr));
        (void)pn_data_put_string(d, pn_bytes(p->value.len, p->value.ptr));
    }
    (void)pn_data_exit(d);
}

char *amqp_message_encode(const struct amqp_message *m, size_t *ret_size)
{
    pn_message_t *p = pn_message();
    pn_rwbytes_t bytes = {0};

    (void)pn_message_set_durable(p, true);
    if (m->id.ptr)
        (void)pn_message_set_id(p, id_of(m->id));
    if (m->correlation_id.ptr)
        (void)pn_message_set_correlation_id(p, id_of(m->correlation_id));
    set_text(p, pn_message_set_address, m->to);
    set_text(p, pn_message_set_reply_to, m->reply_to);
    set_text(p, pn_message_set_subject, m->subject);
    set_text(p, pn_message_set_group_id, m->group_id);
    set_text(p, pn_message_set_content_type, m->content_type);
    if (m->ttl_ms > 0)
        (void)pn_message_set_ttl(p, (pn_millis_t)min_i64(m->ttl_ms, UINT32_MAX));
    if (m->expires_at > 0)
        (void)pn_message_set_expiry_time(p, m->expires_at);
    write_properties(pn_message_properties(p), m->properties);
    (void)pn_message_set_inferred(p, true); /* the body is bytes, not a value */
    (void)pn_data_put_binary(pn_message_body(p), pn_bytes(m->body.len, m->body.ptr));
    ssize_t size = pn_message_encode2(p, &bytes);
    ASSERT(size > 0); /* only memory could fail */
    pn_message_free(p);
    *ret_size = (size_t)size;
    return bytes.start;
}
