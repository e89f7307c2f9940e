/*
 * The next moments of cron expressions, for comparisons with other implementations. Reads lines of
 * EXPRESSION TAB ZONE TAB AFTER (milliseconds since 1970) and prints for each the next moment, -1
 * if there is none, or "refused: MESSAGE". If EXPRESSION is empty it prints the moments within
 * YEARS at which the clocks of the zone are changed, separated by spaces.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "calendar/cron.h"

#define YEARS_MS (14 * INT64_C(365) * MS_PER_D)

static void print_changes(const struct zone *zone, int64_t from)
{
    int64_t until = from + YEARS_MS;
    const char *space = "";

    for (int64_t at = from; (at = zone_change_after(zone, at, until)) < until; space = " ")
        printf("%s%" PRId64, space, at);
    putchar('\n');
}

static void answer(char *line)
{
    char *zone_name = strchr(line, '\t');
    char *after = zone_name ? strchr(zone_name + 1, '\t') : NULL;
    struct zone *zone = NULL;
    struct error e;
    struct cron cron;

    if (!after) {
        fprintf(stderr, "three fields are expected: %s\n", line);
        exit(2);
    }
    *zone_name++ = '\0';
    *after++ = '\0';
    if (zone_open(slice_of(zone_name), &zone, &e))
        printf("refused: %s\n", e.text);
    else if (!*line)
        print_changes(zone, strtoll(after, NULL, 10));
    else if (cron_parse(slice_of(line), &cron, &e))
        printf("refused: %s\n", e.text);
    else
        printf("%" PRId64 "\n", cron_next(&cron, zone, strtoll(after, NULL, 10)));
    zone_close(zone);
}

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t len;

    while ((len = getline(&line, &size, stdin)) > 0) {
        if (line[len - 1] == '\n')
            line[len - 1] = '\0';
        answer(line);
    }
    free(line);
    return 0;
}
