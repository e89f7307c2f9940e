/* Which servers an agent works for: its seeds, the lists of nodes that they answer, and nodes
 * that are lost or come back (nodes.h has the rules). On the driving thread. peer.c calls one
 * server; pulse.c sends heartbeats elsewhere. */

#include "libintact/nodes.h"

#include <stdlib.h>

#include "base/clock.h"
#include "libintact/agent.h"
#include "libintact/pulse.h"

enum { URL_MAX = 300 };

/* ---- peers ---- */

/* NULL: there is no room, or libcurl failed. */
static struct peer *add_peer(struct intact_agent *a, struct slice server)
{
    struct peer **more = NULL;
    struct peer *p = a->peer_count < NODES_MAX ? calloc(1, sizeof(*p)) : NULL;

    if (p)
        more = realloc(a->peers, (a->peer_count + 1) * sizeof(struct peer *));
    if (!more) {
        free(p);
        return NULL;
    }
    a->peers = more;
    if (!peer_init(p, a, server)) {
        peer_fini(p);
        free(p);
        return NULL;
    }
    p->ask_wanted = a->options.discovery;
    p->answered = p->used = !a->options.discovery;
    a->peers[a->peer_count++] = p;
    return p;
}

static struct slice without_slashes(struct slice s)
{
    while (s.len > 0 && s.ptr[s.len - 1] == '/')
        s.len--;
    return s;
}

static struct peer *peer_of(const struct intact_agent *a, const char *server)
{
    for (size_t i = 0; i < a->peer_count; i++)
        if (strcasecmp(a->peers[i]->server, server) == 0)
            return a->peers[i];
    return NULL;
}

static bool add_seed(struct intact_agent *a, struct slice server)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_slice(&text, without_slashes(server));
    if (text.len == 0 || peer_of(a, text.ptr))
        return true; /* an empty entry, or a duplicate */
    struct peer *p = a->peer_count < SEEDS_MAX ? add_peer(a, buf_view(&text)) : NULL;
    if (p)
        p->is_seed = true;
    return p;
}

bool nodes_open(struct intact_agent *a)
{
    const char *s = wire_server(a->options.server);

    a->nodes = (struct nodes){.refresh_at = INT64_MAX};
    for (;;) {
        size_t len = strcspn(s, ",");
        if (!add_seed(a, (struct slice){s, len}))
            return false;
        if (!s[len])
            return a->peer_count > 0;
        s += len + 1;
    }
}

static void forget_list(struct nodes *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->list[i].url);
    free(n->list);
    n->list = NULL;
    n->count = 0;
}

void nodes_close(struct intact_agent *a)
{
    for (size_t i = 0; i < a->peer_count; i++) {
        peer_fini(a->peers[i]);
        free(a->peers[i]);
    }
    free(a->peers);
    a->peers = NULL;
    a->peer_count = 0;
    forget_list(&a->nodes);
}

static bool is_healthy(const struct peer *p)
{
    return p->answered && p->failures == 0;
}

struct peer *nodes_any_healthy(struct intact_agent *a)
{
    for (size_t i = 0; i < a->peer_count; i++)
        if (a->peers[i]->used && is_healthy(a->peers[i]))
            return a->peers[i];
    return NULL;
}

bool nodes_any_other(const struct peer *p)
{
    const struct intact_agent *a = p->agent;

    for (size_t i = 0; i < a->peer_count; i++)
        if (a->peers[i] != p && a->peers[i]->used && is_healthy(a->peers[i]))
            return true;
    return false;
}

/* ---- the list ---- */

static const struct node *node_of(const struct intact_agent *a, const char *name)
{
    for (size_t i = 0; i < a->nodes.count; i++)
        if (strcmp(a->nodes.list[i].name, name) == 0)
            return &a->nodes.list[i];
    return NULL;
}

