/* Where clients come in: the address, TLS, and the names by which they may call us. */

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <unistd.h>

#include "background/helper.h"
#include "base/log.h"
#include "node/internal.h"
#include "node/notify.h"
#include "webhook/webhook.h"

enum {
    FILES_KEPT = 64, /* descriptors for the store, the log and libuv */
    FILES_MIN = 64   /* with fewer of them there is no point in beginning */
};

/* ---- names ---- */

/* "127.0.0.1" and its like: all of it is an address, so that no name that only begins so (and that
 * somebody else's DNS answers for) passes. */
static bool is_loopback_address(struct slice s)
{
    char text[16] = "";
    struct in_addr address;

    if (s.len == 0 || s.len >= sizeof text)
        return false;
    memcpy(text, s.ptr, s.len);
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* Cuts a ":7420" off, if there is one. */
static struct slice port_cut(struct slice *host)
{
    size_t len = host->len;

    while (len > 0 && host->ptr[len - 1] >= '0' && host->ptr[len - 1] <= '9')
        len--;
    if (len == 0 || len == host->len || host->ptr[len - 1] != ':')
        return SLICE_NONE;
    struct slice port = {host->ptr + len, host->len - len};
    host->len = len - 1;
    return port;
}

/* The port does not matter: a proxy or a forwarded one may stand before ours. */
static bool is_our_host(const struct server *sv, struct slice host)
{
    struct slice listens = slice_of(sv->config.listen);

    (void)port_cut(&host);
    (void)port_cut(&listens);
    if (http_slice_is_like(host, "[::1]") || is_loopback_address(host)
        || http_slice_is_like(host, "localhost"))
        return true;
    for (size_t i = 0; i < sv->config.host_count; i++)
        if (http_slice_is_like(host, sv->config.hosts[i]))
            return true;
    return host.len == listens.len && host.len > 0
           && strncasecmp(host.ptr, listens.ptr, host.len) == 0;
}

static bool same_authority(struct slice a, struct slice b, const char *default_port)
{
    struct slice port_a = port_cut(&a);
    struct slice port_b = port_cut(&b);

    if (!port_a.ptr)
        port_a = slice_of(default_port);
    if (!port_b.ptr)
        port_b = slice_of(default_port);
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0 && slice_eq(port_a, port_b);
}

/* Does the page come from where it asks? A proxy may have taken TLS off, so that we cannot tell. */
static bool is_our_origin(const struct server *sv, struct slice origin, struct slice host)
{
    static const struct {
        const char *scheme, *port;
    } kinds[] = {{"http://", "80"}, {"https://", "443"}};
    bool is_secure = http_is_secure(sv->http);

    for (unsigned i = 0; i < COUNT_OF(kinds); i++) {
        size_t len = strlen(kinds[i].scheme);
        if (!sv->config.behind_proxy && is_secure != (i == 1))
            continue;
        if (origin.len > len && strncasecmp(origin.ptr, kinds[i].scheme, len) == 0)
            return same_authority((struct slice){origin.ptr + len, origin.len - len}, host,
                                  kinds[i].port);
    }
    return false;
}

bool door_is_foreign(const struct server *sv, const struct http_request *r)
{
    struct slice host = http_header(r, "host");
    struct slice origin = http_header(r, "origin");

    struct slice site = http_header(r, "sec-fetch-site");

    if (host.ptr && !is_our_host(sv, host))
        return true;
    /* A browser says of itself that another page asks, also where it sends no Origin. */
    if (site.ptr && !http_slice_is_like(site, "same-origin") && !http_slice_is_like(site, "none"))
        return true;
    return origin.ptr && !(host.ptr && is_our_origin(sv, origin, host));
}

/* ---- those who wait ---- */

bool door_may_wait(const struct server *sv)
{
    return http_request_count(sv->http) <= sv->limits.waiting_max;
}

/* A quarter of the places is left to others, at least one if there are two. */
static size_t readers_max(const struct server *sv)
{
    size_t all = sv->limits.waiting_max < sv->limits.http.connection_max
                     ? sv->limits.waiting_max
                     : sv->limits.http.connection_max;

    return all - (all > 4 ? all / 4 : all > 1);
}

bool door_may_park(const struct server *sv, const struct http_request *r)
{
    size_t others = quota_open(r->account);

    return door_may_wait(sv)
           && quota_share_has_room(sv->quotas, r->account, others > 0 ? others - 1 : 0,
                                   sv->limits.waiting_max);
}

bool door_may_read(struct server *sv, struct http_request *r)
{
    if (r->is_reader)
        return true;
    if (!door_may_park(sv, r) || sv->readers_open >= readers_max(sv)
        || !quota_share_has_room(sv->quotas, r->account, quota_readers(r->account),
                                 readers_max(sv)))
        return false;
    r->is_reader = true;
    sv->readers_open++;
    quota_reads(r->account, true);
    return true;
}

void door_left(struct server *sv, const struct http_request *r)
{
    if (!r->is_reader)
        return;
    ASSERT(sv->readers_open > 0);
    sv->readers_open--;
    quota_reads(r->account, false);
}

void door_refuse_to_wait(const struct server *sv, struct http_request *r)
{
    if (door_may_wait(sv) && sv->readers_open < readers_max(sv))
        http_problem(r, 503, "busy",
                     "too many requests of this token are waiting: the remaining places are "
                     "reserved for other tokens");
    else if (door_may_wait(sv))
        http_problem(r, 503, "busy",
                     "%zu requests are waiting for events or results: the remaining places are "
                     "reserved for agents",
                     sv->readers_open);
    else
        http_problem(r, 503, "busy",
                     "%zu requests are waiting, which is the maximum of this server",
                     sv->limits.waiting_max);
}

/* ---- opening ---- */

enum hangup { HANGUP_READS, HANGUP_ENDS, HANGUP_IGNORED };

enum err server_take_files(struct error *e)
{
    struct rlimit files = {0};

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return ERR_OK; /* then it will show */
    if (files.rlim_cur < files.rlim_max) {
        struct rlimit all = {files.rlim_max, files.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &all) == 0)
            files = all;
    }
    if (files.rlim_cur >= FILES_MIN)
        return ERR_OK;
    return error_set(e, ERR_IO,
                     "this process may have %llu file descriptors, but needs %d and one for each "
                     "connection; raise the limit (ulimit -n, LimitNOFILE=)",
                     (unsigned long long)files.rlim_cur, FILES_MIN);
}

