/* A connection to an AMQP broker: connecting, reconnecting, and the events of Proton. See broker.h.
 * Each queue's link is in way.c. */
#include "amqp/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <proton/condition.h>
#include <proton/connection.h>
#include <proton/event.h>
#include <proton/sasl.h>
#include <proton/ssl.h>
#include <proton/transport.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "amqp/way.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/prng.h"

enum {
    AGAIN_FIRST_MS = 250,
    AGAIN_MOST_MS = 30000,
    CONNECT_WITHIN_MS = 15000, /* includes TLS, SASL and open */
    RESOLVE_LOOK_MS = 20,
    SENDERS_MAX = 200,    /* idle ones beyond this are closed */
    STEADY_MS = 10000,    /* one that breaks sooner is reconnected ever later ... */
    SHORT_MOST_MS = 2000, /* ... up to this: a single message may be the cause */
    FRAME_MAX = 16384,    /* bytes; without a limit Proton takes frames and messages of any size */
    STALLED_MS = 10000,   /* a sender without credit goes after that, if others have no channel */
    CHANNEL_LOOK_MS = 1000,
};

enum phase { WAITS, RESOLVES, CONNECTS, TALKS };

/* May outlive its broker, because a lookup cannot always be cancelled. */
struct resolver {
    struct gaicb query;
    struct addrinfo hints;
    char host[256], port[8];
};

struct broker {
    const struct broker_config *config;
    char *container;
    enum phase phase;
    int fd; /* -1: none */
    int64_t phase_by;
    int64_t retry_at, tick_at, opened_at;
    uint32_t failures;
    struct resolver *resolver;
    struct addrinfo *addresses, *next_address;
    pn_connection_driver_t driver;
    bool has_driver, is_open, is_crowded;
    pn_ssl_domain_t *tls;
    struct link ways;
    size_t sender_count;
    size_t session_count; /* of ours that have a channel, those included that are being closed */
    struct prng prng;
    char why[300]; /* the reason why the connection broke */
};

struct broker *broker_new(const struct broker_config *c, const char *container)
{
    struct broker *b = calloc(1, sizeof *b);

    ASSERT(b);
    *b = (struct broker){.config = c, .fd = -1, .container = strdup(container)};
    ASSERT(b->container);
    b->prng.state = (uint64_t)clock_boot_ms() ^ ((uint64_t)getpid() << 32);
    list_init(&b->ways);
    return b;
}

/* ---- the end of a connection ---- */

static void forget_resolver(struct broker *b)
{
    if (b->resolver && gai_cancel(&b->resolver->query) != EAI_NOTCANCELED)
        free(b->resolver); /* otherwise it is still in use, and leaks */
    b->resolver = NULL;
}

static void close_connection(struct broker *b)
{
    forget_resolver(b);
    if (b->addresses)
        freeaddrinfo(b->addresses);
    b->addresses = b->next_address = NULL;
    LIST_FOREACH (at, after, &b->ways) {
        way_lost(CONTAINER_OF(at, struct way, link));
    }
    if (b->has_driver)
        pn_connection_driver_destroy(&b->driver);
    b->has_driver = b->is_open = b->is_crowded = false;
    b->session_count = 0;
    if (b->tls)
        pn_ssl_domain_free(b->tls);
    b->tls = NULL;
    if (b->fd >= 0)
        (void)close(b->fd);
    b->fd = -1;
}

static void set_reason(struct broker *b, const char *what, const char *detail)
{
    if (!b->why[0]) /* the first error is the cause */
        (void)snprintf(b->why, sizeof b->why, "%s%s%s", what, detail ? ": " : "",
                       detail ? detail : "");
}

static void set_condition(struct broker *b, pn_condition_t *c, const char *otherwise)
{
    if (c && pn_condition_is_set(c))
        set_reason(b, pn_condition_get_name(c), pn_condition_get_description(c));
    else
        set_reason(b, otherwise, NULL);
}

