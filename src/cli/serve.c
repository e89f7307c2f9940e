#include "cli/verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/when.h"
#include "server/limit.h"
#include "server/server.h"
#include "store/postgres.h"
#include "store/sqlite.h"

enum { HOSTS_MAX = 16 };

struct options {
    const char *data, *listen, *key_prefix;
    const char *store, *schema, *node; /* store NULL: SQLite in `data` */
    const char *tls_cert, *tls_key;
    const char *hosts[HOSTS_MAX];
    size_t host_count;
    bool behind_proxy;
    struct server_limits limits;
    int64_t scan_every_ms, grace_ms, drain_ms, keep_ms;
    bool open, adopt;
};

static bool read_time(const struct invocation *in, const char *flag, int64_t *ret_ms)
{
    if (!given_duration(in, flag, ret_ms))
        return false;
    if (!given(in, flag) || *ret_ms > 0)
        return true;
    verb_misused(in, "--%s is \"%s\", expected a duration such as 200ms, 30s or 15m", flag,
                 given(in, flag));
    return false;
}

static void read_level(const struct invocation *in)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    const char *text = given(in, "log");

    for (size_t i = 0; text && i < COUNT_OF(names); i++)
        if (strcmp(text, names[i]) == 0)
            log_level_set((enum log_level)i);
}

/* As it stands in Host, where the port does not matter. */
static bool is_host(const char *name)
{
    bool is_v6 = name[0] == '[' && strspn(name + 1, "0123456789abcdefABCDEF:.") > 1
                 && strcmp(name + 1 + strspn(name + 1, "0123456789abcdefABCDEF:."), "]") == 0;
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");

    return is_v6 || (len > 0 && len <= 253 && !name[len]);
}

static int expected(const struct invocation *in, const char *flag, const char *found,
                    const char *what)
{
    return verb_misused(in, "--%s is \"%s\", expected %s", flag, found, what);
}

static int read_hosts(const struct invocation *in, struct options *o)
{
    const char *name = NULL;

    for (size_t at = 0; (name = given_next(in, "host", &at));) {
        if (!is_host(name))
            return expected(in, "host", name, "a name such as intact.example.org, without a port");
        if (o->host_count == HOSTS_MAX)
            return expected(in, "host", name, "at most 16 of them");
        o->hosts[o->host_count++] = name;
    }
    return CLI_OK;
}

static int read_limits(const struct invocation *in, struct options *o)
{
    struct error e = {0};
    const char *text = NULL;

    limits_init(&o->limits);
    for (size_t at = 0; (text = given_next(in, "limit", &at));)
        if (limits_set(&o->limits, text, &e) != ERR_OK)
            return verb_misused(in, "%s", e.text);
    return CLI_OK;
}

static int read_options(const struct invocation *in, struct options *o)
{
    *o = (struct options){
        .data = given(in, "data") ? given(in, "data") : "intact-data",
        .listen = given(in, "listen") ? given(in, "listen") : "127.0.0.1:7420",
        .key_prefix = given(in, "key-prefix"),
        .store = given(in, "store") ? given(in, "store") : getenv("INTACT_STORE"),
        .schema = given(in, "schema"),
        .node = given(in, "node"),
        .tls_cert = given(in, "tls-cert"),
        .tls_key = given(in, "tls-key"),
        .behind_proxy = given(in, "behind-proxy"),
        .open = given(in, "open"),
        .adopt = given(in, "adopt"),
    };
    read_level(in);
    if (!read_time(in, "scan-every", &o->scan_every_ms) || !read_time(in, "grace", &o->grace_ms)
        || !read_time(in, "drain", &o->drain_ms) || !read_time(in, "keep", &o->keep_ms))
        return CLI_USAGE;
    int bad = read_hosts(in, o);
    return bad ? bad : read_limits(in, o);
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
        .maintain = o->store ? NULL : sqlite_store_maintain,
        .node = o->node,
        .key_prefix = o->key_prefix,
        .supervisor_interval_ms = o->scan_every_ms,
        .grace_ms = o->grace_ms,
        .drain_ms = o->drain_ms,
        .keep_ms = o->keep_ms,
        .print_ready = true,
    };
}

