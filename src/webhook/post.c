/* One HTTP POST to a webhook: its body and signature, and what the response means for each
 * delivery. See post.h. */
#include "webhook/post.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/when.h"
#include "config/secret_hide.h"

enum {
    BODY_MAX = 1 << 20, /* bytes of a batch; a larger event is sent alone */
    AFTER_MAX_MS = 3600 * 1000,
    STORY_BODY_MAX = 60,
    OWN_LINES = 5, /* of make_lines, before those of the configuration */
};

struct post *post_new(struct delivery **list, size_t count, delivery_done_fn *done, void *arg)
{
    struct post *p = calloc(1, sizeof *p);

    ASSERT(count > 0);
    ASSERT(p);
    list_init(&p->link);
    p->list = calloc(count * 2, sizeof(struct delivery *));
    ASSERT(p->list);
    p->left = p->list + count;
    memcpy(p->list, list, count * sizeof *list);
    memcpy(p->left, list, count * sizeof *list);
    p->count = p->left_count = p->size = count;
    p->done = done;
    p->arg = arg;
    return p;
}

void post_free(struct post *p)
{
    ASSERT(!link_is_in(&p->link));
    buf_fini(&p->content);
    free(p->url);
    free(p->origin);
    free(p->list);
    free(p);
}

static void end(struct delivery *d, enum delivery_end how, int64_t after_ms, const char *story)
{
    d->end = how;
    d->retry_after_ms = after_ms;
    d->story[0] = 0;
    if (story[0])
        (void)snprintf(d->story, sizeof d->story, "%.*s",
                       SLICE_ARG(slice_cut(slice_of(story), sizeof d->story - 1)));
}

void post_end_all(struct post *p, enum delivery_end how, const char *story)
{
    for (size_t i = 0; i < p->left_count; i++)
        end(p->left[i], how, 0, story);
    p->left_count = 0;
}

/* ---- requests ---- */

/* Keeps visible characters and escapes the rest: anyone may choose an id, and it goes into a
 * header. */
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

/* The same events always have the same batch id. */
static bool add_batch_id(const struct post *p, struct buf *b)
{
    CLEANUP(buf_fini) struct buf ids = {0};
    unsigned char sum[EVP_MAX_MD_SIZE];

    for (size_t i = 0; i < p->size; i++) {
        buf_slice(&ids, p->left[i]->id);
        buf_byte(&ids, '\n');
    }
    bool ok = EVP_Digest(ids.ptr, ids.len, sum, NULL, EVP_sha256(), NULL) == 1;
    buf_str(b, "batch_");
    for (size_t i = 0; i < 16 && ok; i++)
        buf_fmt(b, "%02x", sum[i]);
    return ok;
}

static void limit_size(struct post *p)
{
    size_t bytes = 0;
    size_t count = 0;

    p->size = p->size < p->left_count ? p->size : p->left_count;
    while (count < p->size && (count == 0 || bytes + delivery_size(p->left[count]) <= BODY_MAX))
        bytes += delivery_size(p->left[count++]);
    p->size = count;
}

