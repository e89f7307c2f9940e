/*
 * Where clients come in: the address, TLS, the descriptors for their connections, and SIGHUP, which
 * has certificates and secrets read again. Which of their requests are let in: node/door.c.
 */

#include "server/listen.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/backup.h"
#include "api/routes.h"
#include "background/admin_token.h"
#include "background/helper.h"
#include "background/nodes.h"
#include "base/log.h"
#include "node/exchange.h"
#include "node/installation.h"
#include "node/node.h"
#include "node/notify.h"
#include "node/part.h"
#include "node/virtual_time.h"
#include "server/run.h"
#include "server/server.h"
#include "webhook/webhook.h"

enum {
    FILES_KEPT = 64, /* descriptors for the store, the log and libuv */
    FILES_MIN = 64   /* with fewer of them there is no point in beginning */
};

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

/* Connections beyond the available descriptors could not even be refused. */
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

    if (webhook_reload(sv->channels.webhooks, &faults)) {
        log_line(LOG_INFO, "event=webhook_secrets_loaded");
        return;
    }
    for (char *line = strtok(faults.ptr, "\n"); line; line = strtok(NULL, "\n"))
        log_line(LOG_ERROR, "event=webhook_secret_refused reason=\"%s\"", line);
}

static void on_hangup(uv_signal_t *s, int signum)
{
    struct run *run = s->data;
    struct server *sv = &run->sv;
    (void)signum;

    helpers_read_again(sv);
    if (sv->channels.webhooks)
        reload_webhooks(sv);
    if (http_is_secure(sv->http))
        http_secure_reload(sv->http);
    else if (!has_helpers(sv) && !sv->channels.webhooks)
        log_line(LOG_INFO, "event=nothing_to_read_again");
}

/* With a terminal, and without TLS, helpers and webhooks, a hang-up means that the terminal has
 * gone. A service is asked to read its files again, and must not end because it has none. A process
 * that ignores SIGHUP (nohup) continues to. */
static enum hangup hangup_means(const struct server *sv)
{
    struct sigaction before = {0};

    if (sv->config.tls_cert || has_helpers(sv) || sv->channels.webhooks)
        return HANGUP_READS;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
        return HANGUP_IGNORED;
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0)
        return HANGUP_READS;
    (void)close(terminal);
    return HANGUP_ENDS;
}

static void listen_to_hangup(struct run *run)
{
    enum hangup means = hangup_means(&run->sv);

    if (means == HANGUP_IGNORED)
        return;
    int rc = uv_signal_init(&run->sv.loop, &run->sighup);
    ASSERT(rc == 0);
    run->sighup.data = run;
    rc = uv_signal_start(&run->sighup, means == HANGUP_ENDS ? run->on_signal : on_hangup, SIGHUP);
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

static void log_started(const struct server *sv, size_t connections_wanted)
{
    log_line(LOG_INFO,
             "event=started node=%s roles=%s listen=%s port=%d tls=%s version=%s boot=%" PRIu64
             " installation=%s",
             sv->config.node, roles_text(sv->config.roles), sv->config.listen, http_port(sv->http),
             http_is_secure(sv->http) ? "on" : "off", server_version(sv),
             sv->config.store->ops->boot(sv->config.store), installation_id(sv));
    if (sv->limits.http.connection_max < connections_wanted)
        log_line(LOG_WARN, "event=few_descriptors connections=%zu wanted=%zu",
                 sv->limits.http.connection_max, connections_wanted);
}

static enum err listen_open(struct server *sv, struct error *e)
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
    if (err != ERR_OK) {
        if (sv->http)
            http_close(sv->http);
        sv->http = NULL;
        return err;
    }
    http_say_always(sv->http, installation_headers(sv));
    scheduler_bound_names(sv->scheduler, sv->limits.instances_max, sv->limits.agents_max);
    listen_to_hangup(run_of(sv));
    log_started(sv, wanted);
    if (sv->config.virtual_time)
        log_line(LOG_WARN,
                 "event=virtual_time clock=%s text=\"for tests: time is virtual, nothing "
                 "is kept, and nobody is asked for a token\"",
                 virtual_mode_text(sv->config.virtual_time->mode));
    notify("READY=1");
    admin_token_log(sv);
    if (sv->config.print_ready) /* if it cannot be written, the log has it */
        (void)!dprintf(STDOUT_FILENO, "listening on port %d\n", http_port(sv->http));
    nodes_listening(sv);
    return ERR_OK;
}

static void listen_hang_up(struct server *sv)
{
    struct run *run = run_of(sv);

    http_close(sv->http);
    if (run->sighup.data)
        uv_close((uv_handle_t *)&run->sighup, NULL);
}

const struct part listen_part = {
    .name = "listen",
    .open = listen_open,
    .hang_up = listen_hang_up,
};
