#ifndef TESTS_POSTGRES_PROXY_H
#define TESTS_POSTGRES_PROXY_H

/*
 * Stands between the store and the database, on a socket of its own, and lets it down. A process
 * that ends with the test.
 */

#include <stdint.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_HOLD_REQUESTS, /* what clients send stays where it is, to be passed on later */
    PROXY_HOLD_ANSWERS,  /* the database does everything, and nobody hears of it */
    PROXY_REFUSE,        /* connections are closed at once */
    PROXY_SILENT,        /* connections are not answered */
};

/* What a client connects with. */
const char *proxy_conninfo(void);
void proxy_set(enum proxy_mode mode);
/* Every connection from now on is cut after so many bytes from its client; 0: none is. */
void proxy_cut_after(uint64_t bytes);

#endif