/* Only scheme, host and port. */
static bool is_plain_url(const char *url)
{
    CURLU *u = curl_url();
    char *scheme = NULL;
    char *path = NULL;
    char *more = NULL;

    bool ok = u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK
              && curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK
              && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0)
              && curl_url_get(u, CURLUPART_PATH, &path, 0) == CURLUE_OK && strcmp(path, "/") == 0;
    static const CURLUPart others[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_QUERY,
                                       CURLUPART_FRAGMENT};
    for (size_t i = 0; ok && i < COUNT_OF(others); i++) {
        ok = curl_url_get(u, others[i], &more, 0) != CURLUE_OK;
        curl_free(more);
        more = NULL;
    }
    curl_free(scheme);
    curl_free(path);
    curl_url_cleanup(u);
    return ok;
}

/* NULL: none, or one that must not be called. `from`: the source. */
static char *url_of(const struct peer *from, const struct json *j)
{
    struct slice url = without_slashes(json_get_text(j, "url"));
    CLEANUP(buf_fini) struct buf text = {0};
    char *found = NULL;

    if (url.len == 0 || url.len > URL_MAX)
        return NULL;
    buf_slice(&text, url);
    bool is_tls = strncasecmp(text.ptr, "https:", 6) == 0;
    bool came_by_tls = strncasecmp(from->server, "https:", 6) == 0;
    if ((is_tls || !came_by_tls) && is_plain_url(text.ptr)) {
        found = strdup(text.ptr);
        if (!found)
            abort();
    }
    return found;
}

static bool has_scheduler(const struct json *roles)
{
    if (!roles)
        return true; /* a server without roles has all of them */
    for (const struct json *j = roles->child; j; j = j->next)
        if (j->type == JSON_STRING && slice_is(j->text, "scheduler"))
            return true;
    return false;
}

static bool read_name(struct slice name, char ret[NODE_NAME_SIZE])
{
    static const char allowed[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    if (name.len == 0 || name.len >= NODE_NAME_SIZE)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!memchr(allowed, name.ptr[i], sizeof(allowed) - 1))
            return false; /* it would appear in the log */
    memcpy(ret, name.ptr, name.len);
    ret[name.len] = 0;
    return true;
}

static bool read_node(const struct peer *from, const struct json *j, struct node *ret)
{
    struct slice boot = json_get_raw(j, "boot");
    struct slice started = json_get_text(j, "started_at");

    *ret = (struct node){0};
    if (j->type != JSON_OBJECT || !read_name(json_get_text(j, "node"), ret->name))
        return false;
    (void)snprintf(ret->mark, sizeof(ret->mark), "%.*s/%.*s", (int)min_i64((int64_t)boot.len, 30),
                   boot.ptr ? boot.ptr : "", (int)min_i64((int64_t)started.len, 40),
                   started.ptr ? started.ptr : "");
    ret->works = json_get_bool(j, "alive", true) && !json_get_bool(j, "draining", false)
                 && has_scheduler(json_get(j, "roles"));
    ret->url = url_of(from, j);
    return true;
}

/* False: it is not a list, and nothing has changed. */
static bool read_list(const struct peer *from, const struct json *answer, struct nodes *ret)
{
    const struct json *list = json_get(answer, "nodes");

    if (!list || list->type != JSON_ARRAY || !list->child)
        return false;
    ret->list = calloc(NODES_MAX, sizeof(*ret->list));
    if (!ret->list)
        abort();
    for (const struct json *j = list->child; j && ret->count < NODES_MAX; j = j->next)
        ret->count += read_node(from, j, &ret->list[ret->count]);
    /* The list is kept, perhaps by many agents. */
    struct node *shorter = realloc(ret->list, (ret->count + 1) * sizeof(*ret->list));
    if (shorter)
        ret->list = shorter;
    return true;
}

/* ---- which peers are used ---- */

static bool stands_for(const struct peer *seed, const char *name)
{
    return seed->is_seed && seed->answered && !seed->is_gate && strcmp(seed->self, name) == 0;
}

