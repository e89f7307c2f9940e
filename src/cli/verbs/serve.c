/* `intact serve`: reads and checks flags and configuration, opens the store, and runs the server
 * (src/server) with its helpers. Sections of the configuration: serve_settings.c. */

#include "cli/build.h"
#include "cli/verbs.h"
#include "cli/verbs/agent_program.h"
#include "cli/verbs/serve_kept.h"
#include "cli/verbs/serve_retention.h"
#include "cli/verbs/serve_settings.h"
#include "cli/verbs/serve_virtual.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agents/http/http_secrets.h"
#include "agents/http/inside.h"
#include "background/amqp.h"
#include "background/helper.h"
#include "base/log.h"
#include "base/map.h"
#include "base/when.h"
#include "confine/hidden.h"
#include "node/limit.h"
#include "server/server.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"
#include "webhook/webhook_secrets.h"

enum { HOSTS_MAX = 16, NODE_NAME_MAX = 63 };

struct options {
    const char *data, *listen, *key_prefix;
    const char *store, *schema, *node; /* store NULL: SQLite in `data` */
    const char *advertise, *public_url;
    char *advertised_host, *public_host; /* host parts; to be freed */
    unsigned roles;                      /* enum node_role */
    const char *tls_cert, *tls_key;
    const char *hosts[HOSTS_MAX];
    size_t host_count;
    bool behind_proxy;
    struct server_limits limits;
    const char *http; /* configuration of the HTTP agent; NULL: none */
    const char *http_log;
    const char *config; /* NULL: none; its content: */
    struct serve_settings settings;
    int64_t scan_every_ms, grace_ms, drain_ms, keep_ms;
    bool open, console, adopt, migrate;
    bool is_virtual; /* then: */
    struct virtual_time time;
    bool end_with_stdin;
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

static bool is_port(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits >= 1 && digits <= 5 && !text[digits] && strtol(text, NULL, 10) <= 65535;
}

/* A settings file may name it without a value, which means none. */
static const char *store_of(const struct invocation *in)
{
    const char *url = getenv("INTACT_STORE");

    if (given(in, "store"))
        return given(in, "store");
    return url && *url ? url : NULL;
}

static bool is_node(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t len = strspn(name, letters);

    return len > 0 && len <= NODE_NAME_MAX && !name[len];
}

/* As in a Host header, whose port is ignored. */
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

static int read_roles(const struct invocation *in, struct options *o)
{
    static const struct {
        const char *name;
        unsigned role;
    } names[] = {{"scheduler", NODE_SCHEDULER}, {"supervisor", NODE_SUPERVISOR}};
    const char *text = given(in, "roles");
    unsigned roles = 0;

    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        size_t len = strcspn(at, ",");
        unsigned role = 0;
        for (size_t i = 0; i < COUNT_OF(names); i++)
            if (strlen(names[i].name) == len && memcmp(at, names[i].name, len) == 0)
                role = names[i].role;
        if (!role)
            return expected(in, "roles", text, "scheduler, supervisor or scheduler,supervisor");
        roles |= role;
    }
    o->roles = text ? roles : NODE_ROLES;
    return CLI_OK;
}

/* Other clients use the name in that URL, so Host may contain it. */
static int read_url(const struct invocation *in, struct options *o, const char *flag,
                    const char *url, char **ret_host)
{
    static const char what[] = "a URL such as https://node-1.example.org:7420, without a path";
    const char *host = url;

    if (!url)
        return CLI_OK;
    if (strncmp(url, "http://", 7) == 0)
        host = url + 7;
    else if (strncmp(url, "https://", 8) == 0)
        host = url + 8;
    else
        return expected(in, flag, url, what);
    const char *port = *host == '[' ? strchr(host, ']') : host;
    port = port ? strchr(port, ':') : NULL;
    *ret_host = strndup(host, port ? (size_t)(port - host) : strlen(host));
    if (!*ret_host || !is_host(*ret_host)
        || (port && (!is_port(port + 1) || strtol(port + 1, NULL, 10) == 0)))
        return expected(in, flag, url, what);
    if (o->host_count == HOSTS_MAX)
        return expected(in, "host", o->hosts[0], "fewer beside --advertise and --public-url");
    o->hosts[o->host_count++] = *ret_host;
    return CLI_OK;
}

