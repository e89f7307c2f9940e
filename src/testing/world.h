#ifndef TESTING_WORLD_H
#define TESTING_WORLD_H

/*
 * The world outside of a test: what the services of the agents hold, as members with JSON values.
 * Effects change it, and are undone.
 *
 * One idempotency key takes effect once. An effect whose undo came before it does not take place
 * any more: that is what the services' agents have to guarantee (docs/barrier.md). A test file may
 * say that one does not; what was repeated is undone once.
 */

#include "base/map.h"
#include "testing/suite.h"

enum { KEPT_MAX = 1024 }; /* bytes of a value that is kept with each effect */

struct world_member {
    struct slice name, json, before; /* before: the test */
    char *own;                       /* memory of `json`, once an effect has changed it */
};

/* One effect, by its idempotency key. */
struct effect_record {
    struct slice key;
    struct slice step;          /* as step_path_write() names it */
    bool took, undone;          /* undone: also before it took effect */
    bool stays;                 /* its step has `undo: none` */
    bool repeats, repeats_undo; /* its service is not idempotent */
    bool ignores_undo;          /* it takes effect after its undo, too */
    struct slice input, output; /* of the request; NONE unless `reverse` may need them */
    const struct effect_spec *reverse;
    struct effect_record *older; /* the one that was first requested before it */
    struct changed {
        struct slice name, before, after; /* NONE: larger than KEPT_MAX */
    } * list;
    size_t count;
};

struct world_state {
    struct world_member *list;
    size_t count;
    struct map effects; /* by key */
    struct effect_record *newest;
    struct expression *minus;
    struct arena *arena; /* the test's */
};

/* `over`: members that differ, a JSON object or NONE. */
void world_open(struct world_state *w, struct slice json, struct slice over, struct arena *a);
void world_close(struct world_state *w);

void world_write(const struct world_state *w, struct buf *b); /* a JSON object */
const struct world_member *world_member(const struct world_state *w, struct slice name);

/* The record of a key, made if there is none. */
struct effect_record *world_effect(struct world_state *w, struct slice key);

/* The effect takes place, unless it did or was undone. `root`: what its expressions see. *ret: it
 * took place. ERR_INVALID: an expression failed, and nothing changed. *ret_at is its place. */
enum err world_take(struct world_state *w, struct effect_record *r, const struct effect_spec *spec,
                    const struct json *root, bool *ret, uint32_t *ret_at, struct error *e) MUST_USE;

/* It is undone, if it took place and was not. `root`: what r->reverse sees. */
enum err world_undo(struct world_state *w, struct effect_record *r, const struct json *root,
                    bool *ret, uint32_t *ret_at, struct error *e) MUST_USE;

/* Somebody undoes the effects of that step, its items and its child, as they say by `undone`.
 * Whether there were any. */
bool world_undo_by_hand(struct world_state *w, struct slice step);

/* The value of a member without the effects that stay: what they added to a number is subtracted,
 * anything else is taken away as `undone` says. NONE: one of them changed something that is no
 * number, and has no `undone`. */
struct slice world_without_staying(struct world_state *w, const struct world_member *m);

/* In that case: such an effect, if another effect, which does not stay, changed the member as well;
 * so nobody can say what it should be now. NULL: all that changed it stays. */
const struct effect_record *world_unclear(const struct world_state *w,
                                          const struct world_member *m);

/* Whether a member has this value: sums of fractions may differ by their order. */
bool world_values_equal(struct slice a, struct slice b);

/* Whether two JSON texts have equal values. */
bool json_texts_equal(struct slice a, struct slice b);

#endif