/* The seed through which that node is called. If it is often unreachable, another way is sought. */
static const struct peer *seed_of(const struct intact_agent *a, const char *name)
{
    for (size_t i = 0; i < a->peer_count; i++)
        if (stands_for(a->peers[i], name))
            return a->peers[i];
    return NULL;
}

static bool is_wanted(const struct intact_agent *a, const struct peer *p)
{
    const struct node *n = NULL;

    if (!p->answered)
        return false;
    if (!p->is_seed) {
        n = node_of(a, p->name);
        return p->confirmed && p->is_listed && n && n->works && !seed_of(a, p->name);
    }
    if (p->is_gate)
        return false;
    if (!p->self[0])
        return true;
    n = node_of(a, p->self);
    return (!n || n->works) && seed_of(a, p->self) == p;
}

static void set_used(struct peer *p, bool used)
{
    if (p->used == used)
        return;
    p->used = used;
    if (!used && p->answered)
        peer_leave(p);
}

/* If no node qualifies, uses what there is rather than nothing. */
static void judge(struct intact_agent *a)
{
    size_t wanted = 0;
    size_t gates = 0;

    if (!a->options.discovery)
        return;
    for (size_t i = 0; i < a->peer_count; i++) {
        wanted += is_wanted(a, a->peers[i]);
        gates += a->peers[i]->is_gate && a->peers[i]->answered;
    }
    for (size_t i = 0; i < a->peer_count; i++) {
        struct peer *p = a->peers[i];
        bool used = is_wanted(a, p);
        if (wanted == 0 && p->answered)
            used = gates > 0 ? p->is_gate : p->is_seed || p->confirmed;
        set_used(p, used);
    }
}

/* Creates peers for the nodes of a new list that have an address of their own. */
static void look_up(struct intact_agent *a)
{
    for (size_t i = 0; i < a->peer_count; i++)
        a->peers[i]->is_listed = false;
    for (size_t i = 0; i < a->nodes.count; i++) {
        const struct node *n = &a->nodes.list[i];
        struct peer *p = n->url ? peer_of(a, n->url) : NULL;
        if (!n->url || !n->works || (p && p->is_seed) || (p && p->is_listed) || seed_of(a, n->name))
            continue; /* of two nodes with the same address, one is wrong */
        if (!p) {
            p = add_peer(a, slice_of(n->url));
            if (!p)
                continue;
            agent_log(a, LOG_INFO, "event=node_found node=%s server=%s", n->name, p->server);
        }
        p->confirmed = p->confirmed && strcmp(p->name, n->name) == 0;
        p->is_listed = true;
        memcpy(p->name, n->name, sizeof(p->name));
        if (!p->answered || !p->confirmed)
            p->ask_wanted = true;
    }
}

static void forget_old(struct intact_agent *a)
{
    size_t kept = 0;

    for (size_t i = 0; i < a->peer_count; i++) {
        struct peer *p = a->peers[i];
        if (!p->is_seed && !p->is_listed && peer_is_over(p)) {
            agent_log(a, LOG_INFO, "event=node_left node=%s server=%s", p->name, p->server);
            pulse_forget(a, p);
            peer_fini(p);
            free(p);
        } else {
            a->peers[kept++] = p;
        }
    }
    a->peer_count = kept;
}

/* ---- answers ---- */

static bool works(const struct intact_agent *a, const char *name)
{
    const struct node *n = node_of(a, name);

    return n && n->works;
}

static void notice_self(struct peer *p, const char *self)
{
    if (!self[0])
        return;
    if (p->self[0] && strcmp(p->self, self) != 0 && works(p->agent, p->self)) {
        p->is_gate = true;
        memcpy(p->other, p->self, NODE_NAME_SIZE);
    }
    memcpy(p->self, self, NODE_NAME_SIZE);
}

/* A node may have been renamed instead: then the old name disappears when its lease expires. */
static void notice_gates(struct intact_agent *a)
{
    for (size_t i = 0; i < a->peer_count; i++)
        a->peers[i]->is_gate = a->peers[i]->is_gate && works(a, a->peers[i]->other);
}

