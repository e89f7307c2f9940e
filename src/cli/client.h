#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

/* What the verbs that talk to a server have in common. */

#include <intact/client.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/verb.h"
#include "json/json.h"

/* By the flags of the command line. Never NULL: it ends the program, and says why. */
struct intact_client *client_begin(const struct invocation *in);

/* The same for a live verb, by what its client found out: it has to have had an answer. */
struct live *client_begin_live(const struct invocation *in, const struct intact_client *c);

/* Tells of an answer that is not INTACT_OK, with what to do about it, and returns what exit status
 * it means. The answer is gone then. */
int client_complain(struct intact_client *c, enum intact_status status);

/* The answer as a tree; NULL (and it has been said) if it is none. */
const struct json *client_answer(const struct intact_client *c, struct arena *a);

/* Both in one: asks, and reads the answer. NULL: it has been said, and *ret_end is the status. */
const struct json *client_ask(struct intact_client *c, const char *method, const char *path,
                              const struct buf *body, struct arena *a, int *ret_end);

/* Milliseconds UTC by our clock; and how far the server's is ahead of it, by its latest answer: 0
 * unless it is more than that can tell. */
int64_t client_now(void);
int64_t client_clock_offset(const struct intact_client *c);

/* Percent-encodes what is not plain in a URL. */
void client_escape(struct buf *b, struct slice s);

/* A file, "-" for standard input, as a whole. False: complained. */
bool client_read_file(const char *path, struct buf *ret);

/* Prints the answer and a newline, as --json wants it. */
void client_print_body(const struct intact_client *c);

/* How a task ended, as exit status: CLI_OK only if it was processed. */
int client_task_status(const struct json *task);

#endif
