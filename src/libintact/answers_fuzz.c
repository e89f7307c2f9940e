/* Fuzz target of what servers answer: any bytes as answers to an agent's calls for work (split at
 * NULs into consecutive answers), and to a client. A broken or hostile server must not make an
 * agent do more than the requests say. Every accepted request is answered or given up, once, and
 * nothing leaks. */

#include <stdlib.h>

#include "base/clock.h"
#include "base/fuzz.h"

/* Access to their static functions. */
#include "libintact/client.c"
#include "libintact/peer.c"

#include "libintact/agent.h"
#include "libintact/places.h"

static void echo(struct intact_request *r, void *arg)
{
    unsigned *handled = arg;

    (*handled)++;
    ASSERT(intact_request_task(r));
    ASSERT(intact_request_step(r));
    ASSERT(intact_request_action(r));
    ASSERT(intact_request_idempotency_key(r));
    ASSERT(intact_request_time_left_ms(r) >= 0);
    if (intact_request_direction(r) == INTACT_UNDO) {
        ASSERT(intact_request_forward(r));
        ASSERT(intact_request_forward_key(r));
    }
    if (*handled % 3 == 0)
        intact_answer_error(r, "no", r->task, INTACT_PERMANENT);
    else
        intact_answer(r, intact_request_input(r));
}

static void be_silent(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    ASSERT(line[0]);
}

/* The same bytes as a list of nodes: the agent finds only addresses, and asks each once who it
 * is. */
static void lists_nodes(struct intact_agent *a, struct slice text)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct json *answer = NULL;

    if (json_parse(&arena, text, &answer, NULL) != ERR_OK)
        answer = NULL;
    for (int i = 0; i < 2; i++) { /* the second pass finds the peers of the first */
        nodes_answered(a->peers[0], answer);
        nodes_tick(a, clock_boot_ms());
        a->peers[0]->retry_at = 0; /* the previous answer delayed the next call */
        places_share(a, clock_boot_ms());
        for (size_t p = 1; p < a->peer_count; p++) {
            ASSERT(strncasecmp(a->peers[p]->server, "http", 4) == 0);
            ASSERT(!a->peers[p]->used);
            ASSERT(a->peers[p]->ask_wanted);
        }
        ASSERT(a->peers[0]->used);
        ASSERT(a->peers[0]->allowed == 4);
        for (size_t p = 1; i == 1 && p < a->peer_count; p++)
            nodes_answered(a->peers[p], answer);
    }
    ASSERT(a->peer_count <= NODES_MAX);
    ASSERT(a->nodes.count <= NODES_MAX);
}

/* What peer_answered() does with received bytes. */
static void answered(struct peer *p, struct slice text)
{
    struct call *c = &p->main;
    struct delivery *d = c->answer;
    struct json *answer = NULL;

    buf_slice(&d->text, text);
    call_end(c, p->agent->reactor.multi);
    if (json_parse(&d->arena, buf_view(&d->text), &answer, NULL) != ERR_OK)
        fail_call(p, c, 200, "the answer is not JSON");
    else
        read_answer(p, c, answer);
    c->answer = NULL;
    delivery_unuse(d);
}

static void check_agent(const struct intact_agent *a, const struct peer *p)
{
    struct intact_request *r = NULL;
    size_t ready = 0;

    ASSERT(p->working == 0); /* inline handlers */
    for (const struct link *l = p->ready.next; l != &p->ready; l = l->next)
        ready++;
    ASSERT(ready == a->held.len);
    for (size_t i = 0; (r = map_next(&a->held, &i));) {
        CLEANUP(arena_fini) struct arena arena = {0};
        struct json *j = NULL;
        enum err err = json_parse(&arena, buf_view(&r->result), &j, NULL);
        ASSERT(err == ERR_OK);
        ASSERT(!r->call);
    }
}

static void as_server_of_agent(struct fuzz f)
{
    unsigned handled = 0;
    struct intact_agent *a = intact_agent_new("payment");
    struct fuzz whole = f;

    intact_agent_set_server(a, "http://127.0.0.1:1");
    intact_agent_on(a, "pay", INTACT_FORWARD, echo, &handled);
    intact_agent_on(a, "pay", INTACT_UNDO, echo, &handled);
    intact_agent_set_instance(a, "i");
    intact_agent_set_concurrency(a, 4);
    intact_agent_set_inline(a, true);
    intact_agent_set_log(a, be_silent, NULL);
    a->reactor.multi = curl_multi_init();
    bool ok = nodes_open(a);
    ASSERT(ok);
    struct peer *p = a->peers[0];
    while (f.left > 0) {
        struct call_form form = {.max = 4,
                                 .wait_ms = 30000,
                                 .holding = true,
                                 .result_max = SIZE_MAX};
        ok = call_start(&p->main, a, &form, &p->ready);
        ASSERT(ok);
        answered(p, fuzz_until(&f, 0));
        check_agent(a, p);
    }
    lists_nodes(a, fuzz_until(&whole, 0));
    LIST_FOREACH (l, after, &p->ready) {
        link_remove(l);
        agent_release(a, CONTAINER_OF(l, struct intact_request, link), SLICE_NONE);
    }
    ASSERT(a->held.len == 0);
    map_fini(&a->held);
    nodes_close(a);
    curl_multi_cleanup(a->reactor.multi);
    intact_agent_free(a);
}

static void as_server_of_client(struct slice body)
{
    struct intact_client c = {.last = {.status = 422}};

    c.shown = &c.last;
    buf_slice(&c.last.body, body);
    enum intact_status status = reply_conclude(&c.last, "http://127.0.0.1:1", CURLE_OK);
    ASSERT(status == INTACT_REFUSED);
    ASSERT(intact_client_error(&c)[0]);
    status = ended(&c);
    ASSERT(status == INTACT_OK || status == INTACT_TIMEOUT);
    reply_fini(&c.last);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    bool ok = wire_init();

    ASSERT(ok);
    as_server_of_agent((struct fuzz){bytes, len});
    as_server_of_client((struct slice){(const char *)bytes, len});
    return 0;
}
