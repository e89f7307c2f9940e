/* `intact agent amqp`: sets up brokers, client and agents, and runs the loop that drives them all.
 * See run.h and bridge.h. */
#include "agents/amqp/amqp_agent.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agents/amqp/bridge.h"
#include "base/clock.h"
#include "base/log.h"
#include "confine/hidden.h"
#include "libintact/client.h"

enum {
    STOP_MS = 10000, /* for running work when it stops */
    PACKET_MAX = 512 << 10,
    PACKETS_A_TURN = 64,
    CONNECTIONS = 16,
    AGAIN_FIRST_MS = 100,
    AGAIN_MOST_MS = 10000,
    TELL_MS = 60000, /* between log lines about a refused token */
};

static struct {
    int fd; /* eventfd: a signal was received */
    volatile sig_atomic_t stops;
} signals = {.fd = -1};

static void on_signal(int number)
{
    const uint64_t one = 1;
    int before = errno;

    if (signals.stops)
        _exit(128 + number); /* running work stays with the broker and the server */
    signals.stops = 1;
    (void)!write(signals.fd, &one, sizeof one); /* can only fail if it is readable already */
    errno = before;
}

static bool take_signals(bool is_inside)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    struct sigaction act = {.sa_handler = on_signal};

    signals.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sigemptyset(&act.sa_mask);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN); /* there is nothing to reload */
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        struct sigaction mine = act;
        if (is_inside)
            mine.sa_handler = SIG_IGN; /* the server says when to stop */
        (void)sigaction(numbers[i], &mine, NULL);
    }
    return signals.fd >= 0;
}

/* ---- shared helpers ---- */

struct broker *bridge_broker(const struct bridge *b, const struct broker_config *c)
{
    for (size_t i = 0; i < b->broker_count; i++)
        if (broker_config(b->brokers[i]) == c)
            return b->brokers[i];
    UNREACHABLE();
}

int64_t bridge_again_at(struct bridge *b, uint32_t tries)
{
    int64_t wait = AGAIN_FIRST_MS;

    for (uint32_t i = 0; i < tries && wait < AGAIN_MOST_MS; i++)
        wait *= 2;
    wait = min_i64(wait, AGAIN_MOST_MS);
    return clock_boot_ms() + wait / 2 + prng_below(&b->prng, (uint32_t)(wait / 2) + 1);
}

bool bridge_is_refused(const struct intact_reply *r)
{
    int status = intact_reply_http_status(r);

    return status >= 400 && status < 500 && status != 401 && status != 403 && status != 408
           && status != 429;
}

static bool is_about_token(const struct intact_reply *r)
{
    int status = intact_reply_http_status(r);

    return status == 401 || status == 403;
}

static size_t held(const struct bridge *b)
{
    size_t count = 0;

    for (const struct link *l = b->offers.next; l != &b->offers; l = l->next)
        count++;
    for (const struct link *l = b->strays.next; l != &b->strays; l = l->next)
        count++;
    return count;
}

void bridge_answered(struct bridge *b, const struct intact_reply *r)
{
    int64_t now = clock_boot_ms();

    if (!is_about_token(r)) {
        if (b->shut_out > 0 && intact_reply_http_status(r) != 0) {
            log_line(LOG_INFO, "event=amqp_let_in failures=%" PRIu32, b->shut_out);
            b->shut_out = 0;
            b->tell_at = 0;
        }
        return;
    }
    b->shut_out++;
    if (now < b->tell_at)
        return;
    b->tell_at = now + TELL_MS;
    log_line(LOG_ERROR,
             "event=amqp_shut_out failures=%" PRIu32
             " held=%zu reason=\"the server rejects the token: %s; give a valid one with "
             "INTACT_TOKEN or --token-file: messages stay with the broker until then\"",
             b->shut_out, held(b), intact_reply_error(r));
}

/* ---- setup ---- */

