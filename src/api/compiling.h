#ifndef API_COMPILING_H
#define API_COMPILING_H

/*
 * Compiling the definition in a request's body. A large one takes up to a second: it is compiled
 * on a thread (offload.h), while the loop goes on; those that are to be stored come before those
 * that are only to be validated. Small ones are compiled at once.
 */

#include "definition/definition.h"
#include "http/http.h"
#include "node/offload.h"

struct server;

enum {
    DEFINITION_MAX = 2 << 20,       /* bytes of one ... */
    DEFINITION_READ_MAX = 64 << 20, /* ... and when it was read */
    DEFINITION_SMALL = 8 << 10,
    DEFINITIONS_MAX = 64,        /* that wait for the thread, ... */
    DEFINITIONS_BYTES = 16 << 20 /* ... and their texts */
};

struct compiled {
    enum err err;
    struct definition *definition;        /* whoever takes it sets it to NULL */
    struct mistakes *mistakes, *warnings; /* the same */
    struct slice caller;                  /* who asked */
};

/* Frees it on a thread if it is large: that takes up to some 30 ms. NULL: nothing. */
void definition_free_offloaded(struct server *sv, struct definition *d);

typedef void compiled_fn(struct server *sv, struct http_request *r, struct compiled *c);

/* Calls `then` with what came of it, now or later; not if the client has gone meanwhile. Or the
 * request was answered already: it has no definition that could be compiled. */
void definition_compile(struct server *sv, struct http_request *r, enum offload_rank rank,
                        compiled_fn *then);

/* False: by its content type it is neither JSON nor YAML. */
bool definition_format_of(const struct http_request *r, enum definition_format *ret);

#endif
