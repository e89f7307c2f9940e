#ifndef BACKGROUND_ADMIN_TOKEN_H
#define BACKGROUND_ADMIN_TOKEN_H

/* The token of the first admin, in a file of the data folder: made at the first start, rotated, and
 * proved to clients that look for it. */

#include "net/proof.h"
#include "store/store.h"

struct admin_token;
struct server;

struct admin_token *admin_token_new(void);
void admin_token_free(struct admin_token *t);

/* Makes the file if there is none. Before the store's thread starts. */
enum err admin_token_ensure(struct server *sv, struct error *e) MUST_USE;
void admin_token_log(struct server *sv); /* where it is, or why it is of no use */

/*
 * A rotation. Does the file hold the text with this hash? Then the new text is put beside it before
 * the store knows it, and replaces it after that, or is removed. Any thread but for `renewed`.
 */
bool admin_token_holds(const char *path, const unsigned char hash[TOKEN_HASH_SIZE]);
enum err admin_token_prepare(const char *path, const char *text, struct error *e) MUST_USE;
enum err admin_token_settle(const char *path, bool good, struct error *e) MUST_USE;
void admin_token_renewed(struct server *sv);

/* Proves to a client at this machine that the server knows the token (net/proof.h). False: it does
 * not. Reads the file again if it is another one than was read last. */
bool admin_token_prove(struct server *sv, struct slice challenge, int port,
                       char ret[PROOF_SIZE + 1]);

#endif
