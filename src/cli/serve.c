#include "cli/cli.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/when.h"
#include "server/limit.h"
#include "server/server.h"
#include "store/sqlite.h"

static const char usage[] =
    "usage: intact serve [--data DIR] [--listen ADDR:PORT] [OPTION...]\n"
    "\n"
    "Runs the server: state store in DIR/intact.db, HTTP API on ADDR:PORT. Who calls it needs a\n"
    "token; the first one, which may do everything, is written to DIR/admin-token.\n"
    "\n"
    "  --data DIR            folder of the state store, made if missing   [./intact-data]\n"
    "  --adopt               go on with a copied folder, whose original is not used any more\n"
    "  --listen ADDR:PORT    port 0 takes any free one; beyond loopback\n"
    "                        with TLS or behind a proxy only              [127.0.0.1:7420]\n"
    "  --open                no tokens: whoever reaches it may do everything; loopback only\n"
    "  --tls-cert FILE       speak TLS with this certificate (PEM, those on the way to its\n"
    "                        root behind it); read again when it changes, and on SIGHUP\n"
    "  --tls-key FILE        its key (PEM, no passphrase)\n"
    "  --behind-proxy        a proxy ends TLS and alone can reach the address\n"
    "  --host NAME           by which clients reach it, besides loopback; repeatable\n"
    "  --scan-every TIME     how often the supervisor looks               [1s]\n"
    "  --grace TIME          more time for agents after a restart         [10s]\n"
    "  --drain TIME          how long SIGTERM waits for results           [5s]\n"
    "  --key-prefix TEXT     put before every idempotency key\n"
    "  --log LEVEL           debug, info, warn or error                   [info]\n"
    "  --limit NAME=VALUE    sets a limit; repeatable:\n";

static const char usage_end[] =
    "\n"
    "SIGTERM drains and ends it; a second one ends it at once, and nothing is lost.\n";

enum { HOSTS_MAX = 16 };

struct options {
    const char *data, *listen, *key_prefix;
    const char *tls_cert, *tls_key;
    const char *hosts[HOSTS_MAX];
    size_t host_count;
    bool behind_proxy;
    struct server_limits limits;
    int64_t scan_every_ms, grace_ms, drain_ms;
    bool open, adopt;
};

static int complain(const char *flag, const char *found, const char *expected)
{
    fprintf(stderr, "intact serve: %s is \"%s\", expected %s\n", flag, found, expected);
    return 2;
}

static int read_duration(const char *flag, const char *text, int64_t *ret)
{
    if (duration_parse(slice_of(text), ret) && *ret > 0)
        return 0;
    return complain(flag, text, "a duration such as 200ms, 30s or 15m");
}

static int read_level(const char *text)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(text, names[i]) == 0) {
            log_level_set((enum log_level)i);
            return 0;
        }
    return complain("--log", text, "debug, info, warn or error");
}

/* As it stands in Host, where the port does not matter. */
static int read_host(struct options *o, const char *name)
{
    bool is_v6 = name[0] == '[' && strspn(name + 1, "0123456789abcdefABCDEF:.") > 1
                 && strcmp(name + 1 + strspn(name + 1, "0123456789abcdefABCDEF:."), "]") == 0;
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

    if (!is_v6 && (len == 0 || len > 253 || name[len]))
        return complain("--host", name, "a name such as intact.example.org, without a port");
    if (o->host_count == HOSTS_MAX)
        return complain("--host", name, "at most 16 of them");
    o->hosts[o->host_count++] = name;
    return 0;
}

static int read_limit(struct options *o, const char *text)
{
    struct error e = {0};

    if (limits_set(&o->limits, text, &e) == ERR_OK)
        return 0;
    fprintf(stderr, "intact serve: %s\n", e.text);
    return 2;
}

static void print_usage(void)
{
    CLEANUP(buf_fini) struct buf b = {0};

    limits_describe(&b);
    printf("%s%s%s", usage, b.ptr, usage_end);
}

