/* A compromised helper must find no secret of the server or of the other helper in its
 * environment. */

#include "cli/verbs/serve_kept.h"

#include <stdlib.h>

#include "agents/http/http_config.h"
#include "amqp/amqp_config.h"
#include "base/base.h"

static void add(const char ***list, size_t *count, const char *name)
{
    const char **longer = realloc(*list, (*count + 2) * sizeof *longer);

    ASSERT(longer);
    if (name)
        longer[(*count)++] = name;
    longer[*count] = NULL;
    *list = longer;
}

const char **serve_kept_of_http(const struct http_config *c)
{
    const char **list = NULL;
    size_t count = 0;

    add(&list, &count, NULL);
    for (const struct secret *s = c ? c->secrets : NULL; s; s = s->next)
        add(&list, &count, s->place.env);
    return list;
}

const char **serve_kept_of_amqp(const struct amqp_config *c)
{
    const char **list = NULL;
    size_t count = 0;

    add(&list, &count, NULL);
    for (const struct broker_config *b = c ? c->brokers : NULL; b; b = b->next)
        add(&list, &count, b->password.env);
    return list;
}
