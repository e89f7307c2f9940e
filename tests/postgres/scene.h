#ifndef TESTS_POSTGRES_SCENE_H
#define TESTS_POSTGRES_SCENE_H

/* A store over a pair of servers, used as by a node: transient failures are retried. */

#include "store/postgres/body.h"

struct scene {
    struct store *s;
    struct arena a;
    struct error e;
};

/* Opens the store, retried like a node's start. */
void scene_begin(struct scene *c, const char *conninfo, const char *node, int64_t wait_ms);
void scene_end(struct scene *c);

enum err scene_insert(struct scene *c, const char *id);
/* With the largest document that fits into a row uncompressed. */
enum err scene_insert_large(struct scene *c, const char *id);
/* Inserts it, unless it exists, until that is acknowledged. */
void scene_insert_until_done(struct scene *c, const char *id);

enum err scene_look(struct scene *c, const char *id);
/* Repeats the query until its result is certain, as a node does. ERR_OK or ERR_NOT_FOUND. */
enum err scene_look_until_known(struct scene *c, const char *id);

#endif
