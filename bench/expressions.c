/* What compiling and evaluating expressions takes. Usage: bench-expressions [ROUNDS] */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "definition/expression.h"

static double now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static const char input[] =
    "{\"a\":{\"b\":{\"c\":1}},\"list\":[1,2,3,4,5],\"input\":{\"order\":{\"id\":\"o-17\",\"items\":"
    "[{\"sku\":\"A-1\",\"price\":250,\"quantity\":2},{\"sku\":\"B-2\",\"price\":125,\"quantity\":1}"
    "]},"
    "\"customer\":{\"name\":\"Ann\",\"country\":\"DE\"}}}";

static const char *const texts[] = {
    ".a.b.c",
    ".list | map(. + 1) | add",
    "[.input.order.items[] | .price * .quantity] | add > 500",
    "\"order \\(.input.order.id): \\(.input.order.items | length) items\"",
    "{id: .input.order.id, to: .input.customer.name, skus: [.input.order.items[].sku]}",
    "if .input.customer.country == \"DE\" then .input.order.id else null end",
};

static void check(enum err err, const char *text, const struct error *e)
{
    if (err == ERR_OK)
        return;
    (void)fprintf(stderr, "%s: %s\n", text, e->text);
    exit(1);
}

/* Microseconds of one, in the best of five runs. */
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

    check(json_parse(&a, slice_of(input), &root, NULL), input, &none);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        printf("compile %.2f us, evaluate %.2f us: %s\n", compiling(texts[i], rounds),
               evaluating(texts[i], root, rounds), texts[i]);
    return 0;
}
