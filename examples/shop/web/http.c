/* Answers of the web server: JSON, errors, and headers that keep pages from loading or being
 * embedded elsewhere. main.c receives the requests. */

#include "shop.h"

#include <stdlib.h>
#include <string.h>

/* Pages load nothing from elsewhere, and no page of others can embed them. Ids of orders are in
 * addresses, so these are told to nobody. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
     "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
};

enum MHD_Result answer(struct request *r, unsigned status, struct MHD_Response *response,
                       const char *type)
{
    if (!response)
        return MHD_NO;
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    MHD_add_response_header(response, "Content-Type", type);
    if (strncmp(r->path, "/api/", 5) == 0)
        MHD_add_response_header(response, "Cache-Control", "no-store");
    else
        MHD_add_response_header(response, "Cache-Control", "no-cache");

    enum MHD_Result result = MHD_queue_response(r->connection, status, response);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result answer_json(struct request *r, unsigned status, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    if (!text)
        return MHD_NO;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
    if (response && status == MHD_HTTP_SERVICE_UNAVAILABLE)
        MHD_add_response_header(response, "Retry-After", "3");
    if (response && status == MHD_HTTP_METHOD_NOT_ALLOWED)
        MHD_add_response_header(response, "Allow",
                                strcmp(r->path, "/api/orders") == 0 ? "GET, HEAD, POST"
                                                                    : "GET, HEAD");
    return answer(r, status, response, "application/json");
}

enum MHD_Result answer_error(struct request *r, unsigned status, const char *field,
                             const char *text)
{
    return answer_json(r, status, json_pack("{s:s, s:s*}", "error", text, "field", field));
}

const char *request_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}