static void lose(struct broker *b, const char *what, const char *detail)
{
    CLEANUP(buf_fini) struct buf words = {0}; /* the broker's message */
    bool was_open = b->is_open;
    int64_t wait = AGAIN_FIRST_MS;
    struct link lost;

    set_reason(b, what, detail);
    list_init(&lost);
    if (was_open)
        LIST_FOREACH (at, after, &b->ways) {
            way_take_sendings(CONTAINER_OF(at, struct way, link), &lost);
        }
    close_connection(b);
    b->phase = WAITS;
    if (was_open && clock_boot_ms() - b->opened_at >= STEADY_MS)
        b->failures = 0;
    for (uint32_t i = 0; i < b->failures && wait < AGAIN_MOST_MS; i++)
        wait *= 2;
    wait = min_i64(wait, was_open ? SHORT_MOST_MS : AGAIN_MOST_MS);
    log_word(&words, slice_of(b->why));
    if (was_open || b->failures % 16 == 0)
        log_line(LOG_WARN, "event=amqp_lost broker=%.*s failures=%" PRIu32 " reason=%s",
                 SLICE_ARG(b->config->name), b->failures, words.ptr);
    b->failures++;
    b->retry_at = clock_boot_ms() + wait / 2 + prng_below(&b->prng, (uint32_t)(wait / 2) + 1);
    sendings_end(&lost, SENT_LOST, b->why);
}

void broker_free(struct broker *b)
{
    struct link lost;

    if (!b)
        return;
    if (b->has_driver && b->is_open) { /* a regular close, if it can be sent at once */
        pn_connection_close(b->driver.connection);
        pn_bytes_t out = pn_connection_driver_write_buffer(&b->driver);
        if (out.size > 0)
            (void)!write(b->fd, out.start, out.size);
    }
    list_init(&lost);
    LIST_FOREACH (at, after, &b->ways) {
        way_take_sendings(CONTAINER_OF(at, struct way, link), &lost);
    }
    close_connection(b);
    sendings_end(&lost, SENT_LOST, "the bridge ends");
    LIST_FOREACH (at, after, &b->ways) {
        way_free(CONTAINER_OF(at, struct way, link));
    }
    free(b->container);
    free(b);
}

/* ---- connecting ---- */

static void resolve(struct broker *b)
{
    struct resolver *r = calloc(1, sizeof *r);
    struct gaicb *list[1];

    ASSERT(r);
    (void)snprintf(r->host, sizeof r->host, "%.*s", SLICE_ARG(slice_cut(b->config->host, 255)));
    (void)snprintf(r->port, sizeof r->port, "%u", b->config->port);
    r->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM};
    r->query = (struct gaicb){.ar_name = r->host, .ar_service = r->port, .ar_request = &r->hints};
    list[0] = &r->query;
    b->phase = RESOLVES;
    b->why[0] = 0;
    b->phase_by = clock_boot_ms() + CONNECT_WITHIN_MS;
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, NULL) != 0) {
        free(r);
        lose(b, "the name of the broker cannot be looked up", NULL);
        return;
    }
    b->resolver = r;
}

