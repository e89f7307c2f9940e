#ifndef AGENTS_HTTP_HTTP_CONFIG_H
#define AGENTS_HTTP_HTTP_CONFIG_H

/*
 * The configuration of the HTTP agent: its services, how they are reached, and what is allowed.
 * docs/http-agent.md is the reference. Read once; only the secrets change later (http_secrets.h).
 */

#include "agents/http/form.h"
#include "base/arena.h"
#include "base/err.h"
#include "config/secret.h"
#include "definition/expression/expression.h"
#include "net/transfer.h"

enum {
    PLACES_DEFAULT = 100,
    PLACES_MAX = 1000,
    CONNECTIONS_DEFAULT = 20,
    CONNECTIONS_MAX = 1000,
    ANSWER_MAX_DEFAULT = 512 << 10, /* bytes: the limit of an output */
    ANSWER_MAX_MAX = 64 << 20,
    REDIRECTS_MAX = 10,
    SERVICES_MAX = 1000,
};

/* A secret, by the place of its value. */
struct secret {
    struct secret *next;
    struct slice name;
    struct secret_place place;
};

/* A name, and a value in which ${ secret.NAME } is replaced. */
struct setting {
    struct setting *next;
    struct slice name, value;
};

struct retry_times {
    uint32_t attempts, factor_milli;
    int64_t wait_ms, max_wait_ms;
};

/* A request in the configuration, for steps that contain no HTTP. */
struct action_config {
    struct action_config *next;
    struct slice name;
    struct template *form; /* evaluates to the input of form.h */
};

struct service_config {
    struct service_config *next;
    struct slice name;   /* of the agent */
    struct slice url;    /* without a trailing '/' */
    struct slice origin; /* of the url: "https://api.example.org:8443" */
    struct setting *headers, *query;
    struct transfer_config net;
    uint32_t places, connections, redirects;
    int64_t timeout_ms; /* 0: up to the attempt's complete-by */
    struct retry_times retry;
    struct statuses lists[STATUS_LISTS];
    struct action_config *actions;
};

struct http_config {
    struct arena arena;
    struct secret *secrets;
    struct service_config *services; /* in the order of the text */
    size_t service_count;
};

/* ERR_PARSE or ERR_INVALID, with all mistakes; otherwise *ret belongs to the caller. Reads no other
 * file. */
enum err http_config_parse(struct slice text, enum source_format format, struct http_config **ret,
                           struct mistakes *m) MUST_USE;
void http_config_free(struct http_config *c); /* NULL is allowed */

/* Iterates over the references to secrets in a value: for (size_t at = 0; setting_next(v, &at,
 * &plain, &name);). `plain` is the text before the reference; after the last one, name is NONE.
 * False: at the end. */
bool setting_next(struct slice value, size_t *at, struct slice *ret_plain, struct slice *ret_name);

#endif
