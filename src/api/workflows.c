/*
 * /v1/workflows and /v1/validate: stores definitions, returns them, and checks them without
 * storing. Compiling is done in compiling.c.
 */

#include <stdio.h>
#include <stdlib.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/compiling.h"
#include "api/handlers.h"
#include "api/listing.h"
#include "api/room.h"
#include "background/cache.h"
#include "base/log.h"
#include "definition/definition.h"
#include "definition/family.h"
#include "definition/grammar.h"
#include "definition/registry.h"
#include "node/access.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/offload.h"
#include "store/job.h"
#include "json/json.h"

static void render_warnings(struct buf *b, const struct mistakes *warnings)
{
    json_key(b, "warnings");
    mistakes_render(b, warnings);
}

static void answer_mistakes(struct http_request *r, enum err err, const struct mistakes *m,
                            const struct mistakes *warnings)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int status = err == ERR_PARSE ? 400 : 422;

    json_open(&b, '{');
    json_key(&b, "type");
    json_string(&b, SLICE("urn:intact:problem:bad-definition"));
    json_key(&b, "title");
    json_string(&b, SLICE("The definition has mistakes"));
    json_key(&b, "status");
    json_number(&b, status);
    json_key(&b, "errors");
    mistakes_render(&b, m);
    render_warnings(&b, warnings);
    json_close(&b, '}');
    http_answer(r, status, "application/problem+json", buf_view(&b), NULL);
}

/* The definitions that the client may read. */
struct readable {
    struct registry *registry;
    const struct grant *grant;
};

static const struct definition *newest_readable(void *arg, struct slice workflow)
{
    const struct readable *of = arg;

    return grant_reads_definition(of->grant, workflow) ? registry_newest(of->registry, workflow)
                                                       : NULL;
}

static size_t readable_parents(const struct readable *of, struct arena *a,
                               const struct definition ***ret)
{
    size_t count = registry_parents(of->registry, a, ret);
    size_t kept = 0;

    for (size_t i = 0; i < count; i++)
        if (grant_reads_definition(of->grant, (*ret)[i]->workflow.name))
            (*ret)[kept++] = (*ret)[i];
    return kept;
}

/* What is stored so far may not fit to it: other definitions may follow. To a client that may not
 * read all definitions, the others are not there. */
static void warn_of_families(struct server *sv, const struct bearer *b, struct compiled *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct readable of = {&sv->workflows, grant_new(b, &a)};
    const struct family_source source = {newest_readable, &of, true};
    const struct definition **parents = NULL;
    size_t looks = FAMILY_LOOKS_MAX;

    if (c->err != ERR_OK)
        return;
    size_t count = readable_parents(&of, &a, &parents);
    family_warn(c->definition, &source, &looks, c->warnings);
    family_warn_parents(c->definition, &source, parents, count, &looks, c->warnings);
}

static void validated(struct server *sv, struct http_request *r, struct compiled *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct bearer *bearer = caller_recheck(sv, r);

    if (!bearer)
        return;
    warn_of_families(sv, bearer, c);
    if (c->err != ERR_OK) {
        answer_mistakes(r, c->err, c->mistakes, c->warnings);
        return;
    }
    json_open(&b, '{');
    json_key(&b, "errors");
    json_raw(&b, SLICE("[]"));
    render_warnings(&b, c->warnings);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

void validate_post(struct server *sv, struct http_request *r)
{
    definition_compile(sv, r, OFFLOAD_LATER, validated);
}

/* ---- PUT /v1/workflows/{name}, POST /v1/workflows ---- */

enum { OLDER_SIZE = 80 };

struct putter {
    struct exchange x;
    struct store_job job;
    struct registry_wait known; /* where others store definitions: that it is the newest of them */
    struct definition *definition;
    char actor[ACCESS_NAME_MAX + 1], address[ADDRESS_SIZE];
    struct mistakes *warnings;
    int64_t now, version;
    size_t bytes; /* of its text */
    bool is_new;
    char older[OLDER_SIZE]; /* a living node that would not understand it; "": none */
    enum err err;
    struct error error;
};

/* Names a living node that does not know the words of the definition. An older program that starts
 * after this look is refused by the number of the schema. */
static enum err find_older(struct putter *p, struct store *store)
{
    CLEANUP(arena_fini) struct arena a = {0};
    enum grammar needed = grammar_of(&p->definition->workflow);
    struct node_row *rows = NULL;
    size_t count = 0;

    if (!store->shared || needed == GRAMMAR_FIRST)
        return ERR_OK;
    enum err err = store->ops->nodes->list(store, p->now, &a, &rows, &count, &p->error);
    for (size_t i = 0; err == ERR_OK && i < count; i++)
        if (rows[i].alive && rows[i].grammar < (int64_t)needed)
            (void)snprintf(p->older, sizeof p->older, "%.*s", SLICE_ARG(rows[i].name));
    return err;
}

/* For submissions in SQL. If this fails they are checked later, and the next start stores it. */
static void describe(const struct putter *p, struct store *store)
{
    CLEANUP(buf_fini) struct buf inputs = {0};
    struct error e = {0};

    definition_write_inputs(p->definition, &inputs);
    const struct workflow_inputs w = {p->definition->workflow.name, p->version, buf_view(&inputs)};
    if (store->ops->submissions->describe(store, &w, 1, &e) != ERR_OK)
        log_line(LOG_WARN, "event=workflow_not_described workflow=%.*s reason=\"%s\"",
                 SLICE_ARG(w.name), e.text);
}

static void put_run(struct store_job *j, struct store *store)
{
    struct putter *p = CONTAINER_OF(j, struct putter, job);
    const struct audit audit = {.at = p->now,
                                .actor = slice_of(p->actor),
                                .verb = SLICE("workflow.put"),
                                .address = slice_of(p->address)};
    int tries = 0;

    p->err = find_older(p, store);
    if (p->err != ERR_OK || *p->older)
        return;
    /* Retried if it is unknown whether it was stored: then it is found as it is. Otherwise the
     * store could have a version that this process does not know of. */
    for (; tries < 2 && (tries == 0 || p->err == ERR_UNKNOWN); tries++)
        p->err = store->ops->workflow_put(store, p->definition->workflow.name, p->definition->text,
                                          p->now, &audit, &p->version, &p->is_new, &p->error);
    if (p->err == ERR_OK && (p->is_new || tries > 1))
        describe(p, store);
}

static void answer_put(struct http_request *r, const struct putter *p, struct slice name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "name");
    json_string(&b, name);
    json_key(&b, "version");
    json_number(&b, p->version);
    render_warnings(&b, p->warnings);
    json_close(&b, '}');
    answer_json(r, p->is_new ? 201 : 200, &b, NULL);
}

