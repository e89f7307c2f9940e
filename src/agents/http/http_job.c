/* One request, from the handler to its answer: calls, retries, polls, redirects. Never blocks.
 * Secrets leave this file only in requests. Meaning of answers: http_answer.c. */

#include "agents/http/http_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "agents/http/http_answer.h"
#include "base/clock.h"
#include "base/when.h"
#include "libintact/wire.h"

enum {
    MARGIN_MS = 200,     /* before the deadline, for the answer to arrive */
    POLL_FIRST_MS = 500, /* between polls, unless the service says otherwise */
    POLL_MOST_MS = 10000,
    POLLS_REDIRECTS_MAX = 10,
    QUOTE_MAX = 200,
    MESSAGE_MAX = 900,
};

/* ---- the end ---- */

/* Stops the transfer and frees everything of the job. */
static void leave(struct job *j)
{
    struct service *s = j->service;

    if (j->transfer) {
        if (j->phase == JOB_CALLS)
            transfer_stop(j->transfer, s->reactor.multi);
        service_rest(s, j->transfer);
    }
    heap_remove(&s->waits, &j->wait);
    link_remove(&j->link);
    s->job_count--;
    buf_fini(&j->story);
    buf_fini(&j->place);
    arena_fini(&j->turn);
    arena_fini(&j->arena);
    free(j);
}

static void complete(struct job *j, struct slice output)
{
    intact_answer(j->request, output.ptr);
    leave(j);
}

static void fail_with(struct job *j, bool is_retryable, int64_t after_ms)
{
    CLEANUP(buf_fini) struct buf message = {0};
    unsigned flags = j->may_have_effect ? INTACT_EFFECT_UNKNOWN : INTACT_EFFECT_NONE;

    answer_quote(&message, buf_view(&j->story), MESSAGE_MAX);
    const char *text = message.len ? message.ptr : "";
    if (is_retryable && after_ms > 0)
        intact_answer_retry(j->request, j->code, text, flags, after_ms);
    else
        intact_answer_error(j->request, j->code, text,
                            flags | (is_retryable ? INTACT_RETRYABLE : INTACT_PERMANENT));
    leave(j);
}

/* "POST https://api.example.org/charges: " and the error, without secrets. */
static void set_error(struct job *j, const char *code, struct slice what)
{
    const struct form *f = &j->form;
    const char *end = j->url ? strchr(j->url, '?') : NULL;
    struct slice url = slice_of(j->url);

    if (end)
        url.len = (size_t)(end - url.ptr);
    (void)snprintf(j->code, sizeof j->code, "%s", code);
    buf_clear(&j->story);
    buf_fmt(&j->story, "%.*s ", SLICE_ARG(j->poll_url ? SLICE("GET") : f->method));
    answer_quote(&j->story, url, QUOTE_MAX);
    buf_str(&j->story, ": ");
    buf_slice(&j->story, what);
    secrets_hide(*j->service->secrets, &j->story);
}

/* ---- one call ---- */

static struct curl_slist *add_line(struct curl_slist *list, const char *name, struct slice value)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, value.len ? "%s: %.*s" : "%s;", name, SLICE_ARG(value));
    struct curl_slist *longer = curl_slist_append(list, b.ptr);
    if (!longer)
        out_of_memory(b.len);
    explicit_bzero(b.ptr, b.len); /* it may contain a secret */
    return longer;
}

static struct curl_slist *add_named(struct curl_slist *list, struct slice name, struct slice value)
{
    char text[130];

    (void)snprintf(text, sizeof text, "%.*s", SLICE_ARG(name)); /* it is shorter */
    return add_line(list, text, value);
}

/* Names of tasks and steps may contain any character. */
static struct curl_slist *add_safe(struct curl_slist *list, const char *name, const char *value)
{
    static const char digits[] = "0123456789ABCDEF";
    CLEANUP(buf_fini) struct buf b = {0};

