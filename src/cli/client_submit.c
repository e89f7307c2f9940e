#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const char usage[] =
    "usage: intact submit WORKFLOW [--input JSON] [--id ID] [--wait TIME] [...]\n"
    "       intact submit -f FILE\n"
    "\n"
    "Submits one task, or many from a file (- is standard input) with one JSON object a line:\n"
    "{\"workflow\": \"order\", \"id\": \"o-1\", \"input\": {...}}. Give ids: then the same "
    "submission again is\n"
    "the same task. Exit status 1 if the server refused any; with --wait if the task did not end\n"
    "processed.\n"
    "\n"
    "  --input JSON      of the task; @FILE reads a file, - standard input\n"
    "  --id ID           1 to 128 of [A-Za-z0-9._:-]   [made by the server]\n"
    "  --version N       of the workflow               [the newest]\n"
    "  --priority N      0 to 9, higher first          [5]\n"
    "  --not-before TIME RFC 3339\n"
    "  --tag KEY=VALUE   any number of times\n"
    "  --reply-to URL    kept with the task; nothing is sent to it yet\n"
    "  --wait TIME       until it has ended, at most so long\n" CLIENT_USAGE;

enum {
    BATCH_LINES = 500,
    BATCH_SIZE = 1 << 20, /* bytes; well below what a server takes */
    BUSY_TRIES = 20,
    BUSY_PAUSE_MS = 500,
};

struct submission {
    const char *file, *input, *id, *version, *priority, *not_before, *reply_to;
    struct buf tags; /* members of an object */
    int64_t wait_ms; /* -1: no */
};

static bool take_tag(struct submission *s, const char *value)
{
    const char *equals = strchr(value, '=');

    if (!equals) {
        fprintf(stderr, "intact: --tag is \"%s\", expected KEY=VALUE\n", value);
        return false;
    }
    if (!s->tags.len)
        json_open(&s->tags, '{');
    json_key_slice(&s->tags, (struct slice){value, (size_t)(equals - value)});
    json_string(&s->tags, slice_of(equals + 1));
    return true;
}

static bool take(void *arg, int flag, const char *value)
{
    struct submission *s = arg;
    const char **const places[] = {
        ['f'] = &s->file,     ['i'] = &s->input,      ['d'] = &s->id,       ['v'] = &s->version,
        ['p'] = &s->priority, ['n'] = &s->not_before, ['r'] = &s->reply_to, ['z'] = NULL};

    if (flag == 't')
        return take_tag(s, value);
    if (flag == 'w')
        return client_duration("--wait", value, &s->wait_ms);
    ASSERT(flag > 0 && flag < 'z' && places[flag]);
    *places[flag] = value;
    return true;
}

/* Reads what --input names; false: complained. */
static bool read_input(const char *input, struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json_fault fault = {0};
    struct json *j;

    if (input[0] == '@' || strcmp(input, "-") == 0) {
        if (!client_read_file(input[0] == '@' ? input + 1 : input, ret))
            return false;
    } else {
        buf_str(ret, input);
    }
    if (json_parse(&a, buf_view(ret), &j, &fault) == ERR_OK)
        return true;
    fprintf(stderr, "intact: the input is not JSON: line %u, column %u: %s\n", fault.line,
            fault.column, fault.what);
    return false;
}

static bool is_number(const char *name, const char *text)
{
    if (text[0] && !text[strspn(text, "0123456789")] && strlen(text) < 10)
        return true;
    fprintf(stderr, "intact: %s is \"%s\", expected a number\n", name, text);
    return false;
}

static void add_text(struct buf *b, const char *key, const char *value)
{
    if (!value)
        return;
    json_key(b, key);
    json_string(b, slice_of(value));
}

static bool add_number(struct buf *b, const char *key, const char *flag, const char *value)
{
    if (!value)
        return true;
    if (!is_number(flag, value))
        return false;
    json_key(b, key);
    json_number(b, strtoll(value, NULL, 10));
    return true;
}