static int serve(const struct options *o, struct store *store)
{
    struct error e = {0};
    char *token_file = o->open ? NULL : token_file_of(o->data);
    struct server_config c = config_of(o, store);
    char db[PATH_MAX];
    char wal[PATH_MAX];

    if (!o->open && !token_file)
        return CLI_NOT_WELL;
    (void)snprintf(db, sizeof db, "%s/intact.db", o->data); /* a longer one was not opened */
    (void)snprintf(wal, sizeof wal, "%s/intact.db-wal", o->data);
    const struct store_file files[] = {{"database", db}, {"wal", wal}};
    c.token_file = token_file;
    c.store_files = o->store ? NULL : files;
    c.store_file_count = o->store ? 0 : COUNT_OF(files);
    enum err err = server_run(&c, &e);
    free(token_file);
    if (err == ERR_OK)
        return 0;
    fprintf(stderr, "intact serve: %s\n", e.text);
    return 1;
}

static int check_options(const struct invocation *in, const struct options *o)
{
    if (!*o->data)
        return expected(in, "data", o->data, "a folder");
    if (!o->store && (o->schema || o->node))
        return expected(in, o->schema ? "schema" : "node", o->schema ? o->schema : o->node,
                        "--store beside it: a folder has one node");
    if (o->node && !is_host(o->node))
        return expected(in, "node", o->node, "a name of letters, digits, '-', '.' and '_'");
    if (o->store && o->adopt)
        return verb_misused(in, "--adopt is for a folder, and not for a database");
    if (o->keep_ms > 0 && o->keep_ms < MS_PER_MIN)
        return expected(in, "keep", given(in, "keep"), "a minute at least, such as 30d");
    if (!is_address(o->listen))
        return expected(in, "listen", o->listen, "ADDR:PORT such as 127.0.0.1:7420 or [::1]:7420");
    if (o->tls_cert && !o->tls_key)
        return expected(in, "tls-cert", o->tls_cert, "--tls-key FILE beside it");
    if (o->tls_key && !o->tls_cert)
        return expected(in, "tls-key", o->tls_key, "--tls-cert FILE beside it");
    if (o->open && (o->behind_proxy || !is_loopback(o->listen)))
        return expected(in, "open", o->behind_proxy ? "given with --behind-proxy" : o->listen,
                        "an address on loopback and no proxy: --open asks nobody for a token");
    if (!is_loopback(o->listen) && !o->tls_cert && !o->behind_proxy)
        return expected(in, "listen", o->listen,
                        "an address on loopback (127.0.0.1:PORT or [::1]:PORT), or --tls-cert and "
                        "--tls-key, or --behind-proxy if a proxy ends TLS");
    return CLI_OK;
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

/* With a database elsewhere the folder holds the admin's token alone. */
static enum err open_database(const struct options *o, struct store **ret, struct error *e)
{
    const struct postgres_options po = {.conninfo = o->store, .schema = o->schema, .node = o->node};

    if (mkdir(o->data, 0700) != 0 && errno != EEXIST)
        return error_set(e, ERR_IO, "%s: %s", o->data, strerror(errno));
    return postgres_store_open(&po, ret, e);
}

static int run(struct invocation *in)
{
    char host[HOST_NAME_MAX + 1] = "";
    struct options o = {0};
    struct store *store = NULL;
    struct error e = {0};
    int bad = read_options(in, &o);

    if (bad == CLI_OK)
        bad = check_options(in, &o);
    if (bad)
        return bad;
    if (!o.node && o.store) {
        (void)gethostname(host, sizeof host - 1);
        o.node = host;
    } else if (!o.node) {
        o.node = "n1";
    }
    (void)umask(077); /* what we make has its mode, whoever started us */
    enum err err = server_take_files(&e);
    if (err == ERR_OK && o.adopt)
        err = adopt(&o, &e);
    if (err == ERR_OK)
        err = o.store ? open_database(&o, &store, &e) : sqlite_store_open(o.data, &store, &e);
    if (err != ERR_OK)
        return verb_failed(in, CLI_NOT_WELL, "%s", e.text);
    int status = serve(&o, store);
    store->ops->close(store);
    return status;
}

static const struct flag flags[] = {
    {.name = "data",
     .value = "DIR",
     .help = "folder of the state store, made if missing",
     .initial = "./intact-data",
     .kind = WORD_FOLDER},
    {.name = "store",
     .value = "URL",
     .help = "a PostgreSQL database instead, shared by all nodes that are given it: "
             "postgres://USER@HOST/DB, or host=... dbname=...; better in $INTACT_STORE if it has "
             "a password"},
    {.name = "schema",
     .value = "NAME",
     .help = "of that database, made if missing",
     .initial = "intact"},
    {.name = "node",
     .value = "NAME",
     .help = "of this node, unlike that of all others on the same database",
     .initial = "this machine's name"},
    {.name = "listen",
     .value = "ADDR:PORT",
     .help = "port 0 takes any free one; beyond loopback with TLS or behind a proxy only",
     .initial = "127.0.0.1:7420"},
    {.name = "open", .help = "no tokens: whoever reaches it may do everything; loopback only"},
    {.name = "tls-cert",
     .value = "FILE",
     .help = "speak TLS with this certificate (PEM, those on the way to its root behind it); "
             "read again when it changes, and on SIGHUP",
     .kind = WORD_FILE},
    {.name = "tls-key", .value = "FILE", .help = "its key (PEM, no passphrase)", .kind = WORD_FILE},
    {.name = "behind-proxy", .help = "a proxy ends TLS and alone can reach the address"},
    {.name = "host",
     .value = "NAME",
     .help = "by which clients reach it, besides loopback",
     .repeats = true},
    {.name = "adopt", .help = "go on with a copied folder, whose original is not used any more"},
    {.name = "scan-every",
     .value = "TIME",
     .help = "how often the supervisor looks",
     .initial = "1s"},
    {.name = "grace",
     .value = "TIME",
     .help = "more time for agents after a restart",
     .initial = "10s"},
    {.name = "drain",
     .value = "TIME",
     .help = "how long SIGTERM waits for results",
     .initial = "5s"},
    {.name = "keep",
     .value = "TIME",
     .help = "delete tasks so long after they were processed or compensated; see \"retire\"",
     .initial = "for ever"},
    {.name = "key-prefix", .value = "TEXT", .help = "put before every idempotency key"},
    {.name = "log",
     .value = "LEVEL",
     .help = "debug, info, warn or error",
     .initial = "info",
     .kind = WORD_CHOICE,
     .choices = "debug info warn error"},
    {.name = "limit",
     .value = "NAME=VALUE",
     .help = "sets one of the limits below",
     .kind = WORD_LIMIT,
     .repeats = true},
    {0},
};

const struct verb verb_serve = {
    .name = "serve",
    .summary = "run the server",
    .about = "Runs the server: state store in DIR/intact.db, HTTP API on ADDR:PORT. Who calls it "
             "needs a token; the first one, which may do everything, is written to "
             "DIR/admin-token.\n\n"
             "SIGTERM drains and ends it; a second one ends it at once, and nothing is lost.",
    .flags = flags,
    .more_title = "limits:",
    .more = limits_describe,
    .examples = {{"intact serve", "on this machine, in ./intact-data"},
                 {"intact serve --data /var/lib/intact --listen 0.0.0.0:7420 --tls-cert "
                  "cert.pem --tls-key key.pem --host intact.example.org",
                  "for other machines"},
                 {"intact serve --limit body=16MiB --limit connections=500", "other limits"}},
    .exits = "1 if it cannot start, or had to stop",
    .is_local = true,
    .run = run,
};