    for (const char *p = value; *p; p++)
        if (*p > ' ' && *p < 0x7f && *p != '%') {
            buf_byte(&b, *p);
        } else {
            buf_byte(&b, '%');
            buf_byte(&b, digits[(unsigned char)*p >> 4]);
            buf_byte(&b, digits[(unsigned char)*p & 15]);
        }
    return add_line(list, name, buf_view(&b));
}

static struct curl_slist *add_own(struct curl_slist *list, const struct job *j)
{
    const struct intact_request *r = j->request;
    CLEANUP(buf_fini) struct buf at = {0};
    char attempt[16];
    bool is_undo = intact_request_direction(r) == INTACT_UNDO;

    (void)snprintf(attempt, sizeof attempt, "%u", intact_request_attempt(r));
    time_write(&at, clock_wall_ms() + intact_request_time_left_ms(r));
    list = add_safe(list, "Idempotency-Key", intact_request_idempotency_key(r));
    if (intact_request_traceparent(r))
        list = add_safe(list, "traceparent", intact_request_traceparent(r));
    list = add_safe(list, "Intact-Task", intact_request_task(r));
    list = add_safe(list, "Intact-Step", intact_request_step(r));
    list = add_line(list, "Intact-Attempt", slice_of(attempt));
    list = add_line(list, "Intact-Direction", is_undo ? SLICE("undo") : SLICE("forward"));
    list = add_line(list, "Intact-Complete-By", buf_view(&at));
    if (statuses_any(&j->form.lists[STATUS_ELSEWHERE])
        || statuses_any(&j->service->config->lists[STATUS_ELSEWHERE]))
        list = add_safe(list, "Intact-Token", intact_request_token(r));
    return list;
}

static bool is_named(const struct header *headers, struct slice name)
{
    for (const struct header *h = headers; h; h = h->next)
        if (h->name.len == name.len && strncasecmp(h->name.ptr, name.ptr, name.len) == 0)
            return true;
    return false;
}

/* A step cannot replace a configured header, which may hold secrets. */
static bool is_configured(const struct service_config *c, struct slice name)
{
    for (const struct setting *s = c->headers; s; s = s->next)
        if (s->name.len == name.len && strncasecmp(s->name.ptr, name.ptr, name.len) == 0)
            return true;
    return false;
}

static struct curl_slist *lines_of(const struct job *j)
{
    const struct service_config *c = j->service->config;
    /* Otherwise libcurl waits a second for permission before a long body. */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    bool has_body = j->form.body.ptr && !j->poll_url;

    for (const struct setting *s = c->headers; s; s = s->next) {
        CLEANUP(buf_fini) struct buf value = {0};
        secrets_fill(*j->service->secrets, s->value, &value);
        list = add_named(list, s->name, buf_view(&value));
        if (value.len > 0)
            explicit_bzero(value.ptr, value.len);
    }
    for (const struct header *h = j->poll_url ? NULL : j->form.headers; h; h = h->next)
        if (!is_configured(c, h->name))
            list = add_named(list, h->name, h->value);
    if (!is_named(j->form.headers, SLICE("accept")) && !is_configured(c, SLICE("accept")))
        list = add_line(list, "Accept", SLICE("application/json, */*;q=0.5"));
    if (!is_configured(c, SLICE("content-type"))) {
        if (!has_body)
            list = curl_slist_append(list, "Content-Type:");
        else if (!j->form.has_type)
            list = add_line(list, "Content-Type", SLICE("application/json"));
    }
    return add_own(list, j);
}

static void add_settings(const struct job *j, struct buf *b)
{
    for (const struct setting *s = j->service->config->query; s; s = s->next) {
        CLEANUP(buf_fini) struct buf value = {0};
        secrets_fill(*j->service->secrets, s->value, &value);
        buf_byte(b, strchr(b->ptr, '?') ? '&' : '?');
        form_escape(b, s->name);
        buf_byte(b, '=');
        form_escape(b, buf_view(&value));
        if (value.len > 0)
            explicit_bzero(value.ptr, value.len);
    }
}

