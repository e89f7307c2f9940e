#ifndef CLI_VERBS_PUT_H
#define CLI_VERBS_PUT_H

/* What the verbs share that store a text with its mistakes: workflow put, schedule put. */

#include "cli/client/client.h"

/* Prints the warnings of the server's answer. */
void put_warnings_print(const struct intact_client *c, const char *file);
/* Prints the mistakes of a refused text, or what else failed; returns the exit code. */
int put_complain(struct intact_client *c, enum intact_status status, const char *file);
/* For "-" and unknown suffixes the content decides. */
bool put_is_yaml(const char *file, const struct buf *text);

#endif