static void answer_older(struct http_request *r, const struct putter *p)
{
    http_problem(r, 409, "older-node",
                 "the definition has members that node %s does not support (%s); first restart "
                 "that node with the version of this one, %s",
                 p->older, grammar_words(grammar_of(&p->definition->workflow)),
                 p->x.server->config.node);
}

/* It was stored, is there already, or could not be stored. */
static void put_end(struct putter *p)
{
    struct server *sv = p->x.server;
    struct http_request *r = p->x.http;

    if (r) {
        exchange_untie(&p->x);
        if (p->err == ERR_OK && *p->older)
            answer_older(r, p);
        else if (p->err == ERR_OK)
            answer_put(r, p, p->definition->workflow.name);
        else
            answer_trouble(r, p->err, p->error.text);
    }
    bool is_new = p->err == ERR_OK && !*p->older
                  && !registry_find(&sv->workflows, p->definition->workflow.name, p->version);
    if (is_new)
        registry_add(&sv->workflows, p->definition, p->version);
    else
        definition_free_offloaded(sv, p->definition);
    sv->load.exchanges--;
    sv->load.asks_open--;
    sv->load.asks_bytes -= p->bytes;
    free(p->warnings);
    free(p);
}

static void put_done(struct store_job *j)
{
    put_end(CONTAINER_OF(j, struct putter, job));
}

static void store_definition(struct putter *p)
{
    struct server *sv = p->x.server;

    p->job = (struct store_job){.run = put_run, .done = put_done};
    changes_add(sv->changes, slice_of(p->actor), p->x.http ? p->x.http->account : NULL, &p->job);
}

/* The newest of that name has this text. */
static bool is_there(struct putter *p)
{
    const struct definition *newest =
        registry_find(&p->x.server->workflows, p->definition->workflow.name, 0);

    if (!newest || !slice_eq(newest->text, p->definition->text))
        return false;
    p->version = newest->workflow.version;
    return true;
}

static void known_is_read(struct registry_wait *w, enum err err, const char *story)
{
    struct putter *p = CONTAINER_OF(w, struct putter, known);
    (void)story; /* the store reports it as well */

    if (err == ERR_OK && is_there(p))
        put_end(p);
    else
        store_definition(p);
}

/* A definition that exists is not stored again: a client that repeats it takes no turn of real
 * changes. Another node may have stored a newer one, which is read first. */
static void put_or_not(struct putter *p)
{
    p->known.done = known_is_read;
    if (!is_there(p))
        store_definition(p);
    else if (!registry_read(&p->x.server->workflows, &p->known))
        put_end(p);
}

