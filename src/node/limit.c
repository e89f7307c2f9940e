/*
 * The table of limits (serve --limit): names, defaults and bounds. Whoever keeps a limit reads it
 * from struct server_limits; nothing is enforced here.
 */

#include "node/limit.h"

#include "base/when.h"
#include "json/json.h"

enum kind { COUNT, SIZE, TIME };

/* All of them are unsigned numbers of 64 bits. */
_Static_assert(sizeof(size_t) == sizeof(uint64_t), "one setter serves all limits");

static const struct limit {
    const char *name;
    size_t at; /* in struct server_limits */
    enum kind kind;
    uint64_t initial, min, max;
    const char *meaning;
} limits[] = {
#define HTTP(field) offsetof(struct server_limits, http.field)
#define OURS(field) offsetof(struct server_limits, field)
    /* clang-format off */
    {"body", HTTP(body_max), SIZE, 4 << 20, 1 << 10, 64 << 20, "body of a request"},
    {"json-depth", OURS(json_depth), COUNT, JSON_DEPTH_OUTSIDE, 1, JSON_DEPTH_OUTSIDE,
     "arrays and objects inside each other in JSON"},
    {"request-line", HTTP(line_max), SIZE, 8 << 10, 256, 64 << 10, "first line of a request"},
    {"head", HTTP(head_max), SIZE, 16 << 10, 512, 256 << 10, "first line and header fields"},
    {"headers", HTTP(header_count_max), COUNT, 64, 8, 1000, "header fields of a request"},
    {"connections", HTTP(connection_max), COUNT, 16384, 1, 1000000, "connections at a time"},
    {"waiting", OURS(waiting_max), COUNT, 12000, 1, 1000000,
     "requests that wait: for work, for the end of a task, for events"},
    {"readings", OURS(line_max), COUNT, 256, 1, 4096,
     "lists and counts that wait for the store, of one token"},
    {"instances", OURS(instances_max), COUNT, 10000, 1, 1000000,
     "instances of one agent whose names are known"},
    {"agents", OURS(agents_max), COUNT, 10000, 1, 1000000, "agents whose names are known"},
    {"memory", HTTP(memory_max), SIZE, 512 << 20, 1 << 20, 64ull << 30,
     "requests and answers in work, together"},
    {"stream-backlog", HTTP(stream_backlog_max), SIZE, 256 << 10, 4 << 10, 64 << 20,
     "what may wait for the reader of a stream"},
    {"head-time", HTTP(head_ms), TIME, 10000, 100, 3600000,
     "from the first byte (TLS: the connection) to the last header field"},
    {"body-time", HTTP(body_ms), TIME, 60000, 100, 3600000, "for all of the body"},
    {"idle-time", HTTP(idle_ms), TIME, 75000, 100, 86400000, "between two requests"},
    {"write-time", HTTP(write_ms), TIME, 60000, 100, 3600000, "for the client to take an answer"},
    /* clang-format on */
};

/* A limit's place: size_t and uint64_t alike. */
static void put(struct server_limits *l, const struct limit *one, uint64_t value)
{
    memcpy((char *)l + one->at, &value, sizeof value);
}

void limits_init(struct server_limits *l)
{
    *l = (struct server_limits){.http = http_limits_default};
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        put(l, &limits[i], limits[i].initial);
}

static bool number_parse(struct slice text, size_t *ret_used, uint64_t *ret)
{
    uint64_t v = 0;
    size_t i = 0;

    for (; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++) {
        if (v > UINT64_MAX / 100)
            return false;
        v = v * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *ret_used = i;
    *ret = v;
    return i > 0;
}

static bool size_parse(struct slice text, uint64_t *ret)
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB"};
    size_t used = 0;
    uint64_t v = 0;

    if (!number_parse(text, &used, &v))
        return false;
    struct slice unit = {text.ptr + used, text.len - used};
    for (unsigned i = 0; i < COUNT_OF(units); i++)
        if (slice_is(unit, units[i]) && v <= UINT64_MAX >> (10 * i)) {
            *ret = v << (10 * i);
            return true;
        }
    return false;
}

static bool value_parse(enum kind kind, struct slice text, uint64_t *ret)
{
    int64_t ms = 0;
    size_t used = 0;

    switch (kind) {
    case COUNT:
        return number_parse(text, &used, ret) && used == text.len;
    case SIZE:
        return size_parse(text, ret);
    case TIME:
        if (!duration_parse(text, &ms) || ms < 0)
            return false;
        *ret = (uint64_t)ms;
        return true;
    }
    UNREACHABLE();
}

static void value_write(struct buf *b, enum kind kind, uint64_t v)
{
    static const char *const sizes[] = {"", "KiB", "MiB", "GiB"};
    unsigned unit = 0;

    if (kind == TIME) {
        bool whole = v % 1000 == 0;
        buf_fmt(b, "%" PRIu64 "%s", whole ? v / 1000 : v, whole ? "s" : "ms");
        return;
    }
    while (kind == SIZE && v > 0 && v % 1024 == 0 && unit + 1 < COUNT_OF(sizes)) {
        v /= 1024;
        unit++;
    }
    buf_fmt(b, "%" PRIu64 "%s", v, sizes[unit]);
}

static enum err refuse(const struct limit *one, struct slice value, struct error *e)
{
    static const char *const kinds[] = {"a number", "a size", "a duration"};
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "%s from ", kinds[one->kind]);
    value_write(&b, one->kind, one->min);
    buf_str(&b, " to ");
    value_write(&b, one->kind, one->max);
    return error_set(e, ERR_INVALID, "limit %s is \"%.*s\", expected %s", one->name,
                     SLICE_ARG(value), b.ptr);
}

static enum err refuse_name(struct slice name, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (size_t i = 0; i < COUNT_OF(limits); i++)
        buf_fmt(&b, "%s%s", i > 0 ? ", " : "", limits[i].name);
    return error_set(e, ERR_INVALID, "there is no limit \"%.*s\", expected one of %s",
                     SLICE_ARG(name), b.ptr);
}

enum err limits_set(struct server_limits *l, const char *text, struct error *e)
{
    const char *equals = strchr(text, '=');
    struct slice name = {text, equals ? (size_t)(equals - text) : strlen(text)};
    uint64_t v = 0;

    if (!equals)
        return error_set(e, ERR_INVALID, "limit is \"%s\", expected NAME=VALUE", text);
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        const struct limit *one = &limits[i];
        if (!slice_is(name, one->name))
            continue;
        if (!value_parse(one->kind, slice_of(equals + 1), &v) || v < one->min || v > one->max)
            return refuse(one, slice_of(equals + 1), e);
        put(l, one, v);
        return ERR_OK;
    }
    return refuse_name(name, e);
}

void limits_describe(struct buf *b)
{
    for (size_t i = 0; i < COUNT_OF(limits); i++) {
        buf_fmt(b, "    %-15s %s [", limits[i].name, limits[i].meaning);
        value_write(b, limits[i].kind, limits[i].initial);
        buf_str(b, "]\n");
    }
}