static const char *url_of(struct job *j, struct slice base)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_slice(&b, base);
    if (!j->poll_url) {
        buf_slice(&b, j->form.path);
        if (j->form.query.len > 0)
            buf_fmt(&b, "?%.*s", SLICE_ARG(j->form.query));
    }
    add_settings(j, &b);
    return arena_copy(&j->turn, buf_view(&b)).ptr;
}

static void call(struct job *j)
{
    const struct service_config *c = j->service->config;
    int64_t left = intact_request_time_left_ms(j->request);
    char method[16];

    (void)snprintf(method, sizeof method, "%.*s", SLICE_ARG(j->form.method));
    arena_fini(&j->turn);
    j->turn = (struct arena){0};
    j->url = url_of(j, j->poll_url ? slice_of(j->poll_url) : c->url);
    struct question q = {.method = j->poll_url ? "GET" : method,
                         .url = j->url,
                         .body = j->poll_url ? SLICE_NONE : j->form.body,
                         .within_ms = max_i64(left - min_i64(MARGIN_MS, left / 10), 1)};
    if (c->timeout_ms > 0)
        q.within_ms = min_i64(q.within_ms, c->timeout_ms);
    j->tries++;
    (void)intact_request_try(j->request);
    j->transfer = service_transfer(j->service);
    if (j->transfer)
        q.lines = lines_of(j);
    j->phase = JOB_CALLS;
    if (j->transfer && transfer_start(j->transfer, j->service->reactor.multi, j, &q))
        return;
    j->phase = JOB_WAITS;
    set_error(j, "unreachable", SLICE("there is no memory left for a call"));
    fail_with(j, true, 0);
}

/* ---- waiting ---- */

static void wait_for(struct job *j, int64_t ms)
{
    j->phase = JOB_WAITS;
    heap_push(&j->service->waits, &j->wait, clock_boot_ms() + ms);
}

/* Exponential, minus a random part of up to half, so that requests that failed together are not
 * retried together. */
static int64_t backoff(struct job *j)
{
    const struct retry_times *t = &j->service->config->retry;
    int64_t ms = t->wait_ms;

    for (uint32_t i = 1; i < j->failures && ms < t->max_wait_ms; i++)
        ms = ms * t->factor_milli / 1000;
    ms = min_i64(ms, t->max_wait_ms);
    return ms - prng_below(&j->service->prng, (uint32_t)min_i64(ms / 2 + 1, UINT32_MAX));
}

/* Is there time for a wait of `ms` and a call after it? */
static bool has_time(const struct job *j, int64_t ms)
{
    return ms + 2 * MARGIN_MS < intact_request_time_left_ms(j->request);
}

/* Retries if that may help and there is time; otherwise leaves the retry to the server. */
static void fail_or_wait(struct job *j, bool may_try_again)
{
    j->failures++;
    int64_t ms = max_i64(backoff(j), j->after_ms);
    bool is_enough = j->failures >= j->service->config->retry.attempts;

    if (may_try_again && !is_enough && !j->service->is_stopping && has_time(j, ms)) {
        wait_for(j, ms);
        return;
    }
    fail_with(j, may_try_again, j->after_ms);
}

/* ---- answers ---- */

static bool is_of_origin(const struct job *j, const char *url)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CURLU *u = curl_url();
    char *scheme = NULL;
    char *host = NULL;
    char *port = NULL;

    if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK
        && curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK
        && curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK
        && curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK)
        buf_fmt(&b, "%s://%s:%s", scheme, host, port);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(u);
    return slice_eq(buf_view(&b), j->service->config->origin);
}

/* The URL that Location names, relative to the call; NULL: invalid, or on another server, which
 * must not get our secrets. */