static int read_option(struct options *o, int c)
{
    switch (c) {
    case 'c':
        o->tls_cert = optarg;
        return 0;
    case 'y':
        o->tls_key = optarg;
        return 0;
    case 'p':
        o->behind_proxy = true;
        return 0;
    case 'n':
        return read_host(o, optarg);
    case 'm':
        return read_limit(o, optarg);
    case 'd':
        o->data = optarg;
        return 0;
    case 'l':
        o->listen = optarg;
        return 0;
    case 'o':
        o->open = true;
        return 0;
    case 'a':
        o->adopt = true;
        return 0;
    case 'k':
        o->key_prefix = optarg;
        return 0;
    case 's':
        return read_duration("--scan-every", optarg, &o->scan_every_ms);
    case 'g':
        return read_duration("--grace", optarg, &o->grace_ms);
    case 'r':
        return read_duration("--drain", optarg, &o->drain_ms);
    case 'v':
        return read_level(optarg);
    default:
        print_usage();
        return -1;
    }
}

static int refuse_option(int c, const char *flag)
{
    const char letter[] = {'-', (char)optopt, 0};

    if (c == '?' && optopt) /* one of several in a word */
        flag = letter;
    if (c == ':')
        fprintf(stderr, "intact serve: %s needs a value; see intact serve --help\n", flag);
    else
        fprintf(stderr, "intact serve: there is no option %s; see intact serve --help\n", flag);
    return 2;
}

