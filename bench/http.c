/* Load for the HTTP layer of a server: many connections, small requests, one thread, plain
 * sockets (or TLS handshakes). Prints rates. tools/bench_http.sh runs it. */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 8192, EVENTS = 256 };

static const char usage[] =
    "usage: bench-http PORT park COUNT           until standard input ends\n"
    "       bench-http PORT rate COUNT MS PATH   connections, time\n"
    "       bench-http PORT tls COUNT            until standard input ends\n";

static int port;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static int dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void say(int fd, const char *text, size_t len)
{
    if (send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
        die("send");
}

static const char *authorization(void)
{
    static char line[200];
    const char *token = getenv("INTACT_TOKEN");

    if (token)
        (void)snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", token);
    return line;
}

static void wait_for_input_to_end(void)
{
    char c = 0;

    while (read(STDIN_FILENO, &c, 1) > 0)
        ;
}

/* Sends the work requests of COUNT idle agents. */
static void park(int count)
{
    char text[600];
    char body[100];

    for (int i = 0; i < count; i++) {
        int n = snprintf(body, sizeof body, "{\"instance\": \"p-%d\", \"wait\": \"5m\"}", i);
        int len = snprintf(text, sizeof text,
                           "POST /v1/agents/parked/work HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s"
                           "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                           port, authorization(), n, body);
        say(dial(), text, (size_t)len);
    }
    puts("parked");
    (void)fflush(stdout);
    wait_for_input_to_end();
}

static double now_s(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Each connection sends its next request as soon as the answer arrives. Answers are small enough
 * for one read. */
static void rate(int count, int ms, const char *path)
{
    struct epoll_event events[EVENTS];
    char text[600];
    char bytes[BYTES];
    long answered = 0;
    int len = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n", path,
                       port, authorization());
    int epoll = epoll_create1(EPOLL_CLOEXEC);

    for (int i = 0; i < count; i++) {
        int fd = dial();
        struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e) != 0)
            die("epoll");
        say(fd, text, (size_t)len);
    }
    double begin = now_s();
    double until = begin + ms / 1e3;
    while (now_s() < until) {
        int n = epoll_wait(epoll, events, EVENTS, 1000);
        for (int i = 0; i < n; i++) {
            ssize_t got = recv(events[i].data.fd, bytes, sizeof bytes - 1, 0);
            if (got <= 0)
                die("recv");
            if (strncmp(bytes, "HTTP/1.1 200 ", 13) != 0) {
                bytes[got] = 0;
                fprintf(stderr, "%s\n", bytes);
                exit(1);
            }
            answered++;
            say(events[i].data.fd, text, (size_t)len);
        }
    }
    double took = now_s() - begin;
    printf("%ld %.0f\n", answered, (double)answered / took);
}

/* Handshakes one after the other; the connections stay open. */
static void tls(int count)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    if (!ctx)
        die("TLS");
    (void)SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    for (int i = 0; i < count; i++) {
        static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
        char bytes[BYTES];
        SSL *ssl = SSL_new(ctx);
        if (!ssl || SSL_set_fd(ssl, dial()) != 1 || SSL_connect(ssl) != 1)
            die("handshake");
        if (SSL_write(ssl, ask, sizeof ask - 1) <= 0 || SSL_read(ssl, bytes, BYTES) <= 0)
            die("request");
    }
    puts("up");
    (void)fflush(stdout);
    wait_for_input_to_end();
}

int main(int argc, char **argv)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files); /* connect reports an insufficient limit */
    }
    if (argc < 4) {
        fputs(usage, stderr);
        return 2;
    }
    port = atoi(argv[1]);
    if (strcmp(argv[2], "park") == 0)
        park(atoi(argv[3]));
    else if (strcmp(argv[2], "tls") == 0)
        tls(atoi(argv[3]));
    else if (strcmp(argv[2], "rate") == 0 && argc == 6)
        rate(atoi(argv[3]), atoi(argv[4]), argv[5]);
    else {
        fputs(usage, stderr);
        return 2;
    }
    return 0;
}
