#ifndef TESTS_POSTGRES_PROXY_H
#define TESTS_POSTGRES_PROXY_H

/*
 * A proxy between the store and the database, on a socket of its own, that causes failures. Its
 * process ends with the test.
 */

#include <stdint.h>

enum proxy_mode {
    PROXY_PASS,
    PROXY_HOLD_REQUESTS, /* bytes of clients wait, to be passed on later */
    PROXY_HOLD_ANSWERS,  /* the database executes everything, but no answer is returned */
    PROXY_REFUSE,        /* connections are closed at once */
    PROXY_SILENT,        /* connections are not answered */
};

/* The conninfo for clients. */
const char *proxy_conninfo(void);
void proxy_set(enum proxy_mode mode);
/* Cuts every connection from now on after so many bytes from its client; 0: none. */
void proxy_cut_after(uint64_t bytes);

#endif