static void begin_put(struct server *sv, struct http_request *r, struct compiled *c)
{
    struct putter *p = calloc(1, sizeof *p);

    ASSERT(p);
    p->definition = c->definition;
    p->warnings = c->warnings;
    c->definition = NULL;
    c->warnings = NULL;
    p->now = server_now(sv);
    p->bytes = r->body.len;
    (void)snprintf(p->actor, sizeof p->actor, "%.*s", SLICE_ARG(c->caller)); /* always fits */
    caller_address_write(sv, r, p->address);
    exchange_begin(&p->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    sv->load.asks_bytes += p->bytes;
    put_or_not(p);
}

/* Definitions stay in memory, and are read again at each start. */
static bool definitions_have_room(struct server *sv, struct http_request *r,
                                  const struct definition *d)
{
    const struct definition *newest = registry_find(&sv->workflows, d->workflow.name, 0);
    size_t size = sv->workflows.size + definition_size(d);

    if ((newest && slice_eq(newest->text, d->text)) || size <= trees_max(sv))
        return true;
    http_problem(r, 413, "too-big",
                 "with this one the definitions would take %zu bytes of memory, expected at most "
                 "%zu (half of --limit memory)",
                 size, trees_max(sv));
    return false;
}

/* A name in the path must match the definition's; without one the definition has it. */
static void put_compiled(struct server *sv, struct http_request *r, struct compiled *c)
{
    bool is_named = http_segment_count(r) > 2;
    struct slice name = http_segment(r, 2);
    const struct bearer *bearer = caller_recheck(sv, r);

    if (!bearer)
        return;
    warn_of_families(sv, bearer, c);
    if (c->err != ERR_OK)
        answer_mistakes(r, c->err, c->mistakes, c->warnings);
    else if (is_named && !slice_eq(name, c->definition->workflow.name))
        http_problem(r, 422, "other-name",
                     "the definition is of workflow \"%.*s\", the path says \"%.*s\"",
                     SLICE_ARG(c->definition->workflow.name), SLICE_ARG(name));
    else if (definitions_have_room(sv, r, c->definition) && asks_have_room(sv, r, r->body.len))
        begin_put(sv, r, c);
}

void workflow_put(struct server *sv, struct http_request *r)
{
    if (asks_have_room(sv, r, r->body.len))
        definition_compile(sv, r, OFFLOAD_SOON, put_compiled);
}

/* ---- GET ---- */

static void render_definition(struct buf *b, const struct definition *d, bool text)
{
    json_open(b, '{');
    json_key(b, "name");
    json_string(b, d->workflow.name);
    json_key(b, "version");
    json_number(b, d->workflow.version);
    json_key(b, "steps");
    json_number(b, d->workflow.step_count);
    json_key(b, "format");
    json_string(b, d->is_yaml ? SLICE("yaml") : SLICE("json"));
    if (text && d->is_yaml) {
        json_key(b, "text");
        json_string(b, d->text);
    } else if (text) {
        json_key(b, "definition");
        json_raw(b, d->text);
    }
    json_close(b, '}');
}

static void answer_no_workflow(struct http_request *r, struct slice name, bool versioned)
{
    http_problem(r, 404, "no-such-workflow", "there is no workflow \"%.*s\"%s", SLICE_ARG(name),
                 versioned ? " of that version" : "");
}

static void get_now(struct server *sv, struct http_request *r)
{
    struct slice version = http_segment(r, 4);
    struct slice name = http_segment(r, 2);
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t v = 0;

    if (version.ptr && !count_of(version, INT64_MAX, &v))
        v = -1; /* no version is called so */
    const struct definition *d = registry_find(&sv->workflows, name, v);
    if (!d) {
        answer_no_workflow(r, name, v != 0);
        return;
    }
    render_definition(&b, d, true);
    answer_json(r, 200, &b, NULL);
}

void workflow_get(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice name = http_segment(r, 2);

    if (grant_reads_definition(grant_new(sv->api->bearer, &a), name))
        cache_serve(sv, r, get_now);
    else
        answer_no_workflow(r, name, http_segment(r, 4).ptr != NULL);
}

static bool may_read(const void *grant, struct slice name)
{
    return grant_reads_definition(grant, name);
}

static bool snapshot_readable(struct listing *l, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct server *sv = l->x.server;
    const struct bearer *bearer = caller_recheck(sv, r);

    if (!bearer)
        return false;
    listing_snapshot(l, &l->names, &sv->workflows.names, may_read, grant_new(bearer, &a));
    return true;
}

static bool render_listed(struct listing *l, struct slice name)
{
    const struct definition *d = registry_find(&l->x.server->workflows, name, 0);

    if (d)
        render_definition(&l->out, d, false);
    return true;
}

static void list_now(struct server *sv, struct http_request *r)
{
    static const struct listing_kind kind = {.key = "workflows",
                                             .names = snapshot_readable,
                                             .render = render_listed};

    listing_begin(sv, r, &kind, SLICE_NONE, NULL);
}

void workflows_list(struct server *sv, struct http_request *r)
{
    cache_serve(sv, r, list_now);
}