static void try_address(struct broker *b)
{
    const int on = 1;

    for (; b->next_address; b->next_address = b->next_address->ai_next) {
        const struct addrinfo *a = b->next_address;
        b->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (b->fd >= 0
            && (connect(b->fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS)) {
            (void)setsockopt(b->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* optional */
            b->next_address = a->ai_next;
            b->phase = CONNECTS;
            return;
        }
        if (b->fd >= 0)
            (void)close(b->fd);
        b->fd = -1;
    }
    lose(b, "cannot connect", strerrordesc_np(errno));
}

static void look_at_resolver(struct broker *b)
{
    int rc = gai_error(&b->resolver->query);

    if (rc == EAI_INPROGRESS)
        return;
    if (rc != 0) {
        lose(b, "the name of the broker", gai_strerror(rc));
        return;
    }
    b->addresses = b->next_address = b->resolver->query.ar_result;
    free(b->resolver);
    b->resolver = NULL;
    try_address(b);
}

static bool set_tls(struct broker *b)
{
    const struct broker_config *c = b->config;
    char host[256];

    (void)snprintf(host, sizeof host, "%.*s", SLICE_ARG(slice_cut(c->host, 255)));
    b->tls = pn_ssl_domain(PN_SSL_MODE_CLIENT);
    if (!b->tls)
        return false;
    if (c->ca && pn_ssl_domain_set_trusted_ca_db(b->tls, c->ca) != 0) {
        set_reason(b, "the certificates of ca cannot be read", c->ca);
        return false;
    }
    if (c->cert && pn_ssl_domain_set_credentials(b->tls, c->cert, c->key, NULL) != 0) {
        set_reason(b, "cert and key cannot be read", c->cert);
        return false;
    }
    pn_ssl_t *ssl = pn_ssl(b->driver.transport);
    return pn_ssl_domain_set_peer_authentication(b->tls, PN_SSL_VERIFY_PEER_NAME, NULL) == 0
           && pn_ssl_init(ssl, b->tls, NULL) == 0 && pn_ssl_set_peer_hostname(ssl, host) == 0;
}

static void set_sasl(struct broker *b, bool has_password)
{
    const struct broker_config *c = b->config;
    const char *mechanism = c->sasl        ? c->sasl
                            : has_password ? "PLAIN"
                            : c->cert      ? "EXTERNAL"
                                           : "ANONYMOUS";
    pn_sasl_t *sasl = pn_sasl(b->driver.transport);

    pn_sasl_allowed_mechs(sasl, mechanism);
    pn_sasl_set_allow_insecure_mechs(sasl, true); /* the configuration was checked for that */
}

static void talk(struct broker *b)
{
    const struct broker_config *c = b->config;
    struct error e = {0};
    char *password = NULL;
    char host[256];

    if (amqp_password(c, &password, &e) != ERR_OK) {
        lose(b, e.text, NULL);
        return;
    }
    (void)snprintf(host, sizeof host, "%.*s", SLICE_ARG(slice_cut(c->host, 255)));
    int rc = pn_connection_driver_init(&b->driver, NULL, NULL);
    ASSERT(rc == 0); /* only memory could fail */
    b->has_driver = true;
    b->phase = TALKS;
    pn_connection_t *conn = b->driver.connection;
    pn_connection_set_container(conn, b->container);
    pn_connection_set_hostname(conn, host);
    if (c->user)
        pn_connection_set_user(conn, c->user);
    if (password)
        pn_connection_set_password(conn, password);
    set_sasl(b, password != NULL);
    secret_wipe(password, password ? strlen(password) : 0);
    if (c->is_tls && !set_tls(b)) {
        lose(b, "TLS cannot be set up", NULL);
        return;
    }
    pn_transport_set_max_frame(b->driver.transport, FRAME_MAX);
    pn_transport_set_idle_timeout(b->driver.transport, (pn_millis_t)min_i64(c->idle_ms, 3600000));
    (void)pn_connection_driver_bind(&b->driver);
    pn_connection_open(conn);
}

static void look_at_socket(struct broker *b)
{
    struct pollfd p = {.fd = b->fd, .events = POLLOUT};
    int fault = 0;
    socklen_t size = sizeof fault;

    if (poll(&p, 1, 0) <= 0)
        return;
    if (getsockopt(b->fd, SOL_SOCKET, SO_ERROR, &fault, &size) == 0 && fault == 0) {
        talk(b);
        return;
    }
    (void)close(b->fd);
    b->fd = -1;
    errno = fault;
    try_address(b);
}

/* ---- channels ---- */

/* Each session takes a channel, and brokers announce how many they allow (RabbitMQ 4: 64). Proton
 * would send nothing at all any more if there was one session too many. */
static size_t channels_most(const struct broker *b)
{
    return (size_t)pn_transport_get_channel_max(b->driver.transport) + 1;
}

/* How many senders may be attached: each receiver has its channel, even before it is attached. */
static size_t channels_for_senders(struct broker *b)
{
    size_t most = channels_most(b);
    size_t taken = b->session_count;

    LIST_FOREACH (at, after, &b->ways) {
        const struct way *l = CONTAINER_OF(at, struct way, link);
        taken += l->is_receiver && !l->pn;
    }
    return most > taken ? most - taken : 0;
}

static bool is_idle(const struct way *l)
{
    return !l->is_receiver && list_empty(&l->waiting) && list_empty(&l->under_way);
}

/* The broker takes none of its messages now. */
static bool is_stalled(const struct way *l)
{
    return !l->is_receiver && l->is_open && list_empty(&l->under_way) && pn_link_credit(l->pn) <= 0
           && clock_boot_ms() - l->attached_at >= STALLED_MS;
}

/* NULL, or a sender whose channel another one may have: the one that has been idle for longest, or
 * else the one that has been stalled for longest. */
static struct way *dispensable(struct broker *b)
{
    struct way *idle = NULL, *stalled = NULL;

    LIST_FOREACH (at, after, &b->ways) {
        struct way *l = CONTAINER_OF(at, struct way, link);
        if (!l->pn)
            continue;
        if (is_idle(l) && (!idle || l->used_at < idle->used_at))
            idle = l;
        else if (is_stalled(l) && (!stalled || l->attached_at < stalled->attached_at))
            stalled = l;
    }
    return idle ? idle : stalled;
}

static size_t attached_count(struct broker *b)
{
    size_t count = 0;

    LIST_FOREACH (at, after, &b->ways) {
        count += CONTAINER_OF(at, struct way, link)->pn != NULL;
    }
    return count;
}

/* For so many that have no channel. They get theirs when the broker has confirmed the ends of other
 * sessions, so those that are being closed count. */
static void make_room(struct broker *b, size_t in_line)
{
    size_t closing = b->session_count - attached_count(b);

    if (!b->is_crowded)
        log_line(LOG_WARN, "event=amqp_crowded broker=%.*s channels=%zu",
                 SLICE_ARG(b->config->name), channels_most(b));
    b->is_crowded = true;
    for (; closing < in_line; closing++) {
        struct way *l = dispensable(b);
        if (!l)
            return;
        way_detach(l);
        link_remove(&l->link); /* behind the others, if it has messages */
        list_push(&b->ways, &l->link);
    }
}

/* ---- links ---- */

static bool is_wanted(const struct way *l)
{
    return l->is_receiver ? !l->is_stopped : !list_empty(&l->waiting);
}

static void attach_ways(struct broker *b)
{
    int64_t now = clock_boot_ms();
    size_t for_senders = channels_for_senders(b);
    size_t in_line = 0;

    LIST_FOREACH (at, after, &b->ways) {
        struct way *l = CONTAINER_OF(at, struct way, link);
        bool is_due = !l->pn && is_wanted(l) && l->retry_at <= now;
        bool has_room = l->is_receiver ? b->session_count < channels_most(b) : for_senders > 0;
        if (is_due && has_room) {
            way_attach(l, b->driver.connection, b->config);
            b->session_count++;
            for_senders -= !l->is_receiver;
        }
        in_line += is_due && !has_room;
        way_pump(l);
        way_read(l);
    }
    if (in_line > 0)
        make_room(b, in_line);
}

/* There is a reply queue for each waiting submitter, so idle senders are closed. */
static void let_go_of_idle(struct broker *b)
{
    struct way *oldest = NULL;

    if (b->sender_count <= SENDERS_MAX)
        return;
    LIST_FOREACH (at, after, &b->ways) {
        struct way *l = CONTAINER_OF(at, struct way, link);
        if (is_idle(l) && (!oldest || l->used_at < oldest->used_at))
            oldest = l;
    }
    if (!oldest)
        return;
    way_detach(oldest);
    way_free(oldest);
    b->sender_count--;
}

static struct way *sender_of(struct broker *b, struct slice queue)
{
    LIST_FOREACH (at, after, &b->ways) {
        struct way *l = CONTAINER_OF(at, struct way, link);
        if (!l->is_receiver && slice_eq(l->queue, queue))
            return l;
    }
    struct way *l = way_new(b, queue, false);
    list_push(&b->ways, &l->link);
    b->sender_count++;
    return l;
}

void broker_send(struct broker *b, struct slice queue, char *bytes, size_t size, sent_fn *done,
                 void *arg)
{
    struct way *l = sender_of(b, queue);
    struct sending *s = calloc(1, sizeof *s);

    ASSERT(s);
    *s = (struct sending){.bytes = bytes, .size = size, .done = done, .arg = arg};
    list_push(&l->waiting, &s->link);
    l->used_at = clock_boot_ms();
    b->tick_at = 1; /* it gets a turn at once */
}

struct receiver *broker_receive(struct broker *b, struct slice queue, uint32_t credit,
                                arrival_fn *fn, void *arg)
{
    struct way *l = way_new(b, queue, true);

    l->credit = credit;
    l->fn = fn;
    l->arg = arg;
    list_push(&b->ways, &l->link);
    return CONTAINER_OF(l, struct receiver, way);
}

void receiver_stop(struct receiver *r)
{
    r->way.is_stopped = true; /* further messages are released, and the credit is not renewed */
}

struct slice receiver_queue(const struct receiver *r)
{
    return r->way.queue;
}

const struct broker_config *receiver_broker(const struct receiver *r)
{
    return r->way.broker->config;
}

/* ---- events of the broker ---- */

static void fail_way(struct broker *b, struct way *l, pn_condition_t *why)
{
    struct link lost, too_large;

    list_init(&lost);
    list_init(&too_large);
    way_take_too_large(l, why, &too_large);
    way_take_sendings(l, &lost);
    way_failed(l, why, prng_next(&b->prng));
    sendings_end(&too_large, SENT_REJECTED, l->why);
    sendings_end(&lost, SENT_NO_WAY, l->why);
}

static void on_open(struct broker *b)
{
    if (b->is_open)
        return;
    b->is_open = true;
    b->opened_at = clock_boot_ms();
    log_line(LOG_INFO, "event=amqp_connected broker=%.*s", SLICE_ARG(b->config->name));
}

static void on_link_open(struct way *l)
{
    pn_terminus_t *far =
        l->is_receiver ? pn_link_remote_source(l->pn) : pn_link_remote_target(l->pn);

    if (pn_terminus_get_type(far) == PN_UNSPECIFIED)
        return; /* a refusal, which is reported next */
    l->is_open = true;
    if (l->failures > 0)
        way_log(LOG_INFO, "event=amqp_queue_back", l, NULL);
    l->failures = 0;
}

static void on_event(struct broker *b, pn_event_t *e)
{
    pn_link_t *link = pn_event_link(e);
    struct way *l = link ? pn_link_get_context(link) : NULL;

    switch ((int)pn_event_type(e)) {
    case PN_CONNECTION_REMOTE_OPEN:
        on_open(b);
        break;
    case PN_CONNECTION_REMOTE_CLOSE:
        set_condition(b, pn_connection_remote_condition(pn_event_connection(e)),
                      "the broker closed the connection");
        pn_connection_close(pn_event_connection(e));
        break;
    case PN_SESSION_REMOTE_CLOSE:
        l = pn_session_get_context(pn_event_session(e));
        if (l)
            fail_way(b, l, pn_session_remote_condition(pn_event_session(e)));
        break;
    case PN_SESSION_FINAL: /* both ends have ended it. The broker's own ones we never opened */
        if (pn_session_state(pn_event_session(e)) & PN_LOCAL_CLOSED)
            b->session_count--;
        break;
    case PN_LINK_REMOTE_OPEN:
        if (l)
            on_link_open(l);
        break;
    case PN_LINK_REMOTE_CLOSE:
    case PN_LINK_REMOTE_DETACH:
        if (l)
            fail_way(b, l, pn_link_remote_condition(link));
        break;
    case PN_DELIVERY:
        if (l)
            way_on_delivery(l, pn_event_delivery(e));
        break;
    case PN_TRANSPORT_ERROR:
        set_condition(b, pn_transport_condition(b->driver.transport), "the connection broke");
        break;
    default:
        break;
    }
}

/* ---- turns ---- */

static bool read_some(struct broker *b)
{
    pn_rwbytes_t room = pn_connection_driver_read_buffer(&b->driver);
    ssize_t n = room.size > 0 ? recv(b->fd, room.start, room.size, MSG_DONTWAIT) : -1;

    if (room.size == 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    if (n > 0) {
        pn_connection_driver_read_done(&b->driver, (size_t)n);
        return true;
    }
    set_reason(b, "the connection broke", n < 0 ? strerrordesc_np(errno) : NULL);
    pn_connection_driver_read_close(&b->driver);
    pn_connection_driver_write_close(&b->driver);
    return false;
}

static bool write_some(struct broker *b)
{
    pn_bytes_t out = pn_connection_driver_write_buffer(&b->driver);
    ssize_t n = out.size > 0 ? send(b->fd, out.start, out.size, MSG_DONTWAIT | MSG_NOSIGNAL) : -1;

    if (out.size == 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return false;
    if (n >= 0) {
        (void)pn_connection_driver_write_done(&b->driver, (size_t)n);
        return true;
    }
    set_reason(b, "the connection broke", strerrordesc_np(errno));
    pn_connection_driver_write_close(&b->driver);
    return false;
}

static void take_events(struct broker *b)
{
    for (pn_event_t *e = pn_connection_driver_next_event(&b->driver); e;
         e = pn_connection_driver_next_event(&b->driver))
        on_event(b, e);
}

static void converse(struct broker *b)
{
    int rounds = 64; /* then others get their turn */

    do {
        take_events(b);
        if (b->is_open)
            attach_ways(b);
    } while ((int)read_some(b) + (int)write_some(b) > 0 && --rounds > 0);
    take_events(b);
    b->tick_at = pn_transport_tick(b->driver.transport, clock_boot_ms());
    (void)write_some(b);
    if (rounds == 0)
        b->tick_at = 1;
    if (pn_connection_driver_finished(&b->driver))
        lose(b, "the connection broke", NULL);
    else if (!b->is_open && clock_boot_ms() >= b->phase_by)
        lose(b, "the broker did not answer in time", NULL);
}

void broker_turn(struct broker *b)
{
    int64_t now = clock_boot_ms();

    if (b->phase == WAITS && now >= b->retry_at)
        resolve(b);
    if (b->phase == RESOLVES)
        look_at_resolver(b);
    if (b->phase == CONNECTS)
        look_at_socket(b);
    if (b->phase == TALKS)
        converse(b);
    else if (b->phase != WAITS && now >= b->phase_by)
        lose(b, "cannot connect: no answer in time", NULL);
    let_go_of_idle(b);
}

bool broker_poll(struct broker *b, struct pollfd *ret)
{
    short events = POLLIN;

    if (b->fd < 0)
        return false;
    if (b->phase == CONNECTS)
        events = POLLOUT;
    else if (pn_connection_driver_write_buffer(&b->driver).size > 0)
        events |= POLLOUT;
    *ret = (struct pollfd){.fd = b->fd, .events = events};
    return true;
}

static int64_t ways_wake_at(struct broker *b)
{
    int64_t at = INT64_MAX;
    int64_t soonest = b->is_crowded ? clock_boot_ms() + CHANNEL_LOOK_MS : 0;

    LIST_FOREACH (k, after, &b->ways) {
        const struct way *l = CONTAINER_OF(k, struct way, link);
        if (!l->pn && is_wanted(l))
            at = min_i64(at, max_i64(l->retry_at, soonest));
    }
    return at;
}

int64_t broker_wake_at(struct broker *b)
{
    int64_t at = b->phase_by;

    if (b->phase == WAITS)
        return b->retry_at;
    if (b->phase == RESOLVES)
        return clock_boot_ms() + RESOLVE_LOOK_MS;
    if (b->phase == CONNECTS)
        return at;
    if (b->is_open)
        at = min_i64(INT64_MAX, ways_wake_at(b));
    return b->tick_at > 0 ? min_i64(at, b->tick_at) : at;
}

bool broker_is_open(const struct broker *b)
{
    return b->is_open;
}

bool broker_is_quiet(struct broker *b)
{
    LIST_FOREACH (k, after, &b->ways) {
        const struct way *l = CONTAINER_OF(k, struct way, link);
        if (!l->is_receiver && !is_idle(l))
            return false;
    }
    return !b->has_driver || pn_connection_driver_write_buffer(&b->driver).size == 0;
}

const struct broker_config *broker_config(const struct broker *b)
{
    return b->config;
}
