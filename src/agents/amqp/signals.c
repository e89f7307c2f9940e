/* Messages of submission queues that are signals: what they say, and those whose task does not
 * exist (yet). They are offers like submissions (offers.c), with a call of their own. */

#include <stdlib.h>

#include "agents/amqp/bridge.h"
#include "base/clock.h"
#include "libintact/client.h"

enum {
    UNKNOWN_HOLD_MS = 5000, /* before it is released: until then the task may come */
    UNKNOWN_KEPT_MAX = 10000,
    KEY_MAX = 128,
    WORD_MAX = 256, /* bytes of a task or name, which have 128 at most; longer URLs fail */
};

/* A signal whose task did not exist. It outlives its message, which comes again. */
struct unknown {
    struct link link; /* in the bridge's list, oldest first */
    struct buf name;  /* of the signal: what its call is, and its key */
    int64_t since;
};

bool signal_is_meant(const struct json *said, const struct amqp_message *m)
{
    return amqp_message_property(m, "signal").ptr || json_get(said, "signal");
}

/* It becomes a header. */
static bool key_ok(struct slice key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.ptr[i] <= ' ' || key.ptr[i] >= 0x7f)
            return false;
    return key.ptr && key.len > 0 && key.len <= KEY_MAX;
}

static struct slice first_of(struct slice a, struct slice b)
{
    return a.ptr && a.len > 0 ? a : b;
}

/* With the property `signal` the body is the value; otherwise it is an object with all of it. */
const char *signal_read(struct offer *o, const struct json *said, const struct amqp_message *m,
                        struct slice event_id)
{
    struct slice name = amqp_message_property(m, "signal");
    bool is_bare = name.ptr != NULL;
    struct slice task = amqp_message_property(m, "task");
    struct slice id = first_of(amqp_message_property(m, "id"), first_of(m->id, event_id));
    struct slice data = is_bare ? said->raw : json_get_raw(said, "data");

    if (!is_bare) {
        name = json_get_text(said, "signal");
        task = first_of(json_get_text(said, "task"), task);
        id = first_of(json_get_text(said, "id"), id);
    }
    if (!name.ptr || name.len == 0)
        return "signal is no name";
    if (!task.ptr || task.len == 0)
        return "nothing says which task the signal is for: set task, in the body or as a property";
    if (name.len > WORD_MAX || task.len > WORD_MAX)
        return "the name of the signal or its task is longer than 256 bytes";
    if (!key_ok(id))
        return "nothing says an id of 1 to 128 printable characters, so that a signal that comes "
               "twice would be two signals: set id in the body, or message-id";
    buf_slice(&o->task, task);
    buf_slice(&o->key, id);
    buf_str(&o->path, "/v1/tasks/");
    client_add_escaped(&o->path, o->task.ptr);
    buf_str(&o->path, "/signals/");
    CLEANUP(buf_fini) struct buf text = {0};
    buf_slice(&text, name);
    client_add_escaped(&o->path, text.ptr);
    buf_slice(&o->body, data.ptr ? data : SLICE("null"));
    return NULL;
}

/* ---- those without a task ---- */

static void unknown_free(struct bridge *b, struct unknown *u)
{
    (void)map_remove(&b->unknown_by_name, buf_view(&u->name));
    link_remove(&u->link);
    buf_fini(&u->name);
    free(u);
}

static void name_write(const struct offer *o, struct buf *b)
{
    buf_slice(b, buf_view(&o->path));
    buf_byte(b, ' ');
    buf_slice(b, buf_view(&o->key));
}

static struct unknown *unknown_of(struct offer *o)
{
    CLEANUP(buf_fini) struct buf name = {0};

    name_write(o, &name);
    return map_get(&o->bridge->unknown_by_name, buf_view(&name));
}

static struct unknown *unknown_new(struct offer *o)
{
    struct bridge *b = o->bridge;
    struct link *oldest = list_first(&b->unknown);
    struct unknown *u = calloc(1, sizeof *u);

    ASSERT(u);
    if (oldest && b->unknown_by_name.len >= UNKNOWN_KEPT_MAX)
        unknown_free(b, CONTAINER_OF(oldest, struct unknown, link));
    name_write(o, &u->name);
    u->since = clock_boot_ms();
    map_put(&b->unknown_by_name, buf_view(&u->name), u);
    list_push(&b->unknown, &u->link);
    return u;
}

enum unknown_next signal_unknown(struct offer *o)
{
    int64_t now = clock_boot_ms();
    struct unknown *u = unknown_of(o);

    if (!u)
        u = unknown_new(o);
    if (now - u->since >= o->queue->unknown_task_ms) {
        unknown_free(o->bridge, u);
        return UNKNOWN_SET_ASIDE;
    }
    if (o->tries > 0 || o->bridge->is_stopping)
        return UNKNOWN_RELEASE;
    o->tries++;
    o->retry_at = now + min_i64(UNKNOWN_HOLD_MS, o->queue->unknown_task_ms - (now - u->since));
    return UNKNOWN_HOLD;
}

void signal_known(struct offer *o)
{
    struct unknown *u = unknown_of(o);

    if (u)
        unknown_free(o->bridge, u);
}

void signals_close(struct bridge *b)
{
    LIST_FOREACH (at, after, &b->unknown) {
        unknown_free(b, CONTAINER_OF(at, struct unknown, link));
    }
    map_fini(&b->unknown_by_name);
}