static const char *place_of(struct job *j, struct slice location)
{
    CURLU *u = curl_url();
    char *text = NULL;
    const char *place = NULL;
    struct slice to = arena_copy(&j->turn, location);
    const char *end = strchr(j->url, '?'); /* the query may contain a secret */
    struct slice from =
        arena_copy(&j->turn, (struct slice){j->url, end ? (size_t)(end - j->url) : strlen(j->url)});

    if (u && to.len > 0 && curl_url_set(u, CURLUPART_URL, from.ptr, 0) == CURLUE_OK
        && curl_url_set(u, CURLUPART_URL, to.ptr, 0) == CURLUE_OK
        && curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK
        && curl_url_get(u, CURLUPART_URL, &text, 0) == CURLUE_OK)
        place = arena_copy(&j->turn, slice_of(text)).ptr;
    curl_free(text);
    curl_url_cleanup(u);
    return place && strpbrk(place, "\r\n @") == NULL && is_of_origin(j, place) ? place : NULL;
}

static void refuse_place(struct job *j, const struct http_answer *a, const char *code,
                         uint32_t most)
{
    CLEANUP(buf_fini) struct buf what = {0};

    buf_fmt(&what, "answered %ld and sends us to ", a->status);
    answer_quote(&what, answer_header(a, "location"), QUOTE_MAX);
    buf_str(&what, most == 0              ? ", which the configuration does not allow (redirects)"
                   : j->redirects >= most ? ", too often"
                                          : ", which is another server or no address");
    set_error(j, code, buf_view(&what));
    fail_or_wait(j, true);
}

static void ask_at(struct job *j, const char *place)
{
    buf_clear(&j->place);
    buf_str(&j->place, place);
    j->poll_url = j->place.ptr;
}

/* The service is still working: polls as it requests, as long as there is time. */
static void ask_again(struct job *j, const struct http_answer *a)
{
    CLEANUP(buf_fini) struct buf what = {0};
    struct slice location = answer_header(a, "location");
    char message[80];
    char code[16];

    j->may_have_effect = j->may_have_effect || a->status != 425;
    if (a->status == 202 && location.ptr) {
        const char *place = place_of(j, location);
        if (!place) {
            refuse_place(j, a, "bad_answer", UINT32_MAX);
            return;
        }
        ask_at(j, place);
    }
    j->asked++;
    j->failures = 0;
    int64_t ms = POLL_FIRST_MS;
    for (uint32_t i = 1; i < j->asked && ms < POLL_MOST_MS; i++)
        ms += ms / 2;
    ms = j->after_ms > 0 ? j->after_ms : min_i64(ms, POLL_MOST_MS);
    buf_fmt(&what, "answered %ld, still working after it was asked %u times", a->status, j->asked);
    (void)snprintf(code, sizeof code, "http_%ld", a->status);
    set_error(j, code, buf_view(&what));
    if (j->service->is_stopping || !has_time(j, ms)) {
        fail_with(j, true, j->after_ms);
        return;
    }
    (void)snprintf(message, sizeof message, "still working, asked %u times", j->asked);
    (void)intact_heartbeat(j->request, NULL, message); /* nothing is lost if it fails */
    wait_for(j, ms);
}

/* Follows a redirect if the configuration allows it. Only 307 and 308 repeat the request; otherwise
 * its outcome is read with GET. */
static void redirect(struct job *j, const struct http_answer *a)
{
    bool is_of_poll = j->poll_url != NULL;
    uint32_t most = is_of_poll ? POLLS_REDIRECTS_MAX : j->service->config->redirects;
    struct slice location = answer_header(a, "location");
    const char *place = NULL;

    if (location.ptr && j->redirects < most)
        place = place_of(j, location);
    if (!place) {
        refuse_place(j, a, "redirect", most);
        return;
    }
    j->redirects++;
    /* 303 asks for a GET there, 307 and 308 for the same request there */
    bool is_same = a->status == 307 || a->status == 308;
    if (!is_of_poll && is_same && !slice_is(j->form.method, "GET")
        && !slice_is(j->form.method, "HEAD")) {
        const char *path = strstr(place, "://");
        path = path ? strchr(path + 3, '/') : NULL;
        if (!path
            || strncmp(place, j->service->config->url.ptr, j->service->config->url.len) != 0) {
            refuse_place(j, a, "redirect", most);
            return;
        }
        j->form.path = arena_copy(&j->arena, slice_of(place + j->service->config->url.len));
        j->form.query = SLICE("");
    } else {
        ask_at(j, place);
    }
    wait_for(j, 0);
}

