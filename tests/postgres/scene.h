#ifndef TESTS_POSTGRES_SCENE_H
#define TESTS_POSTGRES_SCENE_H

/* A store over a pair of servers, used as a node does: what fails for a while is tried again. */

#include "store/postgres_body.h"

struct scene {
    struct store *s;
    struct arena a;
    struct error e;
};

/* As a node that is started again until it runs. */
void scene_begin(struct scene *c, const char *conninfo, const char *node, int64_t wait_ms);
void scene_end(struct scene *c);

enum err scene_insert(struct scene *c, const char *id);
/* As large as fits into a row, as it is. */
enum err scene_insert_large(struct scene *c, const char *id);
/* Writes it, should it not be there, until that is acknowledged. */
void scene_insert_until_done(struct scene *c, const char *id);

enum err scene_look(struct scene *c, const char *id);
/* As a node does: asks again until it knows. ERR_OK or ERR_NOT_FOUND. */
enum err scene_look_until_known(struct scene *c, const char *id);

#endif
