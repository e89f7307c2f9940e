#ifndef CLI_SERVE_MESSAGES_H
#define CLI_SERVE_MESSAGES_H

/* The section `messages` of the file of `intact serve --config`: of all status messages, wherever
 * they go. */

#include "config/reader.h"

struct messages_settings {
    const char *source; /* of the CloudEvents; NULL: the server's own */
    int64_t give_up_ms; /* 0: by default */
};

/* For the table of fields; the target is a struct messages_settings. */
void read_messages(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
