#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

/* What the verbs that talk to a server have in common. */

#include <getopt.h>
#include <intact/client.h>

#include "base/buf.h"
#include "cli/cli.h"
#include "cli/verb.h"
#include "json/json.h"

struct client_flags {
    const char *server, *token, *token_file, *ca;
    bool json;
};

/* First in the list of every verb's flags; their letters are taken. */
#define CLIENT_FLAGS                                                                        \
    {"server", required_argument, NULL, 'S'}, {"token", required_argument, NULL, 'T'},      \
        {"token-file", required_argument, NULL, 'F'}, {"ca", required_argument, NULL, 'C'}, \
        {"json", no_argument, NULL, 'J'},                                                   \
    {                                                                                       \
        "help", no_argument, NULL, 'h'                                                      \
    }
#define CLIENT_USAGE                                                                             \
    "  --server URL      [INTACT_SERVER, then http://127.0.0.1:7420]\n"                          \
    "  --token-file FILE file that holds the token       [INTACT_TOKEN, then the admin's of a\n" \
    "                    server on this machine, if its file is ours to read]\n"                 \
    "  --token TOKEN     itself; others may see it in the list of processes\n"                   \
    "  --ca FILE         certificates that an https server's is signed by  [INTACT_CA]\n"        \
    "  --json            the server's answer, as it came\n"

/*
 * Reads one flag after the other: `take` gets those that are not common. CLI_OK: all read, optind
 * is the first argument; -1: --help was printed, end with CLI_OK; CLI_USAGE: said so.
 */
struct flag_reader {
    const char *usage;
    const struct option *flags;
    bool (*take)(void *arg, int flag, const char *value); /* false: it has said what is wrong */
    void *arg;
};

int client_read_flags(int argc, char **argv, const struct flag_reader *r, struct client_flags *ret);

struct intact_client *client_open(const struct client_flags *f); /* never NULL: ends the program */
struct intact_client *client_begin(const struct invocation *in); /* the same, by its flags */

/* The same for a live verb, by what its client found out: it has to have had an answer. */
struct live *client_begin_live(const struct invocation *in, const struct intact_client *c);

/* Tells an answer that is not INTACT_OK, and what exit status it means. */
int client_complain(const struct intact_client *c, enum intact_status status);

/* The answer as a tree; NULL (and it has been said) if it is none. */
const struct json *client_answer(const struct intact_client *c, struct arena *a);

bool client_duration(const char *flag, const char *text, int64_t *ret_ms); /* complains */

/* Percent-encodes what is not plain in a URL. */
void client_escape(struct buf *b, struct slice s);

/* A file, "-" for standard input, as a whole. False: complained. */
bool client_read_file(const char *path, struct buf *ret);

/* Prints the answer and a newline, as --json wants it. */
void client_print_body(const struct intact_client *c);

/* A task as people read it. */
void client_print_task(const struct json *task);

/* How a task ended, as exit status: CLI_OK only if it was processed. */
int client_task_status(const struct json *task);

/* Columns as wide as their longest cell; the first row is the head. */
struct table {
    struct arena arena;
    struct slice *cells;
    size_t columns, count, cap;
};

void table_add(struct table *t, struct slice cell); /* NONE shows as "-" */
void table_print(const struct table *t);
void table_fini(struct table *t);

#endif
