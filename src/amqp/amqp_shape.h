#ifndef AMQP_AMQP_SHAPE_H
#define AMQP_AMQP_SHAPE_H

/* The shape of an encoded message: what must hold before Proton may decode it. */

#include "base/base.h"

enum {
    AMQP_NESTING_MAX = 40,  /* of lists, maps and arrays in each other */
    AMQP_PARTS_MAX = 65000, /* of a message; Proton drops what a value has beyond 65535 */
};

enum amqp_shape {
    AMQP_SHAPE_SOUND,
    AMQP_SHAPE_BROKEN, /* not AMQP 1.0, or its sizes contradict each other */
    AMQP_SHAPE_DEEP,   /* nested deeper than AMQP_NESTING_MAX */
    AMQP_SHAPE_LARGE,  /* of more parts than AMQP_PARTS_MAX */
};

/* Reads each byte at most once, does not recurse and allocates nothing. */
enum amqp_shape amqp_shape(struct slice text) MUST_USE;

#endif
