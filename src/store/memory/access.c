/* Tokens and the audit of the store in memory: the lists and what they require of a change.
 * Injects no faults: the operations of the interface, in stored.c, do that and then call these
 * functions. */

#include "store/memory/access.h"

#include <stdlib.h>

#include "store/memory/page.h"
#include "store/row.h"

void mem_access_fini(struct mem_access *m)
{
    for (size_t i = 0; i < m->token_count; i++)
        arena_fini(&m->tokens[i].arena);
    free(m->tokens);
    arena_fini(&m->audit_arena);
    free(m->audits);
    *m = (struct mem_access){0};
}

static struct token_row token_copy(struct arena *a, const struct token_row *t)
{
    struct token_row copy = *t;

    copy.name = arena_copy(a, t->name);
    copy.roles = arena_copy(a, t->roles);
    copy.limits = arena_copy(a, t->limits);
    copy.person = arena_copy(a, t->person);
    copy.groups = arena_copy(a, t->groups);
    return copy;
}

bool mem_token_fits(const struct mem_access *m, const struct token_row *t, bool replace)
{
    for (size_t i = 0; i < m->token_count; i++) {
        const struct token_row *row = &m->tokens[i].row;
        bool same_name = slice_eq(row->name, t->name);
        if (same_name ? !replace : memcmp(row->hash, t->hash, sizeof t->hash) == 0)
            return false;
    }
    return true;
}

bool mem_token_exists(const struct mem_access *m, struct slice name)
{
    for (size_t i = 0; i < m->token_count; i++)
        if (slice_eq(m->tokens[i].row.name, name))
            return true;
    return false;
}

bool mem_token_is(const struct mem_access *m, struct slice name,
                  const unsigned char hash[TOKEN_HASH_SIZE])
{
    for (size_t i = 0; i < m->token_count; i++)
        if (slice_eq(m->tokens[i].row.name, name))
            return memcmp(m->tokens[i].row.hash, hash, TOKEN_HASH_SIZE) == 0;
    return false;
}

bool mem_token_is_last_admin(const struct mem_access *m, struct slice name, int64_t now)
{
    bool is_admin = false;

    for (size_t i = 0; i < m->token_count; i++) {
        const struct token_row *row = &m->tokens[i].row;
        if (!row->admin)
            continue;
        if (slice_eq(row->name, name))
            is_admin = true;
        else if (row->expires_at == 0 || row->expires_at > now)
            return false;
    }
    return is_admin;
}

void mem_token_delete(struct mem_access *m, struct slice name)
{
    for (size_t i = 0; i < m->token_count; i++)
        if (slice_eq(m->tokens[i].row.name, name)) {
            struct arena a = m->tokens[i].arena;
            m->generation++;
            memmove(&m->tokens[i], &m->tokens[i + 1], (m->token_count - i - 1) * sizeof *m->tokens);
            m->token_count--;
            arena_fini(&a); /* last: the name may lie in it */
            return;
        }
}

static int token_order(const void *a, const void *b)
{
    return slice_order(((const struct mem_token *)a)->row.name,
                       ((const struct mem_token *)b)->row.name);
}

void mem_token_put(struct mem_access *m, const struct token_row *t)
{
    struct mem_token fresh = {0};

    fresh.row = token_copy(&fresh.arena, t);
    mem_token_delete(m, fresh.row.name);
    m->generation++;
    m->tokens = reallocarray(m->tokens, m->token_count + 1, sizeof *m->tokens);
    ASSERT(m->tokens);
    m->tokens[m->token_count++] = fresh;
    qsort(m->tokens, m->token_count, sizeof *m->tokens, token_order);
}

void mem_token_list(const struct mem_access *m, struct arena *a, struct token_row **ret,
                    size_t *ret_count)
{
    struct token_row *rows = m->token_count ? arena_alloc(a, m->token_count * sizeof *rows) : NULL;

    for (size_t i = 0; i < m->token_count; i++)
        rows[i] = token_copy(a, &m->tokens[i].row);
    *ret = rows;
    *ret_count = m->token_count;
}

void mem_audit_add(struct mem_access *m, const struct audit *audit)
{
    if (!audit)
        return;
    if (m->audit_count == m->audit_cap) {
        m->audit_cap = m->audit_cap ? m->audit_cap * 2 : 16;
        m->audits = reallocarray(m->audits, m->audit_cap, sizeof *m->audits);
        ASSERT(m->audits);
    }
    m->audits[m->audit_count++] = audit_copy(&m->audit_arena, audit);
}

void mem_audit_list(const struct mem_access *m, const struct audit_query *q, struct arena *a,
                    struct audit_page *ret)
{
    size_t i = m->audit_count;

    size_t room = mem_page_room(q->limit, m->audit_count);

    *ret = (struct audit_page){.entries = arena_alloc(a, room * sizeof *ret->entries),
                               .seqs = arena_alloc(a, room * sizeof *ret->seqs)};
    if (q->before_seq > 0 && (uint64_t)q->before_seq <= i)
        i = (size_t)q->before_seq - 1;
    while (i-- > 0) {
        if (q->task.ptr && !slice_eq(m->audits[i].task, q->task))
            continue;
        ret->more = ret->count == q->limit;
        if (ret->more)
            return;
        ret->seqs[ret->count] = (int64_t)i + 1;
        ret->entries[ret->count++] = audit_copy(a, &m->audits[i]);
    }
}
