#ifndef CLI_CLIENT_TOKEN_FILE_H
#define CLI_CLIENT_TOKEN_FILE_H

/*
 * Where the command line gets a token if the environment has none: from a file that the user names,
 * or from the file in which a server on this machine keeps its admin's token.
 */

#include <intact/client.h>
#include <stddef.h>

#include "base/base.h"

/* Reads the only line of a file. False: an error, which was reported. */
bool token_file_read(const char *path, char *ret, size_t size);

/*
 * For intact_client_set_find_token: a server on loopback names its file in the header
 * Intact-Token-File of a 401. Another process on that port could name any file to get its content.
 * So the file is used only if it is called admin-token, is a regular file with access for its owner
 * only, contains only a token, its owner listens on that port, and the server answered the
 * challenge `arg` (client_set_challenge) with a proof that it has this very token. NULL: no token;
 * the reason was reported.
 */
char *token_find(void *arg, const struct intact_client *c);

#endif