static void take_output(struct job *j, const struct http_answer *a)
{
    struct error e = {0};
    struct slice output = SLICE_NONE;

    if (answer_output(a, j->output, &j->turn, &output, &e) == ERR_OK) {
        complete(j, output);
        return;
    }
    CLEANUP(buf_fini) struct buf what = {0};
    buf_fmt(&what, "answered %ld, but %s", a->status, e.text);
    set_error(j, "bad_answer", buf_view(&what));
    j->may_have_effect = true;
    fail_or_wait(j, true);
}

static void set_status_error(struct job *j, const struct http_answer *a)
{
    CLEANUP(buf_fini) struct buf what = {0};
    char code[16];

    buf_fmt(&what, "answered %ld", a->status);
    if (a->body.len > 0) {
        buf_str(&what, ": ");
        answer_quote(&what, a->body, QUOTE_MAX);
    }
    (void)snprintf(code, sizeof code, "http_%ld", a->status);
    set_error(j, code, buf_view(&what));
}

static void judge(struct job *j, const struct http_answer *a)
{
    enum answer_kind kind = answer_kind(a, j->form.lists, j->service->config->lists);
    int64_t after = answer_retry_after(answer_header(a, "retry-after"), clock_wall_ms());

    j->after_ms = max_i64(after, 0);
    if (kind == ANSWER_COMPLETED && a->status == 202 && j->poll_url)
        kind = ANSWER_WORKING; /* later answers need no Location */
    if (kind == ANSWER_REDIRECT || kind == ANSWER_PERMANENT || kind == ANSWER_RETRYABLE)
        j->may_have_effect = j->may_have_effect || !answer_denies_effect(a->status);
    switch (kind) {
    case ANSWER_COMPLETED:
        take_output(j, a);
        return;
    case ANSWER_WORKING:
        ask_again(j, a);
        return;
    case ANSWER_ELSEWHERE:
        intact_answer_elsewhere(j->request);
        leave(j);
        return;
    case ANSWER_REDIRECT:
        redirect(j, a);
        return;
    case ANSWER_PERMANENT:
        set_status_error(j, a);
        fail_with(j, false, 0);
        return;
    case ANSWER_RETRYABLE:
        set_status_error(j, a);
        fail_or_wait(j, true);
        return;
    }
    UNREACHABLE();
}

void job_done(struct job *j, CURLcode code)
{
    CLEANUP(buf_fini) struct buf story = {0};
    struct service *s = j->service;
    struct transfer *t = j->transfer;
    struct transfer_outcome o;

    transfer_conclude(t, code, &j->turn, &o, &story);
    transfer_stop(t, s->reactor.multi);
    j->phase = JOB_WAITS;
    j->after_ms = 0;
    if (o.code) {
        set_error(j, o.code, buf_view(&story));
        j->may_have_effect = j->may_have_effect || o.was_sent;
        j->transfer = NULL;
        service_rest(s, t);
        fail_or_wait(j, o.may_try_again);
        return;
    }
    secrets_hide(*s->secrets, &t->body); /* a service may echo what it was sent */
    secrets_hide(*s->secrets, &t->head);
    o.answer.headers = NULL;
    answer_read_head(&o.answer, buf_view(&t->head), &j->turn);
    o.answer.body = buf_view(&t->body);
    j->transfer = NULL; /* its buffers are valid until the next use */
    judge(j, &o.answer);
    service_rest(s, t);
}

void job_go_on(struct job *j)
{
    if (intact_request_should_stop(j->request))
        job_stop_if_asked(j);
    else
        call(j);
}

