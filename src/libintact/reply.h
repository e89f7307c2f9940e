#ifndef LIBINTACT_REPLY_H
#define LIBINTACT_REPLY_H

/* What came of a client's call. */

#include <intact/client.h>

#include "libintact/wire.h"

struct intact_reply {
    CURL *easy; /* that brought it, and has its headers */
    struct buf body, error;
    long status; /* of HTTP; 0: no answer */
    enum intact_status result;
    char why[CURL_ERROR_SIZE];
};

void reply_clear(struct intact_reply *r);
void reply_fini(struct intact_reply *r);

/* The call is over: fills in result and error. */
enum intact_status reply_conclude(struct intact_reply *r, const char *server, CURLcode code);

#endif
