/* Clients for the verbs: servers, tokens, installations, errors, and reading answers. See
 * client.h. */

#include "cli/client/client.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "cli/client/advice.h"
#include "cli/client/live_stream.h"
#include "cli/client/remembered.h"
#include "cli/client/token_file.h"
#include "cli/terminal/print.h"
#include "libintact/client.h"
#include "libintact/wire.h"
#include "net/proof.h"

#include <curl/curl.h>

/* Without a scheme, curl would use port 80. */
static void check_servers(const char *servers)
{
    for (const char *one = servers;; one++) {
        int len = (int)strcspn(one, ",");
        if (strncasecmp(one, "http://", 7) != 0 && strncasecmp(one, "https://", 8) != 0) {
            fprintf(stderr,
                    "intact: the server is \"%.*s\", expected http://HOST:PORT or "
                    "https://HOST:PORT\n",
                    len, one);
            exit(CLI_USAGE);
        }
        one += len;
        if (!*one)
            return;
    }
}

/* Found by a client; kept for live verbs, which have their own connections. */
static char *found_token;

/* Clients may run in several threads. */
static char *find_token(void *arg, const struct intact_client *c)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    (void)pthread_mutex_lock(&lock);
    char *token = token_find(arg, c);
    free(found_token);
    found_token = token ? strdup(token) : NULL;
    (void)pthread_mutex_unlock(&lock);
    return token;
}

/* For servers whose token is looked up. One challenge serves all calls of the process. */
static char challenge[CHALLENGE_SIZE + 1];
static pthread_once_t challenge_once = PTHREAD_ONCE_INIT;

static void make_challenge(void)
{
    if (!proof_challenge(challenge))
        challenge[0] = 0; /* then a token file is not used */
}

/* NULL: none stated. */
static const char *stated_installation(const struct invocation *in)
{
    struct installation i = {0};
    const char *stated = given(in, "installation");

    installation_state(&i, stated);
    if (i.mistake[0]) {
        fprintf(stderr, "intact: %s\n", i.mistake);
        exit(CLI_USAGE);
    }
    return stated && stated[0] ? stated : getenv(INSTALLATION_ENV);
}

struct intact_client *client_begin(const struct invocation *in)
{
    const char *file = given(in, "token-file");
    char token[128] = "";

    check_servers(wire_server(given(in, "server")));
    if (file && !token_file_read(file, token, sizeof token))
        exit(CLI_USAGE);
    struct intact_client *c =
        intact_client_new(given(in, "server"), file ? token : given(in, "token"));
    if (!c) {
        fputs("intact: libcurl cannot be used\n", stderr);
        exit(CLI_UNREACHED);
    }
    intact_client_set_ca(c, given(in, "ca"));
    remembered_use(c, stated_installation(in));
    (void)pthread_once(&challenge_once, make_challenge);
    if (challenge[0])
        client_set_challenge(c, challenge);
    intact_client_set_find_token(c, find_token, challenge);
    return c;
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
    /* A found token is only for the server for which it was found. */
    const char *now = intact_client_server(c);
    const char *servers = token || !found_token ? wire_server(given(in, "server")) : now;
    struct live *l = live_new(servers, now, token ? token : found_token, wire_ca(given(in, "ca")),
                              intact_client_installation(c));
    if (!l) {
        fputs("intact: libcurl cannot be used\n", stderr);
        exit(CLI_UNREACHED);
    }
    return l;
}

const struct flag client_flag_list[] = {
    {.name = "server",
     .value = "URL",
     .help = "address of the server; several are separated by commas and used in turn",
     .initial = "INTACT_SERVER, then http://127.0.0.1:7420"},
    {.name = "token-file",
     .value = "FILE",
     .help = "file with the token",
     .initial = "INTACT_TOKEN, then the admin token of a server on this machine",
     .kind = WORD_FILE},
    {.name = "token", .value = "TOKEN", .help = "the token; visible in the list of processes"},
    {.name = "ca",
     .value = "FILE",
     .help = "certificates that signed the server's",
     .initial = "INTACT_CA, then those of the system",
     .kind = WORD_FILE},
    {.name = "installation",
     .value = "ID",
     .help = "required installation of the server: its id, or any",
     .initial = "INTACT_INSTALLATION, then the first that answers"},
    {.name = "json", .help = "print the server's answer as JSON"},
    {.name = "color",
     .value = "WHEN",
     .help = "colours: always, never, or auto (on a terminal, unless NO_COLOR is set)",
     .initial = "auto",
     .kind = WORD_CHOICE,
     .choices = "auto always never"},
    {0},
};

int client_complain(struct intact_client *c, enum intact_status status)
{
    CLEANUP(buf_fini) struct buf text = {0};
    const struct invocation *in = verb_current();
    int end = status == INTACT_UNREACHABLE || status == INTACT_BUSY ? CLI_UNREACHED : CLI_NOT_WELL;

    ASSERT(status != INTACT_OK);
    buf_str(&text, intact_client_error(c));
    if (intact_client_http_status(c) != 0)
        advice_add(c, in, &text);
    ASSERT(in); /* only verbs call a server */
    return verb_failed(in, end, "%s", text.ptr);
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

const struct json *client_ask(struct intact_client *c, const char *method, const char *path,
                              const struct buf *body, struct arena *a, int *ret_end)
{
    enum intact_status status =
        intact_client_call(c, method, path, body ? "application/json" : NULL,
                           body ? body->ptr : NULL, body ? body->len : 0);
    const struct json *answer = status == INTACT_OK ? client_answer(c, a) : NULL;

    if (!answer)
        *ret_end = status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
    return answer;
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
    print_text(stdout, (struct slice){intact_client_body(c), intact_client_body_size(c)});
    putchar('\n');
}

int client_task_status(const struct json *task)
{
    return slice_is(json_get_text(task, "state"), "processed") ? CLI_OK : CLI_NOT_WELL;
}

/* The header has whole seconds, so smaller differences mean nothing. */
int64_t client_clock_offset(const struct intact_client *c)
{
    const char *date = intact_client_header(c, "Date");
    time_t seconds = date ? curl_getdate(date, NULL) : -1;
    int64_t offset = seconds > 0 ? (int64_t)seconds * 1000 + 500 - clock_wall_ms() : 0;

    return offset > 1500 || offset < -1500 ? offset : 0;
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
