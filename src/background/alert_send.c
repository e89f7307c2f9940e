/*
 * Sends alerts by HTTP: bodies for webhooks and for Alertmanager, and the request itself with
 * libcurl. On the thread of a sink (alert_sinks.c), which may wait here.
 */

#include "background/alert_send.h"

#include <curl/curl.h>
#include <stdio.h>

#include "alerts/alert_settings.h"
#include "alerts/alerts.h"
#include "base/map.h"
#include "json/json.h"

enum {
    TIMEOUT_MS = 10000,
    CONNECT_MS = 5000,
    STORY_MAX = 120,
    EXPIRES_TIMES = 4,
    ANSWER_MAX = 16384
};

/* ---- bodies ---- */

static void put_alerts(struct buf *b, const struct alert *const *list, size_t count)
{
    json_open(b, '{');
    json_key(b, "alerts");
    json_open(b, '[');
    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_fini) struct buf one = {0};
        alert_render(list[i], &one);
        ASSERT(one.len > 0 && one.ptr[one.len - 1] == '}');
        one.len--; /* its bracket: what it is told for comes behind */
        buf_byte(&one, ',');
        buf_fmt(&one, "\"notice\":\"%s\"}", notice_text(list[i]->kind));
        json_raw(b, buf_view(&one));
    }
    json_close(b, ']');
    json_close(b, '}');
}

static void put_event(struct buf *b, const struct alert *const *list, size_t count,
                      const char *source, int64_t now, struct slice id)
{
    CLEANUP(buf_fini) struct buf data = {0};

    json_open(b, '{');
    json_key(b, "specversion");
    json_string(b, SLICE("1.0"));
    json_key(b, "id");
    json_string(b, id);
    json_key(b, "source");
    json_string(b, slice_of(source));
    json_key(b, "type");
    json_string(b, SLICE("intact.alert"));
    json_key(b, "time");
    json_time(b, now);
    json_key(b, "datacontenttype");
    json_string(b, SLICE("application/json"));
    json_key(b, "data");
    put_alerts(&data, list, count);
    json_raw(b, buf_view(&data));
    json_close(b, '}');
}

static void put_annotations(struct buf *b, const struct alert *al)
{
    CLEANUP(buf_fini) struct buf text = {0};

    alert_sentence(al, &text);
    json_key(b, "annotations");
    json_open(b, '{');
    json_key(b, "summary");
    json_string(b, buf_view(&text));
    buf_clear(&text);
    buf_str(&text, al->story);
    for (size_t i = 0; i < al->example_count; i++)
        buf_fmt(&text, "%s%s", i ? ", " : text.len ? "; such as " : "such as ", al->examples[i]);
    json_key(b, "description");
    json_string(b, buf_view(&text));
    json_close(b, '}');
}

/* https://github.com/prometheus/alertmanager/blob/main/api/v2/openapi.yaml, postableAlert. An open
 * alert ends by itself if it is not sent again. */
static void put_postable(struct buf *b, const struct alert *al, int64_t now)
{
    json_open(b, '{');
    json_key(b, "labels");
    json_open(b, '{');
    json_key(b, "alertname");
    CLEANUP(buf_fini) struct buf name = {0};
    buf_fmt(&name, "intact_%s", condition_text(al->condition));
    json_string(b, buf_view(&name));
    for (size_t i = 0; i < al->label_count; i++) {
        json_key(b, al->labels[i].name);
        json_string(b, slice_of(al->labels[i].value));
    }
    json_close(b, '}');
    put_annotations(b, al);
    json_key(b, "startsAt");
    json_time(b, al->opened_at);
    json_key(b, "endsAt");
    json_time(b, al->resolved_at ? al->resolved_at : now + EXPIRES_TIMES * INT64_C(60000));
    json_close(b, '}');
}

