#ifndef SERVER_COMPILING_H
#define SERVER_COMPILING_H

/*
 * Compiling the definition in a request's body. A large one takes up to a second: it is compiled on
 * a thread of libuv's pool, one at a time, while the loop goes on. Small ones are compiled at once.
 */

#include "definition/definition.h"
#include "server/internal.h"

enum {
    DEFINITION_MAX = 2 << 20, /* bytes of one; its tree is up to a hundred times as large */
    DEFINITION_SMALL = 8 << 10,
    COMPILINGS_MAX = 64,       /* that wait for the thread, ... */
    COMPILING_BYTES = 16 << 20 /* ... and their texts */
};

struct compiled {
    enum err err;
    struct definition *definition;        /* whoever takes it sets it to NULL */
    struct mistakes *mistakes, *warnings; /* the same */
    struct slice caller;                  /* who asked */
};

/* Calls `then` with what came of it, now or later; not if the client has gone meanwhile. Or the
 * request was answered already: it has no definition that could be compiled. */
void definition_compile(struct server *sv, struct http_request *r,
                        void (*then)(struct server *sv, struct http_request *r,
                                     struct compiled *c));

struct compilings *compilings_new(struct server *sv);
void compilings_free(struct compilings *cs); /* none is open any more */

#endif
