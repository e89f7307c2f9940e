#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/when.h"
#include "cli/stream.h"
#include "cli/token_file.h"
#include "libintact/wire.h"

static int read_flags(int argc, char **argv, const struct flag_reader *r, struct client_flags *ret)
{
    optind = 1;
    for (int f = getopt_long(argc, argv, "f:", r->flags, NULL); f != -1;
         f = getopt_long(argc, argv, "f:", r->flags, NULL)) {
        if (f == 'S') {
            ret->server = optarg;
        } else if (f == 'T') {
            ret->token = optarg;
        } else if (f == 'F') {
            ret->token_file = optarg;
        } else if (f == 'C') {
            ret->ca = optarg;
        } else if (f == 'J') {
            ret->json = true;
        } else if (f == 'h') {
            fputs(r->usage, stdout);
            return -1;
        } else if (f == '?') {
            fputs(r->usage, stderr);
            return CLI_USAGE;
        } else if (!r->take || !r->take(r->arg, f, optarg)) {
            return CLI_USAGE;
        }
    }
    return CLI_OK;
}

int client_read_flags(int argc, char **argv, const struct flag_reader *r, struct client_flags *ret)
{
    char name[32];
    char *verb = argv[0];

    (void)snprintf(name, sizeof name, "intact %s", verb); /* getopt's messages begin with it */
    argv[0] = name;
    int end = read_flags(argc, argv, r, ret);
    argv[0] = verb;
    return end;
}

/* Without a scheme curl would take port 80 for meant. */
static void check_server(const char *server)
{
    if (strncasecmp(server, "http://", 7) == 0 || strncasecmp(server, "https://", 8) == 0)
        return;
    fprintf(stderr,
            "intact: the server is \"%s\", expected http://HOST:PORT or https://HOST:PORT\n",
            server);
    exit(CLI_USAGE);
}

/* Found by the client, for live verbs, which have connections of their own. */
static char *found_token;

static char *find_token(void *arg, const struct intact_client *c)
{
    char *token = token_find(arg, c);

    free(found_token);
    found_token = token ? strdup(token) : NULL;
    return token;
}

struct intact_client *client_open(const struct client_flags *f)
{
    char token[128] = "";

    check_server(wire_server(f->server));
    if (f->token_file && !token_file_read(f->token_file, token, sizeof token))
        exit(CLI_USAGE);
    struct intact_client *c = intact_client_new(f->server, f->token_file ? token : f->token);

    if (!c) {
        fputs("intact: libcurl cannot be used\n", stderr);
        exit(CLI_UNREACHED);
    }
    intact_client_set_ca(c, f->ca);
    intact_client_set_find_token(c, find_token, NULL);
    return c;
}

struct intact_client *client_begin(const struct invocation *in)
{
    return client_open(&(struct client_flags){.server = given(in, "server"),
                                              .token = given(in, "token"),
                                              .token_file = given(in, "token-file"),
                                              .ca = given(in, "ca")});
}

struct live *client_begin_live(const struct invocation *in, const struct intact_client *c)
{
    const char *file = given(in, "token-file");
    const char *token = wire_token(given(in, "token"));
    char text[128] = "";

    if (file && !token_file_read(file, text, sizeof text))
        exit(CLI_USAGE);
    if (file)
        token = text;
    struct live *l =
        live_new(intact_client_server(c), token ? token : found_token, wire_ca(given(in, "ca")));
    if (!l) {
        fputs("intact: libcurl cannot be used\n", stderr);
        exit(CLI_UNREACHED);
    }
    return l;
}

const struct flag client_flag_list[] = {
    {.name = "server",
     .value = "URL",
     .help = "where it is",
     .initial = "INTACT_SERVER, then http://127.0.0.1:7420"},
    {.name = "token-file",
     .value = "FILE",
     .help = "file that holds the token",
     .initial = "INTACT_TOKEN, then the admin's of a server on this machine",
     .kind = WORD_FILE},
    {.name = "token",
     .value = "TOKEN",
     .help = "itself; others may see it in the list of processes"},
    {.name = "ca",
     .value = "FILE",
     .help = "certificates that an https server's is signed by",
     .initial = "INTACT_CA, then the system's",
     .kind = WORD_FILE},
    {.name = "json", .help = "the server's answer, as it came"},
    {.name = "color",
     .value = "WHEN",
     .help = "auto, always or never; auto: on a terminal, unless NO_COLOR is set",
     .initial = "auto",
     .kind = WORD_CHOICE,
     .choices = "auto always never"},
    {0},
};

int client_complain(const struct intact_client *c, enum intact_status status)
{
    ASSERT(status != INTACT_OK);
    fprintf(stderr, "intact: %s\n", intact_client_error(c));
    return status == INTACT_UNREACHABLE || status == INTACT_BUSY ? CLI_UNREACHED : CLI_NOT_WELL;
}

const struct json *client_answer(const struct intact_client *c, struct arena *a)
{
    struct slice body = {intact_client_body(c), intact_client_body_size(c)};
    struct json *answer = NULL;

    if (json_parse(a, body, &answer, NULL) == ERR_OK)
        return answer;
    fprintf(stderr, "intact: %s does not answer like an Intact server\n", intact_client_server(c));
    return NULL;
}

bool client_duration(const char *flag, const char *text, int64_t *ret_ms)
{
    if (duration_parse(slice_of(text), ret_ms))
        return true;
    fprintf(stderr, "intact: %s is \"%s\", expected a duration such as 200ms, 30s or 15m\n", flag,
            text);
    return false;
}

