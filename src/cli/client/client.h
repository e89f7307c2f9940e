#ifndef CLI_CLIENT_CLIENT_H
#define CLI_CLIENT_CLIENT_H

/* Shared by the verbs that talk to a server. */

#include <intact/client.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/verb.h"
#include "json/json.h"

/* A client from the flags of the command line. Never NULL: on an error it reports and exits. */
struct intact_client *client_begin(const struct invocation *in);

/* The same for a live verb. The client `c` must have had an answer. */
struct live *client_begin_live(const struct invocation *in, const struct intact_client *c);

/* Reports an answer that is not INTACT_OK, with advice, and returns the exit status. The answer is
 * freed. */
int client_complain(struct intact_client *c, enum intact_status status);

/* The answer as a tree; NULL: not JSON, which was reported. */
const struct json *client_answer(const struct intact_client *c, struct arena *a);

/* Calls and reads the answer. NULL: an error, which was reported; *ret_end is the status. */
const struct json *client_ask(struct intact_client *c, const char *method, const char *path,
                              const struct buf *body, struct arena *a, int *ret_end);

/* How far the server's clock is ahead of clock_wall_ms(), by its latest answer; 0 if the difference
 * is too small to tell. */
int64_t client_clock_offset(const struct intact_client *c);

/* Percent-encodes for a URL. */
void client_escape(struct buf *b, struct slice s);

/* Reads a whole file; "-": standard input. False: an error, which was reported. */
bool client_read_file(const char *path, struct buf *ret);

/* Prints the answer and a newline, as for --json. */
void client_print_body(const struct intact_client *c);

/* The exit status for a task's end: CLI_OK only if it was processed. */
int client_task_status(const struct json *task);

#endif
