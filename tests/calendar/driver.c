/*
 * The next moments of cron expressions, for comparisons with other implementations. Reads lines of
 * EXPRESSION TAB ZONE TAB AFTER (milliseconds since 1970) and prints for each the next moment, -1
 * if there is none, or "refused: MESSAGE".
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "calendar/cron.h"

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
    if (cron_parse(slice_of(line), &cron, &e) || zone_open(slice_of(zone_name), &zone, &e))
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
