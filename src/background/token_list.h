#ifndef BACKGROUND_TOKEN_LIST_H
#define BACKGROUND_TOKEN_LIST_H

/* The tokens and the sessions of the console in memory: read from the store at the start, and again
 * whenever they have changed there. */

#include <uv.h>

#include "node/part.h"
#include "store/store.h"

struct server;
struct token_reload;

struct token_list {
    struct token_row *rows;
    size_t count;
    struct session_row *sessions; /* and codes */
    size_t session_count;
    enum err err;
};

enum err token_list_load(struct server *sv, struct error *e) MUST_USE; /* before the store thread */

void token_list_read(struct store *st, struct arena *a, struct token_list *ret); /* store thread */
/* These are good from now on; if they could not be read, they will be read later. */
void token_list_apply(struct server *sv, const struct token_list *list);

/* How often tokens had changed in the store when they were last read or were found to differ. */
uint64_t token_list_generation(const struct server *sv);
void token_list_set_generation(struct server *sv, uint64_t generation);
/* Reads them again if that is another generation. */
void token_list_check_generation(struct server *sv, uint64_t generation);

extern const struct part token_list_part;

#endif
