#ifndef NODE_TROUBLE_H
#define NODE_TROUBLE_H

/* Whether the store works: its last failure, as reported by scheduler and supervisor, and whether
 * it has stopped answering. */

#include "base/err.h"

struct server;

struct store_trouble {
    enum err err; /* ERR_OK: it works */
    int64_t since;
    char text[400];
    bool scans_fail;      /* the supervisor reported it ... */
    uint64_t scans_until; /* ... after so many scans that succeeded */
};

/* ERR_OK: the store works, and the story is not written. ERR_BUSY: it has not answered for long. */
enum err server_trouble(const struct server *sv, char *ret_story, size_t story_size);

/* For struct outside: the store failed, or (NULL) works again. arg is the server. */
void store_trouble(void *arg, const struct error *e);
/* For struct supervisor_outside: a scan failed. arg is the server. */
void store_scan_failed(void *arg, const struct error *e);
void store_scan_check(struct server *sv); /* in each turn: have scans succeeded since? */

#endif
