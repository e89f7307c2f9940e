#ifndef NET_SETTINGS_H
#define NET_SETTINGS_H

/* Settings of the network, as config/reader.h reads fields. */

#include "config/reader.h"
#include "net/address.h"

/* Into a struct networks; they join those that are there. */
void read_networks(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
