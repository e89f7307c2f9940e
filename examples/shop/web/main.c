/* The web server's options, routes, threads and end. libmicrohttpd calls on_request with each
 * part of a request; the other files answer it. shop.h shows which one does what. */

#include "shop.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONNECTIONS_MAX 500

enum db_result shop_query(struct shop *shop, struct db_rows **ret, const char *sql, int count,
                          const char *const *args)
{
    pthread_mutex_lock(&shop->db_lock);
    enum db_result result = db_query(shop->db, ret, sql, count, args);
    if (result != DB_OK)
        fprintf(stderr, "shop-web: database: %s\n", db_error(shop->db));
    pthread_mutex_unlock(&shop->db_lock);
    return result;
}

static bool is(const char *method, const char *wanted)
{
    return strcmp(method, wanted) == 0;
}

static enum MHD_Result route_order(struct request *r, const char *rest)
{
    char id[64];
    size_t length = strcspn(rest, "/");
    snprintf(id, sizeof(id), "%.*s", (int)(length < 63 ? length : 63), rest);
    if (!order_is_id(id))
        return answer_error(r, MHD_HTTP_NOT_FOUND, NULL, "There is no such order.");
    if (rest[length] == '\0')
        return order_get(r, id);
    if (strcmp(rest + length, "/events") == 0)
        return events_get(r, id);
    return answer_error(r, MHD_HTTP_NOT_FOUND, NULL, "There is nothing here.");
}

/* Orders of which an id was given: pay, cancel, or a decision of the staff. */
static enum MHD_Result route_people(struct request *r)
{
    char id[64], verb[32] = "";
    int end = 0;
    if (sscanf(r->path, "/api/approvals/%63[a-z0-9-]%n", id, &end) == 1 && !r->path[end]
        && order_is_id(id))
        return approval_post(r, id);
    if (sscanf(r->path, "/api/orders/%63[a-z0-9-]/%31[a-z]%n", id, verb, &end) == 2 && !r->path[end]
        && order_is_id(id))
        return order_verb(r, id, verb);
    return answer_error(r, MHD_HTTP_NOT_FOUND, NULL, "There is nothing here.");
}

static enum MHD_Result route(struct request *r, const char *method)
{
    bool orders = strcmp(r->path, "/api/orders") == 0;
    if (orders && is(method, "POST"))
        return order_post(r);
    if (is(method, "POST") && strcmp(r->path, "/api/reminders") == 0)
        return reminders_post(r);
    if (is(method, "POST")
        && (strncmp(r->path, "/api/approvals/", 15) == 0
            || strncmp(r->path, "/api/orders/", 12) == 0))
        return route_people(r);
    if (!is(method, "GET") && !is(method, "HEAD"))
        return answer_error(r, MHD_HTTP_METHOD_NOT_ALLOWED, NULL,
                            orders ? "Orders are read by GET, and placed by POST."
                                   : "This can be read, by GET, and nothing else.");
    if (orders)
        return orders_get(r);
    if (strcmp(r->path, "/api/approvals") == 0)
        return approvals_get(r);
    if (strcmp(r->path, "/api/products") == 0)
        return products_get(r);
    if (strncmp(r->path, "/api/orders/", 12) == 0)
        return route_order(r, r->path + 12);
    if (strncmp(r->path, "/api/", 5) == 0)
        return answer_error(r, MHD_HTTP_NOT_FOUND, NULL, "There is nothing here.");
    return page_get(r);
}

/* libmicrohttpd calls this when the head is there, then for each part of the body, then once more
 * for the answer. */
static enum MHD_Result on_request(void *closure, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *data, size_t *size, void **state)
{
    struct request *r = *state;
    (void)version;
    if (!r) {
        r = calloc(1, sizeof(*r));
        if (!r)
            return MHD_NO;
        *r = (struct request){.shop = closure, .connection = connection};
        *state = r;
        return MHD_YES;
    }
    r->path = path;
    if (*size > 0) {
        if (r->length + *size <= BODY_MAX)
            memcpy(r->body + r->length, data, *size);
        r->length = r->length + *size <= BODY_MAX ? r->length + *size : BODY_MAX + 1;
        *size = 0;
        return MHD_YES;
    }
    return route(r, method);
}

