/* Reads from the environment which cases a search explores, and prints their sizes
 * (history_cases.h). */
#include "core/history_cases.h"

#include <stdio.h>
#include <stdlib.h>

static size_t number_of(const char *variable, size_t otherwise)
{
    const char *text = getenv(variable);

    return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

struct history_cases history_cases(void)
{
    const char *much = getenv("HISTORY");

    return (struct history_cases){.full = much && strcmp(much, "full") == 0,
                                  .told = much != NULL,
                                  .only = number_of("HISTORY_CASE", 0),
                                  .states_max = number_of("HISTORY_STATES", SIZE_MAX)};
}

bool history_has_case(const struct history_cases *h, size_t index)
{
    return h->only == 0 || h->only == index + 1;
}

void history_tell(const struct history_cases *h, size_t index, const char *graph, bool is_slow,
                  size_t states, unsigned long events)
{
    if (h->told)
        fprintf(stderr, "%3zu %10zu states, %11lu events: %s%s%s\n", index + 1, states, events,
                graph, is_slow ? ", slowly" : "", h->cut_off ? ", CUT OFF" : "");
}