/* Whether it is the listed node, in the same run of it. */
static bool confirm(struct peer *p, const char *self, const struct nodes *own)
{
    const struct node *listed = node_of(p->agent, p->name);
    bool same = self[0] ? strcmp(p->name, self) == 0 : p->confirmed && own->count == 0;

    for (size_t i = 0; same && !p->confirmed && i < own->count; i++)
        if (strcmp(own->list[i].name, self) == 0)
            same = listed && strcmp(listed->mark, own->list[i].mark) == 0;
    if (same) {
        p->confirmed = true;
        p->told_of = false;
        return true;
    }
    if (!p->told_of)
        agent_log(p->agent, LOG_WARN,
                  "event=node_ignored node=%s server=%s error=\"%s%s answers at that address\"",
                  p->name, p->server,
                  self[0] ? "another node, or start of it, " : "an unknown node", self);
    p->told_of = true;
    p->confirmed = p->answered = false;
    peer_put_off(p);
    return false;
}

static void schedule(struct intact_agent *a, int64_t now)
{
    int64_t ms = peer_timing.refresh_ms;

    a->nodes.refresh_at = now + ms + prng_below(&a->prng, (uint32_t)(ms / 8) + 1);
    a->nodes.refreshed_at = now;
}

void nodes_answered(struct peer *p, const struct json *answer)
{
    struct intact_agent *a = p->agent;
    struct nodes fresh = {0};
    char self[NODE_NAME_SIZE] = "";
    int64_t now = clock_boot_ms();

    p->answered = true;
    if (!a->options.discovery) { /* it was asked only for its installation */
        p->used = true;
        return;
    }
    if (!read_name(json_get_text(answer, "self"), self))
        self[0] = 0;
    bool is_list = read_list(p, answer, &fresh);
    bool trusted = p->is_seed || confirm(p, self, &fresh);
    if (is_list && trusted) {
        forget_list(&a->nodes);
        a->nodes.list = fresh.list;
        a->nodes.count = fresh.count;
    } else {
        forget_list(&fresh);
    }
    if (p->is_seed)
        notice_self(p, self);
    if (is_list && trusted) {
        notice_gates(a);
        if (a->nodes.refresh_at == INT64_MAX || p->is_seed || p->used)
            schedule(a, now);
        look_up(a);
    }
    if (a->nodes.refresh_at == INT64_MAX)
        schedule(a, now);
    judge(a);
}

void nodes_left(struct peer *p)
{
    p->answered = p->confirmed = p->farewell = false;
    set_used(p, false);
    judge(p->agent);
    peer_put_off(p);
}

void nodes_lost(struct peer *p, bool unreachable)
{
    struct intact_agent *a = p->agent;
    int64_t soon = max_i64(clock_boot_ms(), a->nodes.refreshed_at + peer_timing.lost_ms);

    if (!a->options.discovery)
        return;
    if (p->used)
        a->nodes.refresh_at = min_i64(a->nodes.refresh_at, soon);
    if (!unreachable)
        return;
    p->answered = p->farewell = false;
    judge(a);
    p->ask_wanted = !p->is_seed || !nodes_any_healthy(a);
}

static void ask_around(struct intact_agent *a, int64_t now)
{
    struct peer *other = NULL;

    for (size_t i = 0; i < a->peer_count; i++) {
        struct peer *p = a->peers[(a->nodes.turn + i) % a->peer_count];
        if (p->is_seed)
            p->ask_wanted = !p->ask.busy;
        else if (!other && p->used && is_healthy(p))
            other = p;
    }
    if (other)
        other->ask_wanted = !other->ask.busy;
    a->nodes.turn++;
    schedule(a, now);
}

void nodes_tick(struct intact_agent *a, int64_t now)
{
    if (!a->options.discovery || a->stopping)
        return;
    if (now >= a->nodes.refresh_at)
        ask_around(a, now);
    forget_old(a);
}

int64_t nodes_wake_at(const struct intact_agent *a)
{
    return a->stopping ? INT64_MAX : a->nodes.refresh_at;
}