static void on_end(void *closure, struct MHD_Connection *connection, void **state,
                   enum MHD_RequestTerminationCode why)
{
    (void)closure;
    (void)connection;
    (void)why;
    free(*state);
    *state = NULL;
}

static struct MHD_Daemon *listen_at(struct shop *shop, const char *address, int port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
        return NULL;
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, shop, MHD_OPTION_SOCK_ADDR, &at,
                            MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
                            MHD_OPTION_CONNECTION_TIMEOUT, 60U, MHD_OPTION_THREAD_STACK_SIZE,
                            (size_t)256 * 1024, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1U,
                            MHD_OPTION_NOTIFY_COMPLETED, on_end, NULL, MHD_OPTION_END);
}

/* Until somebody tells us to end. */
static int serve(struct shop *shop, const char *address, int port)
{
    sigset_t ends;
    int signal_number;
    pthread_t news;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* before any thread is made */
    signal(SIGPIPE, SIG_IGN);

    shop->orders = queue_open(shop->broker, "shop-web");
    shop->replies = queue_open(shop->broker, "shop-web-replies");
    if (!shop->orders || !shop->replies) {
        fprintf(stderr, "shop-web: SHOP_AMQP should be amqp://[USER:PASSWORD@]HOST[:PORT]\n");
        return 2;
    }
    struct MHD_Daemon *daemon = listen_at(shop, address, port);
    if (!daemon || !news_start(shop, &news)) {
        fprintf(stderr, "shop-web: cannot listen at %s:%d\n", address, port);
        if (daemon)
            MHD_stop_daemon(daemon);
        queue_close(shop->replies);
        queue_close(shop->orders);
        return 1;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("shop-web: http://%s:%d/\n", address, info ? info->port : port);
    fflush(stdout);

    sigwait(&ends, &signal_number);
    shop->stopping = true;
    events_stop();
    pthread_join(news, NULL);
    queue_close(shop->replies);
    MHD_stop_daemon(daemon);
    queue_close(shop->orders);
    return 0;
}

static int usage(void)
{
    fprintf(stderr, "usage: shop-web --pages FOLDER --schema FILE [--address A] [--port P]\n"
                    "  with SHOP_DB: postgresql://... or a path, and SHOP_AMQP: amqp://...\n"
                    "  INTACT_SERVER, INTACT_TOKEN: what people decide is told there;"
                    " SHOP_KEY: what Intact has to say for reminders\n");
    return 2;
}

/* 0: any that is free. -1: it is no port. */
static int port_of(const char *text)
{
    char *end = NULL;
    long port = strtol(text, &end, 10);
    return *text && !*end && port >= 0 && port <= 65535 ? (int)port : -1;
}

int main(int count, char **args)
{
    static const struct option options[] = {{"pages", required_argument, NULL, 'p'},
                                            {"schema", required_argument, NULL, 's'},
                                            {"address", required_argument, NULL, 'a'},
                                            {"port", required_argument, NULL, 'n'},
                                            {0}};
    struct shop shop = {.broker = getenv("SHOP_AMQP"), .db_lock = PTHREAD_MUTEX_INITIALIZER};
    const char *database = getenv("SHOP_DB");
    const char *address = "127.0.0.1", *schema = NULL;
    int port = 8080;
    for (int c; (c = getopt_long(count, args, "", options, NULL)) != -1;) {
        if (c == 'p')
            shop.pages = optarg;
        else if (c == 's')
            schema = optarg;
        else if (c == 'a')
            address = optarg;
        else if (c == 'n')
            port = port_of(optarg);
        else
            return usage();
    }
    if (!shop.pages || !schema || port < 0 || !database || !shop.broker || optind != count)
        return usage();
    shop.schema = file_read(schema);
    if (!shop.schema)
        return 1;
    shop.db = db_open(database);
    shop.news_db = db_open(database);
    int result = serve(&shop, address, port);
    db_close(shop.news_db);
    db_close(shop.db);
    free(shop.schema);
    return result;
}
