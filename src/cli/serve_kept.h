#ifndef CLI_SERVE_KEPT_H
#define CLI_SERVE_KEPT_H

/* Which variables of the environment the helpers of `serve` are given: those that their
 * configuration names, as {env: NAME}. */

struct amqp_config;
struct http_config;

/* Names that end with NULL, those of `c`: to be freed before it is. NULL is fine. */
const char **serve_kept_of_http(const struct http_config *c);
const char **serve_kept_of_amqp(const struct amqp_config *c);

#endif
