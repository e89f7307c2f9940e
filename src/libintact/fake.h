#ifndef LIBINTACT_FAKE_H
#define LIBINTACT_FAKE_H

/*
 * For tests: a real HTTP server on a real socket, with answers from a function. One thread for each
 * connection. The function is called with the lock held and may wait for its condition.
 */

#include <pthread.h>

#include "base/buf.h"

enum { FAKE_CONNECTIONS_MAX = 1024 };

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Returns the status; 0: disconnect without an answer. `line` is "POST /v1/tasks". */
    int (*answer)(struct fake *f, const char *line, struct slice body, struct buf *ret);
    void *arg;
    int port; /* 0 at first: any; the same one after fake_close and fake_open */
    bool closing;
    int listener;
    pthread_t acceptor;
    pthread_t threads[FAKE_CONNECTIONS_MAX];
    int fds[FAKE_CONNECTIONS_MAX];
    size_t connection_count;
    char header[80]; /* an additional header line of each answer, with its CRLF */
    /* Its installation, named in each answer; requests for another one get 421. "": not named. */
    char installation[40];
    unsigned misdirected;   /* calls refused with 421 */
    char authorization[80]; /* of the latest call */
};

void fake_open(struct fake *f);
void fake_close(struct fake *f); /* closes all connections */
void fake_url(const struct fake *f, char ret[40]);
bool fake_wait(struct fake *f); /* for `changed`, up to 50 ms; false: it is closing */

#endif
