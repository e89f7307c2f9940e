#ifndef STORE_MEMORY_PAGE_H
#define STORE_MEMORY_PAGE_H

#include <stddef.h>

/* How many rows a page of a list takes at most, and one for an end. Limits are often far above what
 * there is, and zeroing room for them took most of a simulated run's time. */
static inline size_t mem_page_room(size_t limit, size_t count)
{
    return (limit < count ? limit : count) + 1;
}

#endif