static bool open_brokers(struct bridge *b)
{
    char container[200];
    size_t count = 0;

    for (const struct broker_config *c = b->config->brokers; c; c = c->next)
        count++;
    b->brokers = calloc(count + 1, sizeof *b->brokers);
    ASSERT(b->brokers);
    (void)snprintf(container, sizeof container, "intact-%s", b->options->instance);
    for (const struct broker_config *c = b->config->brokers; c; c = c->next) {
        struct error e = {0};
        char *password = NULL;
        if (amqp_password(c, &password, &e) != ERR_OK) {
            log_line(LOG_ERROR, "event=start_failed reason=\"%s\"", e.text);
            return false;
        }
        b->brokers[b->broker_count++] = broker_new(c, container);
        secret_wipe(password, password ? strlen(password) : 0);
    }
    return true;
}

static bool open_client(struct bridge *b)
{
    const struct amqp_agent_options *o = b->options;
    bool is_inside = b->inside.channel >= 0;

    b->client =
        intact_client_new(is_inside ? "http://localhost" : o->server, is_inside ? NULL : o->token);
    if (!b->client)
        return false;
    if (is_inside)
        client_set_door(b->client, b->inside.door);
    else if (o->ca)
        intact_client_set_ca(b->client, o->ca);
    intact_client_set_connections(b->client, CONNECTIONS);
    return intact_client_fd(b->client) >= 0;
}

/* As a child of a server, like the HTTP agent. */
static void confine(struct bridge *b)
{
    if (b->inside.channel < 0)
        return;
    caller_begin(&b->caller);
    for (const struct broker_config *c = b->config->brokers; c; c = c->next) {
        caller_reads(&b->caller, c->password.file);
        caller_reads(&b->caller, c->ca);
        caller_reads(&b->caller, c->cert);
        caller_reads(&b->caller, c->key);
    }
    caller_enter(&b->caller);
}

static bool open_all(struct bridge *b)
{
    list_init(&b->queues);
    list_init(&b->agents);
    list_init(&b->offers);
    list_init(&b->strays);
    list_init(&b->early);
    list_init(&b->unknown);
    b->prng.state = (uint64_t)clock_boot_ms() ^ ((uint64_t)getpid() << 32);
    if (!open_brokers(b))
        return false;
    if (!open_client(b) || !requests_open(b)) {
        log_line(LOG_ERROR, "event=start_failed reason=\"no more descriptors, or libcurl cannot be "
                            "used\"");
        return false;
    }
    replies_open(b);
    offers_open(b);
    return true;
}

/* Unsettled messages return to the broker when the connections end. */
static void close_all(struct bridge *b)
{
    if (!b->brokers)
        return;
    for (size_t i = 0; i < b->broker_count; i++)
        broker_free(b->brokers[i]);
    intact_client_free(b->client);
    requests_close(b);
    offers_close(b);
    replies_close(b);
    map_fini(&b->by_token);
    map_fini(&b->by_name);
    free(b->brokers);
    caller_end(&b->caller);
}

/* ---- turns ---- */

static void stop(struct bridge *b)
{
    if (b->is_stopping)
        return;
    b->is_stopping = true;
    b->stop_by = clock_boot_ms() + STOP_MS;
    offers_stop(b);
    LIST_FOREACH (at, after, &b->agents) {
        intact_agent_stop_one(CONTAINER_OF(at, struct requests, link)->agent);
    }
}

/* Reads the channel. False: the server has exited. */
static bool read_channel(struct bridge *b)
{
    static char packet[PACKET_MAX];

    for (int i = 0; b->inside.channel >= 0 && i < PACKETS_A_TURN; i++) {
        ssize_t n = recv(b->inside.channel, packet, sizeof packet, MSG_DONTWAIT);
        if (n == 0)
            return false;
        if (n < 0)
            return errno == EAGAIN || errno == EINTR;
        if (packet[0] == 'd')
            stop(b);
        else if (packet[0] == 'm')
            messages_take(b, (struct slice){packet, (size_t)n});
    }
    return true;
}

