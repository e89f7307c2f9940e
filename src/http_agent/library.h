#ifndef HTTP_AGENT_LIBRARY_H
#define HTTP_AGENT_LIBRARY_H

/* What the HTTP agent needs of the library beyond <intact/agent.h>. */

#include <intact/agent.h>

static inline void library_try(struct intact_request *r)
{
    (void)r;
}

static inline void library_elsewhere(struct intact_request *r)
{
    intact_answer_nothing(r);
}

const char *library_token(const struct intact_request *r);

#endif
