#ifndef NODE_CONFIG_H
#define NODE_CONFIG_H

/* The configuration of a node, as the command line makes it. All that it points to outlives the
 * node. */

#include "base/base.h"

struct store;           /* store/store.h */
struct server_limits;   /* node/limit.h */
struct channel;         /* outbox/channel.h */
struct helper_config;   /* background/helper.h */
struct webhook_config;  /* webhook/webhook_config.h */
struct alerts_settings; /* alerts/alert_settings.h */
struct retention;       /* background/retention.h */
struct virtual_time;    /* node/virtual_time.h */
enum { HELPERS_MAX = 2 };

/* A file of the store, for the metrics. */
struct store_file {
    const char *name; /* "database" */
    const char *path;
};

struct server_config {
    const char *listen;             /* "127.0.0.1:7420" */
    const char *tls_cert, *tls_key; /* files in PEM; NULL: no TLS */
    bool behind_proxy;              /* which may have taken TLS off */
    const char *const *hosts;       /* names that Host may have, besides loopback */
    size_t host_count;
    const struct server_limits *limits;           /* NULL: the default ones */
    struct store *store;                          /* open; stays the caller's */
    bool (*maintain)(struct store *s, bool idle); /* may be NULL */
    const char
        *token_file; /* absolute, the file of the admin token; NULL: no tokens are required */
    const struct store_file *store_files; /* may be NULL */
    size_t store_file_count;
    const char *node;       /* "n1" */
    unsigned roles;         /* enum node_role; 0: all */
    const char *advertise;  /* "https://node-1.example.org:7420": how clients reach this node; NULL:
                               at the address it listens on, if that is a specific one */
    const char *public_url; /* how the outside reaches the installation, if not by `advertise` */
    const char *key_prefix; /* of idempotency keys; may be NULL */
    int64_t supervisor_interval_ms; /* 0: default, as the next two */
    int64_t grace_ms;
    int64_t drain_ms; /* how long results are waited for after SIGTERM; default 5 s */
    const struct retention *retention;
    /* Child processes that are agents of this server; NULL: none. */
    const struct helper_config *helpers[HELPERS_MAX];
    struct channel *amqp; /* to queues, see background/amqp.h; NULL: none. Its maker frees it */
    const struct alerts_settings *alerts;  /* who receives them; NULL: the log */
    const struct webhook_config *webhooks; /* URLs that may be called; NULL: none */
    const char
        *source; /* of CloudEvents, such as "/shop"; NULL: "/intact/" and an id of the store */
    int64_t give_up_ms;  /* a message that cannot be delivered for so long is dead; 0: 3 days */
    const char *version; /* "0.1.0+48f1708a0b1c", what follows the plus tells builds apart; NULL:
                            the version alone */
    struct virtual_time *virtual_time; /* NULL: time is real. The store goes by it, too */
    bool end_with_stdin;               /* the end of standard input ends the server */
    bool console;     /* the pages of the console are served, if the program has them */
    bool print_ready; /* write the address to standard output once it is ready */
};

#endif
