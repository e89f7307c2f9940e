#ifndef LIBINTACT_REPLY_H
#define LIBINTACT_REPLY_H

/* The result of a client's call. */

#include <intact/client.h>

#include "libintact/wire.h"

struct intact_reply {
    CURL *easy; /* the call's handle, which has the headers */
    struct buf body, error;
    long status; /* of HTTP; 0: no answer */
    enum intact_status result;
    char why[CURL_ERROR_SIZE];
};

void reply_clear(struct intact_reply *r);
void reply_fini(struct intact_reply *r);

/* The call has ended: sets result and error. */
enum intact_status reply_conclude(struct intact_reply *r, const char *server, CURLcode code);

#endif
