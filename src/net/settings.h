#ifndef NET_SETTINGS_H
#define NET_SETTINGS_H

/* Network settings, in the manner of config/reader.h. */

#include "config/config_reader.h"
#include "net/address.h"

/* Adds to a struct networks. */
void read_networks(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
