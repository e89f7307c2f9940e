#ifndef STORE_MEMORY_ACCESS_H
#define STORE_MEMORY_ACCESS_H

/* Tokens and audit of the state store in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_token {
    struct arena arena;
    struct token_row row;
};

struct mem_access {
    struct mem_token *tokens; /* by name */
    size_t token_count;
    struct arena audit_arena; /* of the texts */
    struct audit *audits;     /* audits[seq - 1] */
    size_t audit_count, audit_cap;
    uint64_t generation; /* of the tokens: raised with each change of them */
};

void mem_access_fini(struct mem_access *m);

bool mem_token_fits(const struct mem_access *m, const struct token_row *t, bool replace);
void mem_token_put(struct mem_access *m, const struct token_row *t); /* replaces */
bool mem_token_exists(const struct mem_access *m, struct slice name);
bool mem_token_is(const struct mem_access *m, struct slice name,
                  const unsigned char hash[TOKEN_HASH_SIZE]);
bool mem_token_is_last_admin(const struct mem_access *m, struct slice name, int64_t now);
void mem_token_delete(struct mem_access *m, struct slice name);
void mem_token_list(const struct mem_access *m, struct arena *a, struct token_row **ret,
                    size_t *ret_count);

void mem_audit_add(struct mem_access *m, const struct audit *audit); /* NULL: nothing */
void mem_audit_list(const struct mem_access *m, const struct audit_query *q, struct arena *a,
                    struct audit_page *ret);

#endif
