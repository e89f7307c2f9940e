/* Measures the time to compile and to evaluate expressions, in the best of several runs. Usage:
 * bench-expressions [ROUNDS]. definition.c measures whole definitions; measure.h has the clock. */

#include <stdio.h>
#include <stdlib.h>

#include "definition/expression/expression.h"
#include "measure.h"
#include "sample.h"

static void check(enum err err, const char *text, const struct error *e)
{
    if (err == ERR_OK)
        return;
    (void)fprintf(stderr, "%s: %s\n", text, e->text);
    exit(1);
}

/* Microseconds for one compilation, in the best of five runs. */
static double compiling(const char *text, long rounds)
{
    double best = 1e9;

    for (int run = 0; run < 5; run++) {
        double begin = now_us();
        for (long i = 0; i < rounds; i++) {
            CLEANUP(arena_fini) struct arena a = {0};
            struct expression *x = NULL;
            struct error e = {0};
            size_t column = 0;
            check(expression_compile(slice_of(text), &a, &x, &column, &e), text, &e);
        }
        double took = (now_us() - begin) / (double)rounds;
        best = took < best ? took : best;
    }
    return best;
}

static double evaluating(const char *text, const struct json *root, long rounds)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct expression *x = NULL;
    struct error e = {0};
    size_t column = 0;
    double best = 1e9;

    check(expression_compile(slice_of(text), &own, &x, &column, &e), text, &e);
    for (int run = 0; run < 5; run++) {
        double begin = now_us();
        for (long i = 0; i < rounds; i++) {
            CLEANUP(arena_fini) struct arena a = {0};
            const struct json *j = NULL;
            check(expression_eval(x, root, &a, &j, &e), text, &e);
        }
        double took = (now_us() - begin) / (double)rounds;
        best = took < best ? took : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    CLEANUP(arena_fini) struct arena a = {0};
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 100000;
    struct json *root = NULL;
    struct error none = {0};

    check(json_parse(&a, slice_of(sample_root), &root, NULL), sample_root, &none);
    for (size_t i = 0; i < SAMPLE_EXPRESSIONS; i++)
        printf("compile %.2f us, evaluate %.2f us: %s\n", compiling(sample_expressions[i], rounds),
               evaluating(sample_expressions[i], root, rounds), sample_expressions[i]);
    return 0;
}