static bool is_over(struct bridge *b)
{
    bool is_quiet = requests_are_over(b) && list_empty(&b->offers) && list_empty(&b->strays);

    for (size_t i = 0; i < b->broker_count; i++)
        is_quiet = is_quiet && broker_is_quiet(b->brokers[i]);
    return b->is_stopping && (is_quiet || clock_boot_ms() >= b->stop_by);
}

static void turn(struct bridge *b)
{
    int64_t now = clock_boot_ms();

    for (size_t i = 0; i < b->broker_count; i++)
        broker_turn(b->brokers[i]);
    (void)intact_client_drive(b->client);
    requests_turn(b, now);
    offers_turn(b, now);
    replies_turn(b, now);
    messages_turn(b);
    for (size_t i = 0; i < b->broker_count; i++)
        broker_turn(b->brokers[i]); /* sends at once what the others produced */
    (void)intact_client_drive(b->client);
}

static int64_t wake_at(struct bridge *b)
{
    int64_t now = clock_boot_ms();
    int64_t at = b->is_stopping ? b->stop_by : now + 60000;
    int client_ms = intact_client_timeout_ms(b->client);

    for (size_t i = 0; i < b->broker_count; i++)
        at = min_i64(at, broker_wake_at(b->brokers[i]));
    if (client_ms >= 0)
        at = min_i64(at, now + client_ms);
    at = min_i64(at, requests_wake_at(b));
    at = min_i64(at, offers_wake_at(b));
    return min_i64(at, replies_wake_at(b));
}

static void wait_for_events(struct bridge *b, struct pollfd *list)
{
    nfds_t count = 0;

    list[count++] = (struct pollfd){.fd = signals.fd, .events = POLLIN};
    list[count++] = (struct pollfd){.fd = intact_client_fd(b->client), .events = POLLIN};
    list[count++] = (struct pollfd){.fd = b->inside.channel, .events = POLLIN}; /* -1: ignored */
    for (size_t i = 0; i < b->broker_count; i++)
        count += broker_poll(b->brokers[i], &list[count]);
    LIST_FOREACH (k, after, &b->agents) {
        const struct requests *q = CONTAINER_OF(k, struct requests, link);
        if (!q->is_over)
            list[count++] = (struct pollfd){.fd = intact_agent_fd(q->agent), .events = POLLIN};
    }
    int64_t ms = min_i64(max_i64(wake_at(b) - clock_boot_ms(), 0), 60000);
    (void)poll(list, count, (int)ms); /* the descriptor shows a signal */
}

static void run(struct bridge *b)
{
    size_t agents = 0;

    for (const struct agent_queue_config *c = b->config->agents; c; c = c->next)
        agents++;
    struct pollfd *list = calloc(3 + b->broker_count + agents, sizeof *list);
    ASSERT(list);
    log_line(LOG_INFO, "event=amqp_agent_started brokers=%zu agents=%zu inside=%s", b->broker_count,
             agents, b->inside.channel >= 0 ? "yes" : "no");
    for (bool has_server = true; has_server && !is_over(b);) {
        turn(b);
        wait_for_events(b, list);
        has_server = read_channel(b);
        if (signals.stops || caller_is_outdated(&b->caller, clock_boot_ms()))
            stop(b); /* outdated: the server starts another process */
    }
    free(list);
}

int amqp_agent_run(const struct amqp_config *c, const struct amqp_agent_options *o)
{
    struct bridge b = {.config = c, .options = o, .inside = inside_find(INSIDE_VARIABLE_AMQP)};
    int status = 2;

    process_hide();
    confine(&b);
    if (take_signals(b.inside.channel >= 0) && open_all(&b)) {
        run(&b);
        status = 0;
    }
    close_all(&b);
    return status;
}
