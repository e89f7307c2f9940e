/* One HTTP call of an agent to a server: writes the body with what is held and the results, hands
 * it to libcurl, and keeps the results until the answer (call.h). peer.c decides when to call,
 * and reads the answers. On the driving thread. */

#include "libintact/call.h"

#include "base/clock.h"
#include "base/when.h"
#include "libintact/agent.h"
#include "libintact/door.h"

void call_init(struct call *c, struct peer *p, const char *url, struct curl_slist *headers)
{
    *c = (struct call){.peer = p, .url = url, .headers = headers};
    list_init(&c->results);
}

static bool prepare_handle(struct call *c, const char *ca)
{
    bool ok = wire_address(c->easy, c->url, ca);

    ok &= curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->headers) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_PRIVATE, (void *)c) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_BUFFERSIZE, (long)CALL_BUFFER_SIZE) == CURLE_OK;
    /* Detects a server whose machine died. */
    ok &= curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPIDLE, 5L) == CURLE_OK;
    ok &= curl_easy_setopt(c->easy, CURLOPT_TCP_KEEPINTVL, 5L) == CURLE_OK;
    return ok;
}

bool call_make_handle(struct call *c)
{
    if (c->easy)
        return true;
    c->easy = curl_easy_init();
    if (c->easy && prepare_handle(c, wire_ca(c->peer->agent->options.ca)))
        return true;
    call_drop_handle(c);
    return false;
}

void call_drop_handle(struct call *c)
{
    ASSERT(!c->busy);
    curl_easy_cleanup(c->easy);
    c->easy = NULL;
    buf_fini(&c->body);
}

void call_fini(struct call *c)
{
    ASSERT(!c->easy || list_empty(&c->results));
    call_drop_handle(c);
}

static void write_holding(struct buf *b, const struct intact_agent *a)
{
    struct intact_request *r;
    size_t count = 0;

    /* A request that is left out is at worst delivered again, recognized and ignored. */
    json_key(b, "holding");
    json_open(b, '[');
    for (size_t i = 0; count < CALL_LIST_MAX && (r = map_next(&a->held, &i)); count++)
        json_string(b, r->token);
    json_close(b, ']');
}

static void write_results(struct call *c, size_t result_max, struct link *ready)
{
    struct buf *b = &c->body;
    int64_t now = clock_boot_ms();

    json_key(b, "results");
    json_open(b, '[');
    LIST_FOREACH (l, after, ready) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, link);
        if (c->result_count == result_max || c->result_count == CALL_LIST_MAX
            || b->len > CALL_BODY_SOFT_MAX)
            break;
        if (r->send_at > now)
            continue;
        link_remove(l);
        list_push(&c->results, l);
        c->result_count++;
        r->call = c;
        json_raw(b, buf_view(&r->result));
    }
    json_close(b, ']');
}

static void write_body(struct call *c, const struct intact_agent *a, const struct call_form *f,
                       struct link *ready)
{
    struct buf *b = &c->body;

    buf_clear(b);
    json_open(b, '{');
    json_member_text(b, "instance", slice_of(a->options.instance));
    json_member_number(b, "max", (int64_t)f->max);
    json_key(b, "wait");
    buf_fmt(b, "\"%" PRId64 "ms\"", f->wait_ms);
    if (f->instead) {
        json_member_bool(b, "instead", true);
    }
    if (f->holding)
        write_holding(b, a);
    if (!list_empty(ready))
        write_results(c, f->result_max, ready);
    json_close(b, '}');
}

static bool leave(struct call *c, struct intact_agent *a, int64_t within_ms, bool ok)
{
    c->answer = delivery_new();
    ok = ok && wire_prepare(c->easy, &c->answer->text, c->why);
    if (ok && a->options.door > 0)
        ok = door_use(c->easy, a->options.door);
    ok = ok && curl_easy_setopt(c->easy, CURLOPT_TIMEOUT_MS, (long)within_ms) == CURLE_OK;
    c->why[0] = 0;
    c->sent_at = clock_boot_ms(); /* deadlines count from here, before the first byte can leave */
    c->busy = ok && curl_multi_add_handle(a->reactor.multi, c->easy) == CURLM_OK;
    if (!c->busy) {
        delivery_unuse(c->answer);
        c->answer = NULL;
    }
    return c->busy;
}

bool call_send(struct call *c, struct intact_agent *a, int64_t within_ms)
{
    bool ok = call_make_handle(c)
              && curl_easy_setopt(c->easy, CURLOPT_POSTFIELDS, c->body.ptr) == CURLE_OK;

    ok = ok
         && curl_easy_setopt(c->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body.len)
                == CURLE_OK;
    return leave(c, a, within_ms, ok);
}

bool call_get(struct call *c, struct intact_agent *a, int64_t within_ms, bool fresh)
{
    bool ok = call_make_handle(c)
              && curl_easy_setopt(c->easy, CURLOPT_FRESH_CONNECT, (long)fresh) == CURLE_OK;

    ok = ok && curl_easy_setopt(c->easy, CURLOPT_FORBID_REUSE, (long)fresh) == CURLE_OK;
    return leave(c, a, within_ms, ok);
}

bool call_start(struct call *c, struct intact_agent *a, const struct call_form *f,
                struct link *ready)
{
    ASSERT(!c->busy);
    ASSERT(c->result_count == 0);
    write_body(c, a, f, ready);
    c->max = f->max;
    c->called_home = false;
    bool may_be_parked = f->max > 0 && c->result_count == 0;
    if (call_send(c, a, may_be_parked ? f->wait_ms + CALL_WITHIN_MS : f->hand_in_ms))
        return true;
    call_return_results(c, ready);
    return false;
}

void call_return_results(struct call *c, struct link *ready)
{
    LIST_FOREACH (l, after, &c->results) {
        CONTAINER_OF(l, struct intact_request, link)->call = NULL;
        link_remove(l);
        list_push(ready, l);
    }
    c->result_count = 0;
}

void call_end(struct call *c, CURLM *multi)
{
    ASSERT(c->busy);
    (void)curl_multi_remove_handle(multi, c->easy); /* it is registered */
    c->busy = false;
}

bool call_heard_nothing(const struct call *c)
{
    curl_off_t body = 0;
    long head = 0;

    (void)curl_easy_getinfo(c->easy, CURLINFO_SIZE_DOWNLOAD_T, &body); /* stay 0 on failure */
    (void)curl_easy_getinfo(c->easy, CURLINFO_HEADER_SIZE, &head);
    return body == 0 && head == 0;
}
