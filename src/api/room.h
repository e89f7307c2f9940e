#ifndef API_ROOM_H
#define API_ROOM_H

/*
 * What this folder keeps of a node. Other folders do not include this header: they call functions
 * that take the node.
 */

#include "base/log.h"
#include "node/node.h"

struct api {
    struct log_burst refusals[2]; /* of requests without a good token; with one of another role */
    /* The token of the request that is being handled (NULL: it needs none); until its handler
     * returns. */
    const struct bearer *bearer;
    struct events *events;
    struct batches *batches;
    struct records *records;
    struct listings *listings; /* answers that are rendered in slices */
    struct shown *shown;       /* records that are answered from memory */
    struct backup *backup;     /* NULL: none is being made */
    struct console *console;   /* NULL: there is none, or it is not wanted */
    struct sign_ins *sign_ins;
};

#endif