static int read_urls(const struct invocation *in, struct options *o)
{
    int bad = read_url(in, o, "advertise", o->advertise, &o->advertised_host);

    return bad ? bad : read_url(in, o, "public-url", o->public_url, &o->public_host);
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
        .store = store_of(in),
        .schema = given(in, "schema"),
        .node = given(in, "node"),
        .advertise = given(in, "advertise"),
        .public_url = given(in, "public-url"),
        .tls_cert = given(in, "tls-cert"),
        .tls_key = given(in, "tls-key"),
        .behind_proxy = given(in, "behind-proxy"),
        .http = given(in, "http"),
        .config = given(in, "config"),
        .http_log = given(in, "log") ? given(in, "log") : "info",
        .open = given(in, "open"),
        .console = !given(in, "no-console"),
        .adopt = given(in, "adopt"),
        .migrate = given(in, "migrate"),
        .end_with_stdin = given(in, "end-with-stdin"),
    };
    given_log_level(in);
    int bad = serve_virtual_read(in, &o->time, &o->is_virtual);
    if (bad)
        return bad;
    if (!read_time(in, "scan-every", &o->scan_every_ms) || !read_time(in, "grace", &o->grace_ms)
        || !read_time(in, "drain", &o->drain_ms) || !read_time(in, "keep", &o->keep_ms))
        return CLI_USAGE;
    bad = read_hosts(in, o);
    if (bad == CLI_OK)
        bad = read_roles(in, o);
    if (bad == CLI_OK)
        bad = read_urls(in, o);
    return bad ? bad : read_limits(in, o);
}

/* Checks the form; whether it can be bound shows later. */
static bool is_address(const char *address)
{
    const char *colon = strrchr(address, ':');
    bool is_v6 = address[0] == '[' && colon && colon[-1] == ']';

    return colon && is_port(colon + 1)
           && (is_v6 || !memchr(address, ':', (size_t)(colon - address)));
}

/* Traffic to other machines must be encrypted. */
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

/* Absolute, because clients are told the path; NULL: an error, which was reported. To be freed. */
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

static struct server_config config_of(struct options *o, struct store *store)
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
        .maintain = o->store || o->is_virtual ? NULL : sqlite_store_maintain,
        .node = o->node,
        .roles = o->roles,
        .advertise = o->advertise,
        .public_url = o->public_url,
        .key_prefix = o->key_prefix,
        .supervisor_interval_ms = o->scan_every_ms,
        .grace_ms = o->grace_ms,
        .drain_ms = o->drain_ms,
        .retention = &o->settings.retention,
        .alerts = o->settings.alerts,
        .webhooks = &o->settings.webhooks,
        .source = o->settings.messages.source,
        .give_up_ms = o->settings.messages.give_up_ms,
        .virtual_time = o->is_virtual ? &o->time : NULL,
        .end_with_stdin = o->end_with_stdin,
        .console = o->console,
        .print_ready = true,
        .version = build_version,
    };
}

