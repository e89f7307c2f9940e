#ifndef HTTP_TEST_KIT_H
#define HTTP_TEST_KIT_H

/*
 * A server and its raw clients on one loop in one thread. No test measures time: an expected event
 * comes, or the test fails after a long timeout.
 */

#include <openssl/ssl.h>

#include "base/test.h"
#include "http/http.h"

enum { PARKED_MAX = 1200, PATIENCE_MS = 120000 };

/* The server answers every request except on these paths: /park leaves it to the test, /release
 * also answers the first parked one, /stream begins a stream and leaves it to the test
 * (/stream?short ends it at once); /big, /nothing, /problem are as named. By its head alone,
 * /refused is answered 403, /held is left to the test, and /ten may have a body of ten bytes. */
struct world {
    uv_loop_t loop;
    struct http_server *server;
    struct http_request *parked[PARKED_MAX]; /* NULL once done */
    unsigned parked_count;
    unsigned handled, sent, lost, flushed;
    unsigned refused; /* input that was no request; the last status and reason: */
    int refused_status;
    bool closes_in_handler, closes_in_done;
    bool is_closed;
    bool is_secure;
    unsigned certificates, certificates_refused; /* that were told of */
    struct error refusal;                        /* of the last one */
    size_t big;                                  /* bytes of the answer to /big */
    unsigned wrote; /* times that more was written than whoever answered had */
};

extern struct world w;

void begin(const struct http_limits *limits); /* NULL: the defaults */

/* The same with TLS: clients opened from now on use it. */
void begin_secure(const struct http_limits *limits);
const char *certificate_file(void); /* the one in use; in a folder of this process */
const char *key_file(void);
void certificate_make(const char *cert, const char *key, const char *name);
void certificate_forget(void); /* at the end of the process */

void end(void); /* checks for leaks, and that every request was done once */
void turn(void);

struct client {
    int fd;
    struct buf got;
    bool is_ended, is_reset;
    SSL *ssl; /* NULL: no TLS */
};

void client_open(struct client *c);
void client_open_in_clear(struct client *c);
void client_secure(struct client *c); /* uses TLS from now on; set c->ssl before for special
                                       * parameters */
SSL *client_tls(int version);         /* for that: any TLS, or just that version */
int client_socket(int flags);
int client_connect(const struct client *c); /* 0 or an errno */
void client_close(struct client *c);
void client_reset(struct client *c);
void client_poll(struct client *c); /* reads what is there; NULL is allowed */
void client_send(struct client *c, struct slice s);
void client_say(struct client *c, const char *text);
bool client_has(const struct client *c, const char *text);
unsigned client_count(const struct client *c, const char *text);
int client_status(const struct client *c); /* of the last response */

/* Iterates the loop until `cond`; `c` may be NULL. */
#define UNTIL(c, cond, ...)                        \
    do {                                           \
        for (int ms_ = 0; !(cond); ms_++) {        \
            CHECK(ms_ < PATIENCE_MS, __VA_ARGS__); \
            turn();                                \
            client_poll(c);                        \
            if (!(cond) && ms_ > 50)               \
                test_pause();                      \
        }                                          \
    } while (0)

void test_pause(void); /* lets the kernel and the clock go on */

#define EXPECT(c, text) UNTIL(c, client_has(c, text), "%s came, not %s", (c)->got.ptr, text)
#define EXPECT_END(c)   UNTIL(c, (c)->is_ended, "the connection is open: %s", (c)->got.ptr)

#endif
