#ifndef CLI_TOKEN_FILE_H
#define CLI_TOKEN_FILE_H

/*
 * Where the command line gets a token from, if none is in the environment: a file that the user
 * names, or the one in which a server on this machine keeps its admin's.
 */

#include <intact/client.h>
#include <stddef.h>

#include "base/base.h"

/* The one line of a file. False: complained. */
bool token_file_read(const char *path, char *ret, size_t size);

/*
 * For intact_client_set_find_token: a server on loopback names its file in the header
 * Intact-Token-File of a 401. Whoever else may have taken the server's port could name any file, to
 * be sent what is in it. So it is believed only if the file is called admin-token, is a plain file
 * that is its owner's alone, holds nothing but a token, its owner is the user who listens on that
 * port, and the server answered the challenge `arg` (client_set_challenge) with a proof that it
 * knows this very token. NULL: no token, and it was said why.
 */
char *token_find(void *arg, const struct intact_client *c);

#endif