static int serve(struct options *o, struct store *store)
{
    struct error e = {0};
    char *token_file = o->open ? NULL : token_file_of(o->data);
    struct server_config c = config_of(o, store);
    char db[PATH_MAX];
    char wal[PATH_MAX];

    if (!o->open && !token_file)
        return CLI_NOT_WELL;
    (void)snprintf(db, sizeof db, "%s/intact.db", o->data); /* a longer path was not opened */
    (void)snprintf(wal, sizeof wal, "%s/intact.db-wal", o->data);
    const struct store_file files[] = {{"database", db}, {"wal", wal}};
    c.token_file = token_file;
    bool has_files = !o->store && !o->is_virtual;
    c.store_files = has_files ? files : NULL;
    c.store_file_count = has_files ? COUNT_OF(files) : 0;
    char instance[NODE_NAME_MAX + 8];
    (void)snprintf(instance, sizeof instance, "http-%s", o->node);
    const char *const argv[] = {"intact",     "agent",  "http",  "--config",  o->http,
                                "--instance", instance, "--log", o->http_log, NULL};
    char bridge[NODE_NAME_MAX + 8];
    (void)snprintf(bridge, sizeof bridge, "amqp-%s", o->node);
    const char *const amqp_argv[] = {"intact",  "agent",      "amqp",      "--config",
                                     o->config, "--instance", bridge,      "--node",
                                     o->node,   "--log",      o->http_log, NULL};
    struct http_config *http = o->http ? http_config_of(o->http) : NULL;
    const char **http_kept = serve_kept_of_http(http);
    const char **amqp_kept = serve_kept_of_amqp(o->settings.amqp);
    struct amqp_channel *channel = o->settings.amqp ? amqp_channel_new(o->settings.amqp) : NULL;
    const struct helper_config amqp = {.argv = amqp_argv,
                                       .variable = INSIDE_VARIABLE_AMQP,
                                       .kept = amqp_kept,
                                       .submits = true,
                                       .listener = channel ? amqp_channel_listener(channel) : NULL};
    const struct helper_config helper = {.argv = argv,
                                         .variable = INSIDE_VARIABLE,
                                         .kept = http_kept};
    c.helpers[0] = o->http ? &helper : NULL;
    c.helpers[1] = channel ? &amqp : NULL;
    c.amqp = channel ? amqp_channel_channel(channel) : NULL;
    enum err err = server_run(&c, &e);
    amqp_channel_free(channel);
    free(http_kept);
    free(amqp_kept);
    http_config_free(http);
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
    if (o->store && !*o->store)
        return expected(in, "store", o->store, "postgres://USER@HOST/DB, or host=... dbname=...");
    if (!o->store && o->migrate)
        return verb_misused(in, "--migrate is for a database: --store, or $INTACT_STORE");
    if (!o->store && (o->schema || o->node))
        return expected(in, o->schema ? "schema" : "node", o->schema ? o->schema : o->node,
                        "--store beside it: a folder has one node");
    if (!o->store && o->roles != NODE_ROLES)
        return expected(in, "roles", given(in, "roles"),
                        "both, or --store beside it: a folder has one node, which does everything");
    if (o->node && !is_node(o->node))
        return expected(in, "node", o->node,
                        "a name of at most 63 letters, digits, '-', '.' and '_'");
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

/* Only for copies, because it reads the whole file. */
static enum err adopt(const struct options *o, struct error *e)
{
    bool was_copy = false;
    enum err err = sqlite_store_adopt(o->data, &was_copy, e);

    if (err == ERR_OK)
        log_line(LOG_INFO, "event=%s data=%s", was_copy ? "adopted" : "nothing_to_adopt", o->data);
    return err;
}

/* With another database, the folder only holds the admin's token. */
static enum err open_database(const struct options *o, struct store **ret, struct error *e)
{
    const struct postgres_options po = {.conninfo = o->store, .schema = o->schema, .node = o->node};

    if (mkdir(o->data, 0700) != 0 && errno != EEXIST) {
        (void)error_set(e, ERR_IO, "%s: %s", o->data, strerror(errno));
        return ERR_IO; /* explicit for static analysis */
    }
    return postgres_store_open(&po, ret, e);
}

/* Everybody on the machine can see the command line. */
static void warn_of_password(const struct invocation *in)
{
    if (given(in, "store") && postgres_conninfo_has_password(given(in, "store")))
        log_line(LOG_WARN, "event=store_password_visible text=\"everybody on this machine sees the "
                           "password of --store; give it in $INTACT_STORE, or in a passfile\"");
}

/* Reported now rather than by a child. */
static int check_http(const struct options *o)
{
    CLEANUP(buf_fini) struct buf faults = {0};
    struct http_config *c = http_config_of(o->http);
    struct secrets *s = c ? secrets_load(c, &faults) : NULL;
    int status = s ? CLI_OK : CLI_USAGE;

    if (c && !s)
        fprintf(stderr, "intact serve: %s:\n%s", o->http, faults.ptr);
    secrets_free(s);
    http_config_free(c);
    return status;
}

static int check_webhooks(const struct options *o)
{
    CLEANUP(buf_fini) struct buf faults = {0};
    struct webhook_secrets *s = webhook_secrets_load(&o->settings.webhooks, &faults);

    if (!s)
        fprintf(stderr, "intact serve: %s:\n%s", o->config, faults.ptr);
    webhook_secrets_free(s);
    return s ? CLI_OK : CLI_USAGE;
}

static int check_amqp(const struct options *o)
{
    const struct amqp_config *c = o->settings.amqp;

    for (const struct broker_config *b = c ? c->brokers : NULL; b; b = b->next) {
        struct error e = {0};
        char *password = NULL;
        if (amqp_password(b, &password, &e) != ERR_OK) {
            fprintf(stderr, "intact serve: %s: %s\n", o->config, e.text);
            return CLI_USAGE;
        }
        if (password)
            explicit_bzero(password, strlen(password));
        free(password);
    }
    return CLI_OK;
}

/* An invalid setting is a usage error, which a service manager must not retry. */
static int failed_to_open(const struct invocation *in, const struct options *o, enum err err,
                          const struct error *e)
{
    if (o->store && err == ERR_INVALID)
        return verb_misused(in, "%s", e->text);
    return verb_failed(in, CLI_NOT_WELL, "%s", e->text);
}

static int migrate(const struct invocation *in, const struct options *o)
{
    const struct postgres_options po = {.conninfo = o->store, .schema = o->schema, .node = ""};
    struct error e = {0};

    enum err err = postgres_store_migrate(&po, &e);
    return err == ERR_OK ? CLI_OK : failed_to_open(in, o, err, &e);
}

static enum err open_store(struct options *o, struct store **ret, struct error *e)
{
    if (o->is_virtual)
        return serve_virtual_open(&o->time, ret, e);
    return o->store ? open_database(o, ret, e) : sqlite_store_open(o->data, ret, e);
}

static int open_and_serve(struct invocation *in, struct options *o)
{
    struct store *store = NULL;
    struct error e = {0};

    ASSERT(map_key_is_drawn()); /* before clients choose keys */
    process_hide();
    (void)close_range(3, ~0u, CLOSE_RANGE_CLOEXEC); /* not for the programs that it starts */
    (void)umask(077);                               /* independent of the parent's umask */
    enum err err = server_take_files(&e);
    if (err == ERR_OK && o->adopt)
        err = adopt(o, &e);
    if (err == ERR_OK)
        err = open_store(o, &store, &e);
    if (err != ERR_OK)
        return failed_to_open(in, o, err, &e);
    int status = serve(o, store);
    store->ops->close(store);
    return status;
}

/* Fails now rather than at the first deletion. */
static int check_archive(const struct invocation *in, const struct options *o)
{
    struct error e = {0};

    if (!o->settings.retention.archive.folder || o->migrate
        || archive_check(&o->settings.retention.archive, &e) == ERR_OK)
        return CLI_OK;
    return verb_failed(in, CLI_NOT_WELL, "%s", e.text);
}

/* "n1", or with another database the machine's name. */
static int name_node(const struct invocation *in, struct options *o, char host[NODE_NAME_MAX + 1])
{
    char name[HOST_NAME_MAX + 1] = "";

    if (o->node)
        return CLI_OK;
    (void)snprintf(host, NODE_NAME_MAX + 1, "n1");
    if (o->store) {
        (void)gethostname(name, sizeof name - 1);
        (void)snprintf(host, NODE_NAME_MAX + 1, "%.*s", NODE_NAME_MAX, name);
    }
    o->node = host;
    return is_node(host) ? CLI_OK
                         : verb_misused(in,
                                        "this machine's name is \"%s\", which cannot be a "
                                        "node's; name the node with --node",
                                        host);
}

static int run(struct invocation *in)
{
    char host[NODE_NAME_MAX + 1] = "";
    struct options o = {0};
    int status = read_options(in, &o);

    if (status == CLI_OK && o.is_virtual) {
        o.open = true;
        o.drain_ms = o.drain_ms ? o.drain_ms : 1;
    }
    if (status == CLI_OK)
        status = check_options(in, &o);
    serve_settings_init(&o.settings);
    if (status == CLI_OK && o.config && !serve_settings_read(&o.settings, o.config))
        status = CLI_USAGE;
    if (status == CLI_OK && o.is_virtual)
        status = serve_virtual_check(in, &o.settings);
    if (status == CLI_OK && o.config)
        status = check_webhooks(&o);
    if (status == CLI_OK)
        serve_retention_keep(&o.settings.retention, &o.settings.arena, o.keep_ms);
    if (status == CLI_OK)
        status = check_archive(in, &o);
    if (status == CLI_OK)
        status = check_amqp(&o);
    if (status == CLI_OK && o.http)
        status = check_http(&o);
    if (status == CLI_OK)
        warn_of_password(in);
    if (status == CLI_OK && !o.migrate)
        status = name_node(in, &o, host);
    if (status == CLI_OK)
        status = o.migrate ? migrate(in, &o) : open_and_serve(in, &o);
    serve_settings_fini(&o.settings);
    free(o.advertised_host);
    free(o.public_host);
    return status;
}

static const struct flag flags[] = {
    {.name = "data",
     .value = "DIR",
     .help = "folder of the state store; created if missing",
     .initial = "./intact-data",
     .kind = WORD_FOLDER},
    {.name = "store",
     .value = "URL",
     .help = "PostgreSQL database as state store, shared by its nodes: postgres://USER@HOST/DB, or "
             "host=... dbname=...; with a password use $INTACT_STORE"},
    {.name = "schema",
     .value = "NAME",
     .help = "schema in that database; created if missing",
     .initial = "intact"},
    {.name = "migrate", .help = "create or migrate the schema, and exit"},
    {.name = "node",
     .value = "NAME",
     .help = "unique name of this node",
     .initial = "this machine's name"},
    {.name = "roles",
     .value = "LIST",
     .help = "scheduler (submissions and agents), supervisor (overdue work), or both",
     .initial = "scheduler,supervisor"},
    {.name = "advertise",
     .value = "URL",
     .help =
         "address of this node for agents and clients: http://HOST[:PORT] or https://HOST[:PORT]",
     .initial = "the address of --listen, if it is specific and without a proxy"},
    {.name = "public-url",
     .value = "URL",
     .help = "address in links for people and services outside; the same at all "
             "nodes",
     .initial = "that of --advertise"},
    {.name = "listen",
     .value = "ADDR:PORT",
     .help = "address to listen on; port 0: any; beyond loopback only with TLS or a "
             "proxy",
     .initial = "127.0.0.1:7420"},
    {.name = "config",
     .value = "FILE",
     .help = "configuration file, YAML or JSON: see docs/configuration.md",
     .kind = WORD_FILE},
    {.name = "http",
     .value = "FILE",
     .help = "also call the services in this file: see intact agent http",
     .kind = WORD_FILE},
    {.name = "open", .help = "require no tokens; loopback only"},
    {.name = "no-console", .help = "do not serve the pages of the console"},
    {.name = "tls-cert",
     .value = "FILE",
     .help = "TLS certificate (PEM, followed by intermediate ones)",
     .kind = WORD_FILE},
    {.name = "tls-key",
     .value = "FILE",
     .help = "key of the certificate (PEM, no passphrase)",
     .kind = WORD_FILE},
    {.name = "behind-proxy",
     .help = "a proxy terminates TLS, and only the proxy can reach the address"},
    {.name = "host",
     .value = "NAME",
     .help = "name that clients use, besides loopback",
     .repeats = true},
    {.name = "adopt", .help = "use a copied folder whose original is no longer used"},
    SERVE_VIRTUAL_FLAGS,
    {.name = "scan-every", .value = "TIME", .help = "interval of the supervisor", .initial = "1s"},
    {.name = "grace",
     .value = "TIME",
     .help = "grace time for agents after a restart",
     .initial = "10s"},
    {.name = "drain",
     .value = "TIME",
     .help = "how long to wait for results after SIGTERM",
     .initial = "5s"},
    {.name = "keep",
     .value = "TIME",
     .help = "delete tasks this long after they were processed or compensated; see \"retire\"",
     .initial = "forever"},
    {.name = "key-prefix", .value = "TEXT", .help = "prefix of every idempotency key"},
    {.name = "log",
     .value = "LEVEL",
     .help = "log level: debug, info, warn or error",
     .initial = "info",
     .kind = WORD_CHOICE,
     .choices = "debug info warn error"},
    {.name = "limit",
     .value = "NAME=VALUE",
     .help = "set one of the limits below",
     .kind = WORD_LIMIT,
     .repeats = true},
    {0},
};

const struct verb verb_serve = {
    .name = "serve",
    .summary = "run the server",
    .about = "Runs the server: state store in DIR/intact.db, HTTP API on ADDR:PORT. "
             "Clients need a token; the first one is written to DIR/admin-token.\n\n"
             "With --store the state store is a PostgreSQL database. All servers on "
             "one database are its nodes. DIR then contains only the token.\n\n"
             "SIGTERM drains and ends the server; a second one ends it at once.",
    .flags = flags,
    .more_title = "limits:",
    .more = limits_describe,
    .examples = {{"intact serve", "on this machine, in ./intact-data"},
                 {"intact serve --data /var/lib/intact --listen 0.0.0.0:7420 --tls-cert "
                  "cert.pem --tls-key key.pem --host intact.example.org",
                  "for other machines"},
                 {"INTACT_STORE=postgres://intact@db1/intact intact serve --node n1",
                  "as a node, with a database"},
                 {"intact serve --virtual-time --listen 127.0.0.1:0",
                  "for a test, in memory and in virtual time"},
                 {"intact serve --limit body=16MiB --limit connections=500", "other limits"}},
    .exits = "1 if it cannot start, or had to stop",
    .is_local = true,
    .run = run,
};
