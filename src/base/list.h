#ifndef BASE_LIST_H
#define BASE_LIST_H

/*
 * An intrusive list: the link is part of the element, so insertion cannot fail. The head is a link
 * too; a link that is in no list points to itself, or is zero.
 */

#include "base/base.h"

struct link {
    struct link *prev, *next;
};

static inline void list_init(struct link *l)
{
    l->prev = l->next = l;
}

static inline bool list_empty(const struct link *head)
{
    return head->next == head;
}

static inline bool link_is_in(const struct link *l)
{
    return l->next && l->next != l;
}

static inline void list_push(struct link *head, struct link *l) /* at the end */
{
    ASSERT(!link_is_in(l));
    l->prev = head->prev;
    l->next = head;
    head->prev->next = l;
    head->prev = l;
}

static inline void list_push_front(struct link *head, struct link *l)
{
    list_push(head->next, l);
}

static inline void link_remove(struct link *l) /* harmless if it is in no list */
{
    if (!link_is_in(l))
        return;
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}

static inline struct link *list_first(struct link *head) /* NULL if empty */
{
    return list_empty(head) ? NULL : head->next; /* NOLINT: removed elements are not freed */
}

/* The number of elements, or `max` if there are more. */
static inline size_t list_count(const struct link *head, size_t max)
{
    size_t n = 0;

    for (const struct link *l = head->next; l != head && n < max; l = l->next)
        n++;
    return n;
}

/* Removes and returns the first one; NULL if there is none. */
static inline struct link *list_pop(struct link *head)
{
    struct link *l = list_first(head);

    if (!l)
        return NULL;
    head->next = l->next;
    l->next->prev = head;
    list_init(l);
    return l;
}

/* Appends all of `from` to `to`. */
static inline void list_take_all(struct link *to, struct link *from)
{
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* The body may remove `l`. */
#define LIST_FOREACH(l, after, head) \
    for (struct link *l = (head)->next, *after = l->next; l != (head); l = after, after = l->next)

#endif
