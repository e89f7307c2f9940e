#ifndef CLI_VERBS_SERVE_MESSAGES_H
#define CLI_VERBS_SERVE_MESSAGES_H

/* The section `messages` of the file for `intact serve --config`, for all status messages. */

#include "config/config_reader.h"

struct messages_settings {
    const char *source; /* source of the CloudEvents; NULL: the server's own */
    int64_t give_up_ms; /* 0: default */
};

/* For the table of fields; the target is a struct messages_settings. */
void read_messages(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
