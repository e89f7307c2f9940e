#include "webhook/call.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/when.h"

enum {
    BODY_MAX = 1 << 20, /* bytes of a batch; one event alone may have more */
    AFTER_MAX_MS = 3600 * 1000,
    STORY_BODY_MAX = 60,
};

struct call *call_new(struct delivery **list, size_t count, delivery_done_fn *done, void *arg)
{
    struct call *c = calloc(1, sizeof *c);

    ASSERT(count > 0);
    ASSERT(c);
    list_init(&c->link);
    c->list = calloc(count * 2, sizeof(struct delivery *));
    ASSERT(c->list);
    c->left = c->list + count;
    memcpy(c->list, list, count * sizeof *list);
    memcpy(c->left, list, count * sizeof *list);
    c->count = c->left_count = c->size = count;
    c->done = done;
    c->arg = arg;
    return c;
}

void call_free(struct call *c)
{
    ASSERT(!link_is_in(&c->link));
    buf_fini(&c->content);
    free(c->url);
    free(c->origin);
    free(c->list);
    free(c);
}

static void end(struct delivery *d, enum delivery_end how, int64_t after_ms, const char *story)
{
    d->end = how;
    d->retry_after_ms = after_ms;
    (void)snprintf(d->story, sizeof d->story, "%.*s",
                   SLICE_ARG(slice_cut(slice_of(story), sizeof d->story - 1)));
}

void call_end_all(struct call *c, enum delivery_end how, const char *story)
{
    for (size_t i = 0; i < c->left_count; i++)
        end(c->left[i], how, 0, story);
    c->left_count = 0;
}

/* ---- what is sent ---- */

/* Visible characters stay; of an id that anybody may choose nothing else gets into a header. */
static void add_id(struct buf *b, struct slice id)
{
    for (size_t i = 0; i < id.len; i++) {
        unsigned char c = (unsigned char)id.ptr[i];
        if (c <= ' ' || c >= 0x7f || c == '%')
            buf_fmt(b, "%%%02X", c);
        else
            buf_byte(b, (char)c);
    }
}

/* The same events are the same batch, whenever they are sent. */
static bool add_batch_id(const struct call *c, struct buf *b)
{
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    EVP_MD_CTX *md = EVP_MD_CTX_new();
    bool ok = md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1;

    for (size_t i = 0; i < c->size && ok; i++)
        ok = EVP_DigestUpdate(md, c->left[i]->id.ptr, c->left[i]->id.len) == 1
             && EVP_DigestUpdate(md, "\n", 1) == 1;
    ok = ok && EVP_DigestFinal_ex(md, sum, &len) == 1;
    EVP_MD_CTX_free(md);
    buf_str(b, "batch_");
    for (size_t i = 0; i < 16 && ok; i++)
        buf_fmt(b, "%02x", sum[i]);
    return ok;
}

static void limit_size(struct call *c)
{
    size_t bytes = 0;
    size_t count = 0;

    c->size = c->size < c->left_count ? c->size : c->left_count;
    while (count < c->size && (count == 0 || bytes + c->left[count]->body.len <= BODY_MAX))
        bytes += c->left[count++]->body.len;
    c->size = count;
}

static void add_body(const struct call *c, struct buf *b)
{
    if (c->target->batch == 1) {
        buf_slice(b, c->left[0]->body);
        return;
    }
    for (size_t i = 0; i < c->size; i++) {
        buf_byte(b, i ? ',' : '[');
        buf_slice(b, c->left[i]->body);
    }
    buf_byte(b, ']');
}

static bool add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    *list = longer ? longer : *list;
    return longer != NULL;
}

static bool add_field(struct curl_slist **list, const char *name, struct slice value)
{
    CLEANUP(buf_fini) struct buf line = {0};

    buf_fmt(&line, "%s: ", name);
    buf_slice(&line, value);
    return add_line(list, line.ptr);
}

static struct curl_slist *make_lines(const struct call *c, struct slice id, int64_t at,
                                     struct slice signature)
{
    const struct webhook_secret *s = c->receiver->secret;
    struct curl_slist *list = NULL;
    char number[32];

    (void)snprintf(number, sizeof number, "%" PRId64, at);
    bool ok = add_field(&list, "Content-Type",
                        c->target->batch == 1 ? SLICE("application/cloudevents+json")
                                              : SLICE("application/cloudevents-batch+json"))
              && add_line(&list, "Expect:") && add_field(&list, "webhook-id", id)
              && add_field(&list, "webhook-timestamp", slice_of(number))
              && add_field(&list, "webhook-signature", signature);
    for (size_t i = 0; ok && s->lines[i]; i++)
        ok = add_line(&list, s->lines[i]);
    if (ok)
        return list;
    curl_slist_free_all(list);
    return NULL;
}

