/* Before the first call of a client with several servers: asks them which installation they
 * belong to, and refuses to work for two (installation.h). client.c runs it to its end,
 * client_start.c beside other calls. meet.c does this for agents. */

#include <stdlib.h>

#include "libintact/client.h"

enum { PROBE_MS = 1000 /* a server that is silent for so long is skipped */ };

struct probe {
    const char *server;
    CURL *easy;         /* NULL: it has ended */
    char id[UUID_SIZE]; /* of its installation; "": unknown */
    struct curl_slist *headers;
    struct buf body;
    char why[CURL_ERROR_SIZE];
};

bool introduction_is_needed(const struct intact_client *c)
{
    return c->server_count > 1 && !c->introduction.is_over && !c->installation.id[0];
}

static void probe_fini(struct probe *p, CURLM *multi)
{
    if (p->easy)
        (void)curl_multi_remove_handle(multi, p->easy); /* harmless if it is not registered */
    curl_easy_cleanup(p->easy);
    p->easy = NULL;
    curl_slist_free_all(p->headers);
    p->headers = NULL;
    buf_fini(&p->body);
}

void introduction_fini(struct intact_client *c, CURLM *multi)
{
    struct introduction *n = &c->introduction;

    for (size_t i = 0; n->probes && i < c->server_count; i++)
        probe_fini(&n->probes[i], multi);
    free(n->probes);
    n->probes = NULL;
    n->open = 0;
}

static bool probe_begin(struct probe *p, const struct intact_client *c, CURLM *multi)
{
    CLEANUP(buf_fini) struct buf url = {0};

    buf_fmt(&url, "%s/healthz", p->server);
    p->easy = curl_easy_init();
    p->headers = wire_headers(NULL, NULL); /* the question needs no token */
    return p->easy && p->headers && wire_prepare(p->easy, &p->body, p->why)
           && wire_address(p->easy, url.ptr, c->ca)
           && curl_easy_setopt(p->easy, CURLOPT_HTTPHEADER, p->headers) == CURLE_OK
           && curl_easy_setopt(p->easy, CURLOPT_TIMEOUT_MS, (long)PROBE_MS) == CURLE_OK
           && curl_multi_add_handle(multi, p->easy) == CURLM_OK;
}

bool introduction_begin(struct intact_client *c, CURLM *multi)
{
    struct introduction *n = &c->introduction;

    ASSERT(!n->probes);
    buf_clear(&n->conflict);
    n->probes = calloc(c->server_count, sizeof *n->probes);
    if (!n->probes)
        return false;
    for (size_t i = 0; i < c->server_count; i++) {
        n->probes[i].server = c->all[i];
        if (!probe_begin(&n->probes[i], c, multi)) {
            introduction_fini(c, multi);
            return false;
        }
        n->open++;
    }
    return true;
}

/* All reachable servers have answered. The first in the order of the list decides. */
static void compare(struct intact_client *c)
{
    struct introduction *n = &c->introduction;

    for (size_t i = 0; i < c->server_count; i++) {
        const struct probe *p = &n->probes[i];
        if (p->id[0] && !c->installation.id[0])
            installation_learn(&c->installation, p->server, p->id);
        else if (strcmp(p->id, c->installation.id) != 0 && p->id[0] && n->conflict.len == 0)
            installation_explain(&n->conflict, &c->installation, p->server, p->id);
    }
    n->is_over = n->conflict.len == 0;
    if (n->is_over)
        return;
    if (c->confirmed)
        c->confirmed(c, c->installation.server, c->installation.id);
    installation_state(&c->installation, "any"); /* neither: the next call asks again */
}

void introduction_ended(struct intact_client *c, CURLM *multi, CURL *easy, CURLcode code)
{
    struct introduction *n = &c->introduction;
    struct probe *p = n->probes;

    while (p->easy != easy)
        p++;
    if (code != CURLE_OK || !installation_heard(easy, p->id))
        p->id[0] = 0;
    probe_fini(p, multi);
    n->open--;
    if (n->open == 0) {
        compare(c);
        introduction_fini(c, multi);
    }
}

void introduction_run(struct intact_client *c)
{
    CURLM *multi = curl_multi_init();
    struct wire_held sigpipe;
    int left = 0;

    if (c->introduction.probes) /* for started calls: this one replaces it */
        introduction_fini(c, c->reactor.multi);
    wire_hold(&sigpipe, SIGPIPE);
    if (multi && introduction_begin(c, multi))
        while (c->introduction.open > 0) {
            (void)curl_multi_perform(multi, &left); /* errors are reported for each transfer */
            for (CURLMsg *m = NULL; (m = curl_multi_info_read(multi, &left));)
                if (m->msg == CURLMSG_DONE)
                    introduction_ended(c, multi, m->easy_handle, m->data.result);
            if (c->introduction.open > 0)
                (void)curl_multi_poll(multi, NULL, 0, PROBE_MS, NULL);
        }
    (void)curl_multi_cleanup(multi);
    wire_release(&sigpipe);
}

bool client_is_foreign(struct intact_client *c, const char *server, const struct intact_reply *r,
                       CURLcode code, struct buf *story)
{
    char other[UUID_SIZE];

    if (code != CURLE_OK || installation_is_ours(&c->installation, server, r->easy, other))
        return false;
    if (story->len == 0)
        installation_explain(story, &c->installation, server, other);
    return true;
}

enum intact_status client_refuse(struct intact_reply *r, struct slice story)
{
    buf_clear(&r->error);
    buf_slice(&r->error, story);
    r->result = INTACT_REFUSED;
    return r->result;
}
