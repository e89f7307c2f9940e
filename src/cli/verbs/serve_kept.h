#ifndef CLI_VERBS_SERVE_KEPT_H
#define CLI_VERBS_SERVE_KEPT_H

/* The environment variables passed to the helpers of `serve`: those that their configuration names,
 * as {env: NAME}. */

struct amqp_config;
struct http_config;

/* The names, which belong to `c`, ending with NULL. Free the list before `c`. `c` may be NULL. */
const char **serve_kept_of_http(const struct http_config *c);
const char **serve_kept_of_amqp(const struct amqp_config *c);

#endif