bool call_start(struct call *c, struct transfer *t, CURLM *multi)
{
    CLEANUP(buf_fini) struct buf signature = {0};
    CLEANUP(buf_fini) struct buf id = {0};
    int64_t at = (int64_t)time(NULL);

    ASSERT(c->left_count > 0);
    limit_size(c);
    if (c->size == 1)
        add_id(&id, c->left[0]->id);
    else if (!add_batch_id(c, &id))
        return false;
    buf_clear(&c->content);
    buf_fmt(&c->content, "%.*s.%" PRId64 ".", SLICE_ARG(buf_view(&id)), at);
    size_t begin = c->content.len;
    add_body(c, &c->content);
    if (!sign_text(c->receiver->secret->keys, buf_view(&c->content), &signature))
        return false;
    struct question q = {.method = "POST",
                         .url = c->url,
                         .body = {c->content.ptr + begin, c->content.len - begin},
                         .within_ms = c->target->timeout_ms,
                         .lines = make_lines(c, buf_view(&id), at, buf_view(&signature))};
    c->transfer = t;
    return q.lines && transfer_start(t, multi, c, &q);
}

struct transfer *call_transfer(const struct call *c)
{
    return c->transfer;
}

/* ---- what came ---- */

/* Those of them that were tried, or all. */
static void end_first(struct call *c, size_t count, enum delivery_end how, int64_t after_ms,
                      const char *story)
{
    for (size_t i = 0; i < count; i++)
        end(c->left[i], how, after_ms, story);
    c->left_count -= count;
    memmove(c->left, c->left + count, c->left_count * sizeof(struct delivery *));
}

/* One that the receiver does not take: what is behind it of the same subject has to wait for it. */
static void end_one(struct call *c, enum delivery_end how, int64_t after_ms, const char *story)
{
    struct slice subject = c->left[0]->subject;
    size_t kept = 0;

    end(c->left[0], how, after_ms, story);
    for (size_t i = 1; i < c->left_count; i++)
        if (slice_eq(c->left[i]->subject, subject))
            end(c->left[i], DELIVERY_RETRY, after_ms,
                "one before it of the same task was not taken");
        else
            c->left[kept++] = c->left[i];
    c->left_count = kept;
}

static void tell_answer(const struct answer *a, struct buf *story)
{
    struct slice where = answer_header(a, "location");

    buf_fmt(story, "answered %ld", a->status);
    if (a->status >= 300 && a->status < 400) {
        buf_str(story, ", a redirect, and none is followed");
        if (where.len > 0) {
            buf_str(story, ": ");
            answer_quote(story, where, STORY_BODY_MAX);
        }
    } else if (a->body.len > 0) {
        buf_str(story, ": ");
        answer_quote(story, a->body, STORY_BODY_MAX);
    }
}

/* Does the receiver complain of what was sent, and not of itself? */
static bool is_of_content(long status)
{
    return status == 400 || status == 413 || status == 422;
}

static void take_answer(struct call *c, const struct answer *a, struct buf *story)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail */
    int64_t after = answer_retry_after(answer_header(a, "retry-after"),
                                       (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000);
    after = min_i64(max_i64(after, 0), AFTER_MAX_MS);
    tell_answer(a, story);
    if (a->status >= 200 && a->status < 300) {
        end_first(c, c->size, DELIVERED, 0, "");
    } else if (a->status == 410) {
        end_first(c, c->left_count, DELIVERY_REFUSED, 0, story->ptr);
    } else if (is_of_content(a->status) && c->size > 1) {
        c->size = (c->size + 1) / 2; /* until it is clear which one it is */
    } else if (is_of_content(a->status)) {
        end_one(c, a->status == 413 ? DELIVERY_REFUSED : DELIVERY_RETRY, after, story->ptr);
    } else {
        end_first(c, c->left_count, DELIVERY_RETRY, after, story->ptr);
    }
}

bool call_conclude(struct call *c, struct transfer *t, CURLcode code)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    CLEANUP(buf_fini) struct buf story = {0};
    struct transfer_outcome o;

    transfer_conclude(t, code, &arena, &o, &story);
    if (o.code && t->is_body_too_large && !t->is_head_too_large) {
        /* We do not need more of it. */
        buf_clear(&story);
        o.answer = (struct answer){0};
        (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &o.answer.status); /* or 0 */
        answer_read_head(&o.answer, buf_view(&t->head), &arena);
        o.answer.body = buf_view(&t->body);
        o.code = NULL;
    }
    if (o.code)
        end_first(c, c->left_count, DELIVERY_RETRY, 0, story.ptr);
    else
        take_answer(c, &o.answer, &story);
    return c->left_count == 0;
}
