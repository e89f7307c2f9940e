/* Implements scene.h: a store over a pair of servers, used as a node uses it. Errors that are
 * transient are retried, with the calls of struct store_ops. store_failover_test.c and
 * pooled_failover_test.c are the callers. */

#include "scene.h"

#include "base/test.h"

#include <string.h>
#include <unistd.h>

enum { TRIES = 9000, PAUSE_US = 20000 }; /* three minutes: only a failing test waits so long */

void scene_begin(struct scene *c, const char *conninfo, const char *node, int64_t wait_ms)
{
    const struct postgres_options o = {.conninfo = conninfo, .node = node, .wait_ms = wait_ms};
    enum err err = ERR_IO;

    *c = (struct scene){0};
    for (unsigned i = 0; i < TRIES && err_is_transient(err); i++)
        err = postgres_store_open(&o, &c->s, &c->e);
    CHECK(err == ERR_OK, "%s", c->e.text);
}

void scene_end(struct scene *c)
{
    c->s->ops->close(c->s);
    arena_fini(&c->a);
}

static enum err insert_doc(struct scene *c, const char *id, struct slice doc)
{
    struct change one = {.kind = CHANGE_INSERT,
                         .row = {.id = slice_of(id),
                                 .workflow = SLICE("w"),
                                 .version = 1,
                                 .revision = 1,
                                 .doc = doc}};
    struct batch b = {.changes = &one, .change_count = 1};
    enum err err = c->s->ops->commit(c->s, &b, &c->a, &c->e);

    return err == ERR_OK ? one.outcome : err;
}

enum err scene_insert(struct scene *c, const char *id)
{
    return insert_doc(c, id, SLICE("{}"));
}

enum err scene_insert_large(struct scene *c, const char *id)
{
    char doc[1500];

    memset(doc, 'x', sizeof doc);
    memcpy(doc, "{\"x\":\"", 6);
    memcpy(doc + sizeof doc - 2, "\"}", 2);
    return insert_doc(c, id, (struct slice){doc, sizeof doc});
}

void scene_insert_until_done(struct scene *c, const char *id)
{
    for (unsigned i = 0; i < TRIES; i++) {
        enum err err = scene_insert(c, id);
        if (err == ERR_OK || err == ERR_CONFLICT)
            return;
        CHECK(err_is_transient(err), "%s", c->e.text);
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "%s", c->e.text);
}

enum err scene_look(struct scene *c, const char *id)
{
    struct task_row row;

    return c->s->ops->get(c->s, slice_of(id), &c->a, &row, &c->e);
}

enum err scene_look_until_known(struct scene *c, const char *id)
{
    for (unsigned i = 0; i < TRIES; i++) {
        enum err err = scene_look(c, id);
        if (err == ERR_OK || err == ERR_NOT_FOUND)
            return err;
        CHECK(err_is_transient(err), "%s", c->e.text);
        (void)usleep(PAUSE_US);
    }
    CHECK(false, "%s", c->e.text);
    return ERR_IO;
}