/* Connections beyond the descriptors that we may have would not even be told so. */
static void fit_to_files(struct http_limits *l)
{
    struct rlimit files = {0};

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return;
    rlim_t room =
        files.rlim_cur > (rlim_t)2 * FILES_KEPT ? files.rlim_cur - FILES_KEPT : FILES_KEPT;
    if (l->connection_max > room)
        l->connection_max = (size_t)room;
}

static void on_certificate(void *arg, const struct error *e)
{
    (void)arg;
    if (e)
        log_line(LOG_ERROR, "event=certificate_refused reason=\"%s\"", e->text);
    else
        log_line(LOG_INFO, "event=certificate_loaded");
}

static void on_accepting(void *arg, int reason)
{
    (void)arg;
    if (reason)
        log_line(LOG_ERROR,
                 "event=accept_trouble reason=\"%s; new connections wait, existing ones continue\"",
                 strerrordesc_np(reason));
    else
        log_line(LOG_INFO, "event=accept_works_again");
}

/* More of an answer that one turn of its connection did not suffice for. */
static void wrote(void *arg, struct http_request *r, uint64_t took_ns)
{
    if (r->account)
        account_worked(arg, r->account, uv_hrtime(), took_ns);
}

static void on_flushed(void *arg, struct http_request *r)
{
    backup_flushed(arg, r);
}

static bool has_helpers(const struct server *sv)
{
    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (sv->config.helpers[i])
            return true;
    return false;
}

static void reload_webhooks(struct server *sv)
{
    CLEANUP(buf_fini) struct buf faults = {0};

    if (webhook_reload(sv->webhooks, &faults)) {
        log_line(LOG_INFO, "event=webhook_secrets_loaded");
        return;
    }
    for (char *line = strtok(faults.ptr, "\n"); line; line = strtok(NULL, "\n"))
        log_line(LOG_ERROR, "event=webhook_secret_refused reason=\"%s\"", line);
}

