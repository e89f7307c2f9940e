#ifndef NET_NET_SETTINGS_H
#define NET_NET_SETTINGS_H

/* Network settings, in the manner of config/config_reader.h. */

#include "config/config_reader.h"
#include "net/address.h"
#include "net/transfer.h"

/* Adds to a struct networks. */
void read_networks(struct reader *r, const struct json *j, const struct path *path, void *target);

/* {ca, cert, key} of a struct transfer_config. */
void read_tls(struct reader *r, const struct json *j, const struct path *path, void *target);

#endif
