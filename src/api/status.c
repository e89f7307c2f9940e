/* GET /healthz and GET /readyz: does the loop turn, and can the node accept work? Neither calls
 * the store, so both are answered while it hangs. Both need no token; routes.c has the table of
 * routes. */

#include "api/handlers.h"
#include "http/response.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "json/json.h"

/* It shows only that the event loop runs. */
void healthz_get(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "status", SLICE("ok"));
    if (sv->config.virtual_time)
        json_member_time(&b, "virtual_time", server_now(sv));
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void not_ready(struct http_request *r, const char *type, const char *why)
{
    CLEANUP(buf_fini) struct buf b = {0};

    http_problem_write(&b, 503, type, slice_of(why));
    http_answer(r, 503, "application/problem+json", buf_view(&b), "Retry-After: 1\r\n");
}

/* Does the store work, as far as this node knows, and will the node stay? The store is not asked:
 * the answer comes even while it hangs. */
void readyz_get(struct server *sv, struct http_request *r)
{
    char story[sizeof sv->trouble.text];

    if (sv->draining)
        not_ready(r, "draining", "the server is ending");
    else if (server_trouble(sv, story, sizeof story) != ERR_OK)
        not_ready(r, "store", story);
    else
        http_answer(r, 200, "application/json", SLICE("{\"status\":\"ready\"}"), NULL);
}