static void add_body(const struct post *p, struct buf *b)
{
    if (p->target->batch == 1) {
        delivery_write(p->left[0], b);
        return;
    }
    for (size_t i = 0; i < p->size; i++) {
        buf_byte(b, i ? ',' : '[');
        delivery_write(p->left[i], b);
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

static struct curl_slist *make_lines(const struct post *p, struct slice id, int64_t at,
                                     struct slice signature)
{
    const struct webhook_secret *s = p->receiver->secret;
    struct curl_slist *list = NULL;
    char number[32];

    (void)snprintf(number, sizeof number, "%" PRId64, at);
    bool ok = add_field(&list, "Content-Type",
                        p->target->batch == 1 ? SLICE("application/cloudevents+json")
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

bool post_start(struct post *p, struct transfer *t, CURLM *multi)
{
    CLEANUP(buf_fini) struct buf signature = {0};
    CLEANUP(buf_fini) struct buf id = {0};
    int64_t at = clock_wall_ms() / 1000;

    ASSERT(p->left_count > 0);
    limit_size(p);
    if (p->size == 1)
        add_id(&id, p->left[0]->id);
    else if (!add_batch_id(p, &id))
        return false;
    buf_clear(&p->content);
    buf_fmt(&p->content, "%.*s.%" PRId64 ".", SLICE_ARG(buf_view(&id)), at);
    size_t begin = p->content.len;
    add_body(p, &p->content);
    if (!sign_text(p->receiver->secret->keys, buf_view(&p->content), &signature))
        return false;
    struct question q = {.method = "POST",
                         .url = p->url,
                         .body = {p->content.ptr + begin, p->content.len - begin},
                         .within_ms = p->target->timeout_ms,
                         .lines = make_lines(p, buf_view(&id), at, buf_view(&signature))};
    p->transfer = t;
    return q.lines && transfer_start(t, multi, p, &q);
}

struct transfer *post_transfer(const struct post *p)
{
    return p->transfer;
}

/* ---- responses ---- */

/* Ends the first `count` of the remaining deliveries. */
static void end_first(struct post *p, size_t count, enum delivery_end how, int64_t after_ms,
                      const char *story)
{
    for (size_t i = 0; i < count; i++)
        end(p->left[i], how, after_ms, story);
    p->left_count -= count;
    memmove(p->left, p->left + count, p->left_count * sizeof(struct delivery *));
}

/* The receiver did not accept it: later ones with the same subject must wait for it. */
static void end_one(struct post *p, enum delivery_end how, int64_t after_ms, const char *story)
{
    struct slice subject = p->left[0]->subject;
    size_t kept = 0;

    end(p->left[0], how, after_ms, story);
    for (size_t i = 1; i < p->left_count; i++)
        if (slice_eq(p->left[i]->subject, subject))
            end(p->left[i], DELIVERY_RETRY, after_ms,
                "an earlier message of the same task was not accepted");
        else
            p->left[kept++] = p->left[i];
    p->left_count = kept;
}

/* A receiver may repeat what it was sent. Of "Bearer KEY" it may repeat the key alone. The lines of
 * the request are looked at, because the secrets may have been read again since then. */
static void hide_headers(const struct transfer *t, struct buf *text)
{
    const struct curl_slist *line = t->lines;

    for (int i = 0; i < OWN_LINES && line; i++)
        line = line->next;
    for (; line; line = line->next) {
        struct slice value = slice_of(strchr(line->data, ':') + 2);
        const char *blank = memchr(value.ptr, ' ', value.len);
        secret_hide(text, value);
        if (blank)
            secret_hide(text, slice_of(blank + 1));
    }
}

static void quote(const struct transfer *t, struct slice text, struct buf *story)
{
    CLEANUP(buf_fini) struct buf told = {0};

    if (text.len == 0)
        return;
    buf_slice(&told, text);
    hide_headers(t, &told);
    buf_str(story, ": ");
    answer_quote(story, buf_view(&told), STORY_BODY_MAX);
}

static void describe_answer(const struct transfer *t, const struct http_answer *a,
                            struct buf *story)
{
    buf_fmt(story, "answered %ld", a->status);
    if (a->status >= 300 && a->status < 400) {
        buf_str(story, ", a redirect, and none is followed");
        quote(t, answer_header(a, "location"), story);
    } else {
        quote(t, a->body, story);
    }
}

/* Whether the status rejects the content, rather than reporting a problem of the receiver. */
static bool is_of_content(long status)
{
    return status == 400 || status == 413 || status == 422;
}

static void take_answer(struct post *p, const struct transfer *t, const struct http_answer *a,
                        struct buf *story)
{
    int64_t after = answer_retry_after(answer_header(a, "retry-after"), clock_wall_ms());

    after = min_i64(max_i64(after, 0), AFTER_MAX_MS);
    if (a->status >= 200 && a->status < 300) {
        end_first(p, p->size, DELIVERED, 0, "");
        return;
    }
    describe_answer(t, a, story);
    if (a->status == 410) {
        end_first(p, p->left_count, DELIVERY_REFUSED, 0, story->ptr);
    } else if (is_of_content(a->status) && p->size > 1) {
        p->size = (p->size + 1) / 2; /* halve the batch until the bad one is found */
    } else if (is_of_content(a->status)) {
        end_one(p, a->status == 413 ? DELIVERY_REFUSED : DELIVERY_RETRY, after, story->ptr);
    } else {
        end_first(p, p->left_count, DELIVERY_RETRY, after, story->ptr);
    }
}

bool post_conclude(struct post *p, struct transfer *t, CURLcode code)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    CLEANUP(buf_fini) struct buf story = {0};
    struct transfer_outcome o;

    transfer_conclude(t, code, &arena, &o, &story);
    if (o.code && t->is_body_too_large && !t->is_head_too_large) {
        /* The rest of the body is not needed. */
        buf_clear(&story);
        o.answer = (struct http_answer){0};
        (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &o.answer.status); /* or 0 */
        answer_read_head(&o.answer, buf_view(&t->head), &arena);
        o.answer.body = buf_view(&t->body);
        o.code = NULL;
    }
    if (o.code)
        end_first(p, p->left_count, o.was_sent ? DELIVERY_RETRY : DELIVERY_AWAY, 0, story.ptr);
    else
        take_answer(p, t, &o.answer, &story);
    return p->left_count == 0;
}