void alert_body(enum sink_kind kind, const struct alert *const *list, size_t count,
                const char *source, int64_t now, struct buf *body, struct buf *id)
{
    CLEANUP(buf_fini) struct buf all = {0};

    ASSERT(count > 0);
    ASSERT(source);
    for (size_t i = 0; i < count; i++)
        buf_fmt(&all, "%s/%u ", list[i]->id, list[i]->notice);
    if (count == 1)
        buf_fmt(id, "%s/%u", list[0]->id, list[0]->notice);
    else
        buf_fmt(id, "alerts-%016" PRIx64, hash_stable(all.ptr, all.len));
    switch (kind) {
    case SINK_LOG:
        break;
    case SINK_WEBHOOK:
        put_event(body, list, count, source, now, buf_view(id));
        break;
    case SINK_COMMAND:
        put_alerts(body, list, count);
        break;
    case SINK_ALERTMANAGER:
        json_open(body, '[');
        for (size_t i = 0; i < count; i++)
            put_postable(body, list[i], now);
        json_close(body, ']');
        break;
    }
}

/* ---- Alertmanager ---- */

void alert_send_init(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT); /* fails later, with words, if it does */
}

static int is_given_up(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const struct alert_sending *s = arg;
    (void)a, (void)b, (void)c, (void)d;

    return *s->stop;
}

struct heard {
    struct buf begin;
    size_t size;
};

/* What is beyond the limit is not needed, and may have no end: 0 ends the transfer. */
static size_t take_answer(char *ptr, size_t size, size_t count, void *arg)
{
    struct heard *h = arg;

    if (h->begin.len < STORY_MAX)
        buf_add(&h->begin, ptr, size * count < STORY_MAX ? size * count : STORY_MAX);
    h->size += size * count;
    return h->size > ANSWER_MAX ? 0 : size * count;
}

static void set_options(CURL *easy, const struct alert_sending *s, const char *url,
                        struct curl_slist *lines, struct heard *answer, char *why)
{
    int64_t timeout = s->how->timeout_ms ? s->how->timeout_ms : TIMEOUT_MS;

    /* none of these can fail, but for want of memory: then the call does */
    (void)curl_easy_setopt(easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDS, s->body.ptr);
    (void)curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)s->body.len);
    (void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, lines);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "intact/" INTACT_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    (void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, is_given_up);
    (void)curl_easy_setopt(easy, CURLOPT_XFERINFODATA, s);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, answer);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, why);
}

/* "http://host:9093" and its full path are both fine. */
static void post_url(const char *url, struct buf *b)
{
    buf_str(b, url);
    while (b->len > 0 && b->ptr[b->len - 1] == '/')
        b->len--;
    if (!strstr(url, "/api/v"))
        buf_str(b, "/api/v2/alerts");
    buf_byte(b, 0);
}

static bool post(const struct alert_sending *s, char *story, size_t size)
{
    CLEANUP(buf_fini) struct buf url = {0};
    struct heard answer = {0};
    char why[CURL_ERROR_SIZE] = "";
    long status = 0;
    CURL *easy = curl_easy_init();
    struct curl_slist *lines = curl_slist_append(NULL, "Content-Type: application/json");

    ASSERT(s->how->url);
    post_url(s->how->url, &url);
    CURLcode rc = CURLE_OUT_OF_MEMORY;
    if (easy && lines) {
        set_options(easy, s, url.ptr, lines, &answer, why);
        rc = curl_easy_perform(easy);
        (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        if (answer.size > ANSWER_MAX)
            rc = CURLE_OK;
    }
    curl_slist_free_all(lines);
    curl_easy_cleanup(easy);
    bool took = rc == CURLE_OK && status >= 200 && status < 300;
    if (took)
        story[0] = 0;
    else if (rc != CURLE_OK)
        (void)snprintf(story, size, "%s", why[0] ? why : curl_easy_strerror(rc));
    else
        (void)snprintf(story, size, "it answered %ld: %.*s", status,
                       SLICE_ARG(slice_cut(buf_view(&answer.begin), STORY_MAX)));
    buf_fini(&answer.begin);
    return took;
}

bool alert_send(const struct alert_sending *s, char *story, size_t story_size)
{
    ASSERT(s->how->kind == SINK_COMMAND || s->how->kind == SINK_ALERTMANAGER);
    ASSERT(story_size > 0);
    story[0] = 0;
    return s->how->kind == SINK_COMMAND ? alert_run(s, story, story_size)
                                        : post(s, story, story_size);
}