/* ---- stopping ---- */

void job_give_up(struct job *j)
{
    if (j->phase == JOB_CALLS) {
        j->may_have_effect = j->may_have_effect || transfer_was_sent(j->transfer);
        set_error(j, "stopped", SLICE("the agent was stopped before an answer came"));
    }
    fail_with(j, true, j->after_ms);
}

void job_stop_if_asked(struct job *j)
{
    if (!intact_request_should_stop(j->request))
        return;
    if (intact_request_time_left_ms(j->request) == 0) {
        intact_answer_nothing(j->request); /* the server has given up the attempt */
        leave(j);
        return;
    }
    j->may_have_effect =
        j->may_have_effect || (j->phase == JOB_CALLS && transfer_was_sent(j->transfer));
    set_error(j, "stopped",
              j->may_have_effect ? SLICE("stopped by the server while the service was at it")
                                 : SLICE("stopped by the server before anything was sent"));
    fail_with(j, true, 0);
}

/* ---- start ---- */

static const struct action_config *action_of(const struct service *s, const char *name)
{
    for (const struct action_config *a = s->config->actions; a; a = a->next)
        if (slice_is(a->name, name))
            return a;
    return NULL;
}

/* The scope of the configuration's templates. */
static enum err scope_of(struct job *j, struct json **ret)
{
    const struct intact_request *r = j->request;
    CLEANUP(buf_fini) struct buf b = {0};
    struct arena *a = &j->arena;

    json_open(&b, '{');
    json_member_raw(&b, "input", slice_of(intact_request_input(r)));
    json_key(&b, "task");
    json_open(&b, '{');
    json_member_text(&b, "id", slice_of(intact_request_task(r)));
    json_close(&b, '}');
    json_member_text(&b, "step", slice_of(intact_request_step(r)));
    json_member_text(&b, "idempotency_key", slice_of(intact_request_idempotency_key(r)));
    json_member_raw(&b, "forward", slice_of(intact_request_forward(r)));
    json_close(&b, '}');
    return json_parse(a, arena_copy(a, buf_view(&b)), ret, NULL);
}

static enum err read_input(struct job *j, struct error *e)
{
    struct slice text = slice_of(intact_request_input(j->request));
    struct json *root = NULL;
    enum err err = ERR_OK;

    if (j->action) {
        err = scope_of(j, &root);
        if (err == ERR_OK)
            err = template_eval(j->action->form, root, &j->arena, &text, e);
    }
    if (err == ERR_OK)
        err = json_parse(&j->arena, text, &root, NULL);
    if (err == ERR_OK)
        err = form_read(root, &j->arena, &j->form, e);
    if (err != ERR_OK && !e->text[0])
        (void)error_set(e, err, "the input cannot be read"); /* it is an error already */
    return err;
}

static enum err prepare(struct job *j, struct error *e)
{
    struct error why = {0};

    enum err err = read_input(j, e);
    if (err != ERR_OK || !j->form.output.ptr)
        return err;
    j->output = service_expression(j->service, j->form.output, &j->arena, &why);
    if (j->output)
        return ERR_OK;
    return error_set(e, ERR_INVALID, "output: %s", why.text);
}

void job_begin(struct intact_request *r, void *arg)
{
    struct service *s = arg;
    struct job *j = calloc(1, sizeof *j);
    struct error e = {0};

    ASSERT(j);
    *j = (struct job){.service = s, .request = r, .phase = JOB_WAITS};
    list_init(&j->link);
    j->action = action_of(s, intact_request_action(r));
    list_push(&s->jobs, &j->link);
    s->job_count++;
    if (prepare(j, &e) != ERR_OK) {
        (void)snprintf(j->code, sizeof j->code, "bad_request");
        buf_fmt(&j->story, "nothing was sent: %s", e.text);
        secrets_hide(*s->secrets, &j->story);
        fail_with(j, false, 0);
        return;
    }
    intact_request_keep(r);
    call(j);
}
