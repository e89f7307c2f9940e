/*
 * The time to parse and check a definition: the same one in YAML and in JSON, with many steps that
 * use every field of a step. Usage: bench-definition [STEPS]
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "definition/definition.h"
#include "measure.h"
#include "sample.h"

enum { ROUNDS = 500 };

static struct definition *read_one(struct slice text)
{
    static struct mistakes mistakes, warnings;
    struct definition *d = NULL;

    if (definition_parse(text, DEFINITION_GUESS, &d, &mistakes, &warnings) == ERR_OK)
        return d;
    fprintf(stderr, "%u:%u: %s, expected %s\n", mistakes.list[0].line, mistakes.list[0].column,
            mistakes.list[0].found, mistakes.list[0].expected);
    exit(1);
}

static void measure(const char *format, struct slice text, int steps)
{
    static double took[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        double begin = now_us();
        definition_free(read_one(text));
        took[i] = now_us() - begin;
    }
    qsort(took, ROUNDS, sizeof took[0], by_value);
    printf("definition: %d steps in %s, %zu bytes: read and checked in %.0f us (median of %d), "
           "p99 %.0f us\n",
           steps, format, text.len, took[ROUNDS / 2], ROUNDS, took[ROUNDS * 99 / 100]);
}

int main(int argc, char **argv)
{
    CLEANUP(buf_fini) struct buf yaml = {0};
    int steps = argc > 1 ? atoi(argv[1]) : 60;

    sample_definition(&yaml, steps > 0 && steps <= STEPS_MAX ? steps : 60);
    struct definition *d = read_one(buf_view(&yaml));
    measure("YAML", buf_view(&yaml), d->workflow.step_count);
    measure("JSON", d->json, d->workflow.step_count);
    definition_free(d);
    return 0;
}
