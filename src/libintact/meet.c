/* Checks that an agent's servers belong to one installation, before it calls for work and
 * whenever a server answers (meet.h). On the driving thread; agent.c and peer.c are the callers.
 * client_introduce.c does this for clients. */

#include "libintact/meet.h"

#include "libintact/agent.h"

enum { MEET_MS = 1000, TELL_AGAIN = 64 };

void meet_begin(struct intact_agent *a, int64_t now)
{
    a->meet_until = 0;
    if (a->peer_count < 2 || a->installation.id[0])
        return;
    a->meet_until = now + MEET_MS;
    for (size_t i = 0; i < a->peer_count; i++)
        a->peers[i]->ask_wanted = true;
}

void meet_tick(struct intact_agent *a, int64_t now)
{
    bool all = true;

    if (a->meet_until == 0 || a->is_mixed)
        return;
    for (size_t i = 0; i < a->peer_count; i++)
        all = all && a->peers[i]->is_met;
    if (all || now >= a->meet_until)
        a->meet_until = 0;
}

int64_t meet_wake_at(const struct intact_agent *a)
{
    return a->meet_until != 0 ? a->meet_until : INT64_MAX;
}

static void tell(struct peer *p, const char *other)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct intact_agent *a = p->agent;

    a->is_mixed = a->is_mixed || a->meet_until != 0;
    if (p->is_foreign && p->failures % TELL_AGAIN != 0)
        return;
    installation_explain(&text, &a->installation, p->server, other);
    agent_log(a, LOG_ERROR, "event=%s server=%s error=\"%s\"",
              a->is_mixed ? "servers_of_two_installations" : "another_installation", p->server,
              text.ptr);
}

bool meet_answered(struct peer *p, const struct call *c, CURLcode code)
{
    struct intact_agent *a = p->agent;
    bool was_known = a->installation.id[0];
    char other[UUID_SIZE];

    p->is_met = true;
    if (code != CURLE_OK)
        return true;
    bool is_ours = installation_is_ours(&a->installation, p->server, c->easy, other);
    if (!is_ours)
        tell(p, other);
    p->is_foreign = !is_ours;
    /* Handles refer to the list by its first element, which stays. */
    if (!was_known && a->installation.id[0])
        a->headers = wire_add_header(a->headers, a->installation.line);
    return is_ours;
}
