#include "cli/submit_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/client.h"

enum {
    BATCH_LINES = 500,
    BATCH_SIZE = 1 << 20, /* bytes; well below what a server takes */
    BUSY_TRIES = 20,
    BUSY_PAUSE_MS = 500,
};

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL); /* woken early is fine */
}

/* Many tasks: lines gather in a batch, each batch is one call. */
struct batch {
    struct intact_client *client;
    bool json;
    const char *file;
    struct buf body;
    size_t lines[BATCH_LINES]; /* number in the file of each line of the batch */
    size_t count;
    size_t fresh, existing, refused;
};

static void read_outcome(struct batch *b, const struct json *j)
{
    int64_t line = json_get_int(j, "line", 0);
    int64_t status = json_get_int(j, "status", 0);
    const struct json *problem = json_get(j, "problem");
    size_t number = line >= 1 && line <= (int64_t)b->count ? b->lines[line - 1] : 0;

    b->fresh += status == 201;
    b->existing += status == 200;
    if (status == 200 || status == 201)
        return;
    b->refused++;
    struct slice detail = json_get_text(problem, "detail");
    if (!detail.len)
        detail = json_get_text(problem, "title");
    fprintf(stderr, "%s:%zu: %.*s (status %" PRId64 ")\n", b->file, number, SLICE_ARG(detail),
            status);
}

static int read_outcomes(struct batch *b)
{
    const char *at = intact_client_body(b->client);
    size_t seen = 0;

    if (b->json)
        fputs(at, stdout);
    while (*at) {
        CLEANUP(arena_fini) struct arena a = {0};
        size_t len = strcspn(at, "\n");
        struct json *j = NULL;
        if (len > 0 && json_parse(&a, (struct slice){at, len}, &j, NULL) == ERR_OK) {
            read_outcome(b, j);
            seen++;
        }
        at += len + (at[len] == '\n');
    }
    if (seen == b->count)
        return CLI_OK;
    fprintf(stderr, "intact: %zu tasks submitted, %zu answered\n", b->count, seen);
    return CLI_NOT_WELL;
}

/* A server that is busy has taken nothing: the batch is tried again for a while. */
static int send_batch(struct batch *b)
{
    enum intact_status status = INTACT_BUSY;

    if (b->count == 0)
        return CLI_OK;
    for (int i = 0; status == INTACT_BUSY && i < BUSY_TRIES; i++) {
        if (i > 0)
            pause_ms(BUSY_PAUSE_MS);
        status = intact_client_submit_many(b->client, b->body.ptr, b->body.len);
    }
    int end = status == INTACT_OK ? read_outcomes(b) : client_complain(b->client, status);
    if (status != INTACT_OK)
        fprintf(stderr, "intact: stopped at line %zu of %s\n", b->lines[0], b->file);
    b->count = 0;
    buf_clear(&b->body);
    return end;
}

static int add_line(struct batch *b, const char *line, size_t len, size_t number)
{
    int end = CLI_OK;

    if (strspn(line, " \t\r\n") >= len)
        return CLI_OK;
    if (b->count == BATCH_LINES || (b->count > 0 && b->body.len + len > BATCH_SIZE))
        end = send_batch(b);
    b->lines[b->count++] = number;
    buf_add(&b->body, line, len);
    if (line[len - 1] != '\n')
        buf_byte(&b->body, '\n');
    return end;
}

static int send_file(struct batch *b)
{
    bool is_stdin = strcmp(b->file, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(b->file, "re");
    char *line = NULL;
    size_t cap = 0;
    int end = CLI_OK;

    if (!f) {
        fprintf(stderr, "intact: %s: %s\n", b->file, strerror(errno));
        return CLI_USAGE;
    }
    if (is_stdin)
        b->file = "standard input";
    for (size_t number = 1; end == CLI_OK; number++) {
        ssize_t len = getline(&line, &cap, f);
        if (len <= 0)
            break;
        end = add_line(b, line, (size_t)len, number);
    }
    if (end == CLI_OK)
        end = send_batch(b);
    free(line);
    if (!is_stdin)
        (void)fclose(f); /* it was only read */
    fprintf(b->json ? stderr : stdout, "%zu submitted, %zu existed already, %zu refused\n",
            b->fresh, b->existing, b->refused);
    return end == CLI_OK && b->refused ? CLI_NOT_WELL : end;
}

int submit_file(const struct invocation *in)
{
    struct intact_client *c = client_begin(in);
    struct batch b = {.client = c, .json = given(in, "json"), .file = given(in, "file")};
    int end = send_file(&b);

    buf_fini(&b.body);
    intact_client_free(c);
    return end;
}