static void on_hangup(uv_signal_t *s, int signum)
{
    struct server *sv = s->data;
    (void)signum;

    for (size_t i = 0; i < HELPERS_MAX; i++)
        if (sv->helpers[i])
            helper_hangup(sv->helpers[i]);
    if (sv->webhooks)
        reload_webhooks(sv);
    if (http_is_secure(sv->http))
        http_secure_reload(sv->http);
    else if (!has_helpers(sv) && !sv->webhooks)
        log_line(LOG_INFO, "event=nothing_to_read_again");
}

/* With a terminal, and without TLS, a helper and webhooks, a hang-up means that the terminal has
 * gone; a service is asked to read its files again, and must not end because it has none. Who
 * ignores it (nohup) goes on to.
 */
static enum hangup hangup_means(const struct server *sv)
{
    struct sigaction before = {0};

    if (sv->config.tls_cert || has_helpers(sv) || sv->webhooks)
        return HANGUP_READS;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return HANGUP_IGNORED;
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return HANGUP_READS;
    (void)close(terminal);
    return HANGUP_ENDS;
}

static void listen_to_hangup(struct server *sv)
{
    enum hangup means = hangup_means(sv);

    if (means == HANGUP_IGNORED)
        return;
    int rc = uv_signal_init(&sv->loop, &sv->sighup);
    ASSERT(rc == 0);
    sv->sighup.data = sv;
    rc = uv_signal_start(&sv->sighup, means == HANGUP_ENDS ? server_on_signal : on_hangup, SIGHUP);
    ASSERT(rc == 0);
}

static enum err secure(struct server *sv, struct error *e)
{
    const struct server_config *c = &sv->config;

    if (!c->tls_cert)
        return ERR_OK;
    return http_secure(sv->http, c->tls_cert, c->tls_key, e);
}

static const char *roles_text(unsigned roles)
{
    return roles == NODE_ROLES       ? "scheduler,supervisor"
           : roles == NODE_SCHEDULER ? "scheduler"
                                     : "supervisor";
}

enum err door_open(struct server *sv, struct error *e)
{
    const struct http_handler handler = {.arg = sv,
                                         .head = route_head,
                                         .handle = route,
                                         .done = exchange_done,
                                         .certificate = on_certificate,
                                         .accepting = on_accepting,
                                         .flushed = on_flushed,
                                         .wrote = wrote};

    size_t wanted = sv->limits.http.connection_max;
    fit_to_files(&sv->limits.http);
    enum err err =
        http_listen(&sv->loop, sv->config.listen, &sv->limits.http, &handler, &sv->http, e);
    if (err == ERR_OK)
        err = secure(sv, e);
    if (err != ERR_OK)
        return err;
    http_say_always(sv->http, installation_headers(sv));
    scheduler_bound_names(sv->scheduler, sv->limits.instances_max, sv->limits.agents_max);
    listen_to_hangup(sv);
    log_line(LOG_INFO,
             "event=started node=%s roles=%s listen=%s port=%d tls=%s version=%s boot=%" PRIu64
             " installation=%s",
             sv->config.node, roles_text(sv->config.roles), sv->config.listen, http_port(sv->http),
             http_is_secure(sv->http) ? "on" : "off", server_version(sv),
             sv->config.store->ops->boot(sv->config.store), installation_id(sv));
    if (sv->limits.http.connection_max < wanted)
        log_line(LOG_WARN, "event=few_descriptors connections=%zu wanted=%zu",
                 sv->limits.http.connection_max, wanted);
    notify("READY=1");
    admin_token_tell(sv);
    if (sv->config.print_ready) /* if nobody takes it, the log has it */
        (void)!dprintf(STDOUT_FILENO, "listening on port %d\n", http_port(sv->http));
    return ERR_OK;
}

void door_close(struct server *sv)
{
    if (sv->http)
        http_close(sv->http);
    if (sv->sighup.data)
        uv_close((uv_handle_t *)&sv->sighup, NULL);
}