static int read_options(struct options *o, int argc, char **argv)
{
    static const struct option longs[] = {
        {"data", required_argument, NULL, 'd'},
        {"listen", required_argument, NULL, 'l'},
        {"open", no_argument, NULL, 'o'},
        {"adopt", no_argument, NULL, 'a'},
        {"scan-every", required_argument, NULL, 's'},
        {"grace", required_argument, NULL, 'g'},
        {"drain", required_argument, NULL, 'r'},
        {"key-prefix", required_argument, NULL, 'k'},
        {"log", required_argument, NULL, 'v'},
        {"tls-cert", required_argument, NULL, 'c'},
        {"tls-key", required_argument, NULL, 'y'},
        {"behind-proxy", no_argument, NULL, 'p'},
        {"host", required_argument, NULL, 'n'},
        {"limit", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int c = 0;

    opterr = 0;
    while ((c = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        int bad = c == '?' || c == ':' ? refuse_option(c, argv[optind - 1]) : read_option(o, c);
        if (bad)
            return bad;
    }
    if (optind < argc)
        return complain("the command line", argv[optind], "options only; see intact serve --help");
    return 0;
}

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits >= 1 && digits <= 5 && !text[digits] && strtol(text, NULL, 10) <= 65535;
}

/* Whether there is such an address, the system says later. */
static bool is_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    bool is_v6 = address[0] == '[' && colon && colon[-1] == ']';

    return colon && is_port(colon + 1)
           && (is_v6 || !memchr(address, ':', (size_t)(colon - address)));
}

/* What is sent beyond this machine is for nobody else to read. */
static bool is_loopback(const char *address)
{
    const char *colon = strrchr(address, ':');
    char host[16] = "";
    struct in_addr ip;

    if (!colon || !is_port(colon + 1) || (size_t)(colon - address) >= sizeof host)
        return false;
    memcpy(host, address, (size_t)(colon - address));
    return strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0
           || (inet_pton(AF_INET, host, &ip) == 1 && ntohl(ip.s_addr) >> 24 == 127);
}

/* Absolute, since clients are told of it; NULL: it has said what is wrong. To be freed. */
static char *token_file_of(const char *data)
{
    char *folder = realpath(data, NULL);
    char *file = NULL;

    if (!folder || asprintf(&file, "%s/admin-token", folder) < 0) {
        fprintf(stderr, "intact serve: %s: %s\n", data, strerror(errno));
        file = NULL;
    }
    free(folder);
    return file;
}

static struct server_config config_of(const struct options *o, struct store *store)
{
    return (struct server_config){
        .listen = o->listen,
        .tls_cert = o->tls_cert,
        .tls_key = o->tls_key,
        .behind_proxy = o->behind_proxy,
        .hosts = o->hosts,
        .host_count = o->host_count,
        .limits = &o->limits,
        .store = store,
        .maintain = sqlite_store_maintain,
        .node = "n1",
        .key_prefix = o->key_prefix,
        .supervisor_interval_ms = o->scan_every_ms,
        .grace_ms = o->grace_ms,
        .drain_ms = o->drain_ms,
        .print_ready = true,
    };
}

static int run(const struct options *o, struct store *store)
{
    struct error e = {0};
    char *token_file = o->open ? NULL : token_file_of(o->data);
    struct server_config c = config_of(o, store);
    char db[PATH_MAX];
    char wal[PATH_MAX];

    if (!o->open && !token_file)
        return 1;
    (void)snprintf(db, sizeof db, "%s/intact.db", o->data); /* a longer one was not opened */
    (void)snprintf(wal, sizeof wal, "%s/intact.db-wal", o->data);
    const struct store_file files[] = {{"database", db}, {"wal", wal}};
    c.token_file = token_file;
    c.store_files = files;
    c.store_file_count = COUNT_OF(files);
    enum err err = server_run(&c, &e);
    free(token_file);
    if (err == ERR_OK)
        return 0;
    fprintf(stderr, "intact serve: %s\n", e.text);
    return 1;
}

static int check_options(const struct options *o)
{
    if (!*o->data)
        return complain("--data", o->data, "a folder");
    if (!is_address(o->listen))
        return complain("--listen", o->listen, "ADDR:PORT such as 127.0.0.1:7420 or [::1]:7420");
    if (o->tls_cert && !o->tls_key)
        return complain("--tls-cert", o->tls_cert, "--tls-key FILE beside it");
    if (o->tls_key && !o->tls_cert)
        return complain("--tls-key", o->tls_key, "--tls-cert FILE beside it");
    if (o->open && (o->behind_proxy || !is_loopback(o->listen)))
        return complain("--open", o->behind_proxy ? "given with --behind-proxy" : o->listen,
                        "an address on loopback and no proxy: --open asks nobody for a token");
    if (!is_loopback(o->listen) && !o->tls_cert && !o->behind_proxy)
        return complain("--listen", o->listen,
                        "an address on loopback (127.0.0.1:PORT or [::1]:PORT), or --tls-cert and "
                        "--tls-key, or --behind-proxy if a proxy ends TLS");
    return 0;
}

/* All of the file is read for it: only a copy is worth that. */
static enum err adopt(const struct options *o, struct error *e)
{
    bool was_copy = false;
    enum err err = sqlite_store_adopt(o->data, &was_copy, e);

    if (err == ERR_OK)
        log_line(LOG_INFO, "event=%s data=%s", was_copy ? "adopted" : "nothing_to_adopt", o->data);
    return err;
}

int cli_serve(int argc, char **argv)
{
    struct options o = {.data = "intact-data", .listen = "127.0.0.1:7420"};
    struct store *store = NULL;
    struct error e = {0};

    (void)umask(077); /* what we make has its mode, whoever started us */
    limits_init(&o.limits);
    int bad = read_options(&o, argc, argv);
    if (bad == 0)
        bad = check_options(&o);
    if (bad)
        return bad < 0 ? 0 : bad;
    enum err err = server_take_files(&e);
    if (err == ERR_OK && o.adopt)
        err = adopt(&o, &e);
    if (err == ERR_OK)
        err = sqlite_store_open(o.data, &store, &e);
    if (err != ERR_OK) {
        fprintf(stderr, "intact serve: %s\n", e.text);
        return 1;
    }
    int status = run(&o, store);
    store->ops->close(store);
    return status;
}
