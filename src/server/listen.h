#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

/* The address at which clients come in. */

#include "node/part.h"

extern const struct part listen_part;

#endif