bool client_read_file(const char *path, struct buf *ret)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "re");
    size_t n = 0;

    while (f) {
        char *room = buf_room(ret, 65536);
        n = room ? fread(room, 1, 65536, f) : 0;
        if (n == 0)
            break;
        ret->len += n;
        ret->ptr[ret->len] = 0;
    }
    bool ok = f && !ferror(f);
    if (!ok)
        fprintf(stderr, "intact: %s: %s\n", path, strerror(errno));
    if (f && !is_stdin)
        (void)fclose(f); /* it was only read */
    return ok;
}

void client_print_body(const struct intact_client *c)
{
    puts(intact_client_body(c));
}

static void print_line(const char *name, struct slice value)
{
    if (value.len)
        printf("%-11s %.*s\n", name, SLICE_ARG(value));
}

static void print_value(const char *name, const struct json *task, const char *key)
{
    struct slice raw = json_get_raw(task, key);

    if (!slice_is(raw, "null"))
        print_line(name, raw);
}

static void print_error(const struct json *task)
{
    const struct json *e = json_get(task, "error");

    if (e && e->type == JSON_OBJECT)
        printf("%-11s %.*s: %.*s\n", "error", SLICE_ARG(json_get_text(e, "code")),
               SLICE_ARG(json_get_text(e, "message")));
}

static void add_step(struct table *t, const struct json *step)
{
    const struct json *attempts = json_get(step, "attempts");
    const struct json *error = json_get(step, "error");
    CLEANUP(buf_fini) struct buf tries = {0};

    table_add(t, json_get_text(step, "name"));
    table_add(t, json_get_text(step, "state"));
    table_add(t, json_get_text(step, "agent"));
    table_add(t, json_get_text(step, "action"));
    buf_fmt(&tries, "%u", attempts ? attempts->count : 0);
    table_add(t, buf_view(&tries));
    table_add(t, json_get_raw(step, "failure_count"));
    table_add(t, json_get_bool(step, "in_doubt", false) ? SLICE("yes") : SLICE_NONE);
    table_add(t, json_get_text(error, "code"));
}

static void print_steps(const struct json *steps)
{
    static const char *const heads[] = {"STEP",     "STATE",    "AGENT",    "ACTION",
                                        "ATTEMPTS", "FAILURES", "IN DOUBT", "ERROR"};
    CLEANUP(table_fini) struct table t = {.columns = COUNT_OF(heads)};

    for (size_t i = 0; i < COUNT_OF(heads); i++)
        table_add(&t, slice_of(heads[i]));
    for (const struct json *step = steps ? steps->child : NULL; step; step = step->next)
        add_step(&t, step);
    putchar('\n');
    table_print(&t);
}

void client_print_task(const struct json *task)
{
    CLEANUP(buf_fini) struct buf workflow = {0};

    buf_fmt(&workflow, "%.*s, version %.*s", SLICE_ARG(json_get_text(task, "workflow")),
            SLICE_ARG(json_get_raw(task, "version")));
    print_line("task", json_get_text(task, "id"));
    print_line("workflow", buf_view(&workflow));
    print_line("state", json_get_text(task, "state"));
    print_line("waiting for", json_get_text(task, "waiting_for"));
    print_line("submitted", json_get_text(task, "submitted_at"));
    print_line("not before", json_get_text(task, "not_before"));
    print_line("complete by", json_get_text(task, "complete_by"));
    print_line("ended", json_get_text(task, "ended_at"));
    print_value("input", task, "input");
    print_value("output", task, "output");
    print_error(task);
    print_steps(json_get(task, "steps"));
}

int client_task_status(const struct json *task)
{
    return slice_is(json_get_text(task, "state"), "processed") ? CLI_OK : CLI_NOT_WELL;
}

void table_fini(struct table *t)
{
    arena_fini(&t->arena);
    free(t->cells);
}

void table_add(struct table *t, struct slice cell)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = realloc(t->cells, t->cap * sizeof(*t->cells));
        if (!t->cells)
            abort();
    }
    t->cells[t->count++] = cell.len ? arena_copy(&t->arena, cell) : SLICE("-");
}

static size_t column_width(const struct table *t, size_t column)
{
    size_t width = 0;

    for (size_t i = column; i < t->count; i += t->columns)
        width = t->cells[i].len > width ? t->cells[i].len : width;
    return width;
}

void table_print(const struct table *t)
{
    size_t widths[16] = {0};

    ASSERT(t->columns <= COUNT_OF(widths));
    ASSERT(t->count % t->columns == 0);
    for (size_t c = 0; c < t->columns; c++)
        widths[c] = column_width(t, c);
    for (size_t i = 0; i < t->count; i++) {
        size_t c = i % t->columns;
        if (c + 1 == t->columns)
            printf("%.*s\n", SLICE_ARG(t->cells[i]));
        else
            printf("%-*.*s  ", (int)widths[c], SLICE_ARG(t->cells[i]));
    }
}

void client_escape(struct buf *b, struct slice s)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                     || c == '-' || c == '_' || c == '.';
        if (plain) {
            buf_byte(b, (char)c);
        } else {
            buf_byte(b, '%');
            buf_byte(b, hex[c >> 4]);
            buf_byte(b, hex[c & 15]);
        }
    }
}