static bool write_task(struct submission *s, const char *workflow, struct buf *b)
{
    CLEANUP(buf_fini) struct buf input = {0};

    json_open(b, '{');
    add_text(b, "workflow", workflow);
    add_text(b, "id", s->id);
    add_text(b, "not_before", s->not_before);
    add_text(b, "reply_to", s->reply_to);
    if (!add_number(b, "version", "--version", s->version)
        || !add_number(b, "priority", "--priority", s->priority)
        || !read_input(s->input ? s->input : "{}", &input))
        return false;
    json_key(b, "input");
    json_raw(b, buf_view(&input));
    if (s->tags.len) {
        json_close(&s->tags, '}');
        json_key(b, "tags");
        json_raw(b, buf_view(&s->tags));
    }
    json_close(b, '}');
    return true;
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL); /* woken early is fine */
}

static int wait_for_end(struct intact_client *c, const struct client_flags *f, const char *id,
                        int64_t wait_ms)
{
    CLEANUP(arena_fini) struct arena a = {0};
    enum intact_status status = intact_client_wait(c, id, wait_ms);

    if (status != INTACT_OK && status != INTACT_TIMEOUT)
        return client_complain(c, status);
    const struct json *task = client_answer(c, &a);
    if (!task)
        return CLI_NOT_WELL;
    if (f->json)
        client_print_body(c);
    else
        client_print_task(task);
    if (status == INTACT_TIMEOUT)
        fprintf(stderr, "intact: %s\n", intact_client_error(c));
    return client_task_status(task);
}

static int submit_one(struct intact_client *c, const struct client_flags *f, struct submission *s,
                      const char *workflow)
{
    CLEANUP(buf_fini) struct buf body = {0};
    CLEANUP(arena_fini) struct arena a = {0};

    if (!write_task(s, workflow, &body))
        return CLI_USAGE;
    enum intact_status status = intact_client_submit(c, body.ptr, 0);
    if (status != INTACT_OK)
        return client_complain(c, status);
    const struct json *answer = client_answer(c, &a);
    struct slice id = json_get_text(answer, "id");
    if (!answer)
        return CLI_NOT_WELL;
    if (s->wait_ms >= 0) {
        struct slice copy = arena_copy(&a, id); /* the answer goes with the next call */
        return wait_for_end(c, f, copy.ptr ? copy.ptr : "", s->wait_ms);
    }
    if (f->json)
        client_print_body(c);
    else
        printf("%.*s\n", SLICE_ARG(id));
    return CLI_OK;
}

/* Many tasks: lines gather in a batch, each batch is one call. */
struct batch {
    struct intact_client *client;
    const struct client_flags *flags;
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

    if (b->flags->json)
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

static int submit_file(struct batch *b)
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
    fprintf(b->flags->json ? stderr : stdout, "%zu submitted, %zu existed already, %zu refused\n",
            b->fresh, b->existing, b->refused);
    return end == CLI_OK && b->refused ? CLI_NOT_WELL : end;
}

static int submit(const struct client_flags *f, struct submission *s, const char *workflow)
{
    struct intact_client *c = client_open(f);
    struct batch b = {.client = c, .flags = f, .file = s->file};
    int end = s->file ? submit_file(&b) : submit_one(c, f, s, workflow);

    buf_fini(&b.body);
    intact_client_free(c);
    return end;
}

int cli_submit(int argc, char **argv)
{
    static const struct option flags[] = {CLIENT_FLAGS,
                                          {"file", required_argument, NULL, 'f'},
                                          {"input", required_argument, NULL, 'i'},
                                          {"id", required_argument, NULL, 'd'},
                                          {"version", required_argument, NULL, 'v'},
                                          {"priority", required_argument, NULL, 'p'},
                                          {"not-before", required_argument, NULL, 'n'},
                                          {"reply-to", required_argument, NULL, 'r'},
                                          {"tag", required_argument, NULL, 't'},
                                          {"wait", required_argument, NULL, 'w'},
                                          {NULL, 0, NULL, 0}};
    struct client_flags common = {0};
    struct submission s = {.wait_ms = -1};
    const struct flag_reader reader = {usage, flags, take, &s};
    int end = client_read_flags(argc, argv, &reader, &common);

    if (end == CLI_OK) {
        bool one = argc - optind == 1 && !s.file;
        bool many = argc == optind && s.file;
        if (!one && !many)
            fputs(usage, stderr);
        end = one || many ? submit(&common, &s, one ? argv[optind] : NULL) : CLI_USAGE;
    }
    buf_fini(&s.tags);
    return end < 0 ? CLI_OK : end;
}
