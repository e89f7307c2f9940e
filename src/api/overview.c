/*
 * GET /v1/overview: what this node did in the last hour, for charts. Other nodes have rings of
 * their own (node/overview.h); what all of them have stored is counted by /v1/stats.
 */

#include "node/overview.h"
#include "api/handlers.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "json/json.h"

void overview_get(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "node", slice_of(sv->config.node));
    overview_write(sv->overview, server_turn_now(sv), &b);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}
