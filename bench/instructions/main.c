/*
 * Runs the fixed workloads of ./run instructions. It does not count by itself: valgrind
 * --tool=callgrind --instr-atstart=no does. Prints a line for each count: its name, its units.
 *
 * Usage: bench-instructions NAME DIR [ROUNDS]   runs a workload in that folder
 *        bench-instructions make NAME DIR       prepares the data of a workload
 *        bench-instructions list                name, units and meaning of each
 *        bench-instructions compiler            the compiler of this program
 */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <valgrind/callgrind.h>

#include "instructions/workload.h"

static const struct workload *const tables[] = {
    workloads_text, workloads_task, workloads_kept, workloads_outside, workloads_server,
};

const char payload_in[] =
    "{\"sku\":\"widget\",\"quantity\":1,\"text\":\"three hundred bytes of payload are what figures "
    "are quoted with unless something else is said, so here they are: an order, its customer, a "
    "card, an address, whatever a shop is likely to send along when somebody has pressed the "
    "button at last and waits\"}";

const char payload_out[] =
    "{\"id\":\"0123456789abcdef\",\"text\":\"three hundred bytes of payload are what figures are "
    "quoted with unless something else is said, so here they are: a receipt, a parcel's number, an "
    "address, whatever a service is likely to answer with when it was asked to do something and "
    "did so without much ado\",\"n\":12345}";

void count_begin(void)
{
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
}

void count_end(const struct workload *w, const char *what, long units)
{
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_DUMP_STATS_AT(what ? what : "");
    printf("%s%s%s %ld\n", w->name, what ? "/" : "", what ? what : "", units);
}

void must(enum err err, const struct error *e)
{
    if (err == ERR_OK)
        return;
    (void)fprintf(stderr, "bench-instructions: %s\n", e->text);
    exit(1);
}

void must_be(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "bench-instructions: it is not so: %s\n", what);
    exit(1);
}

static const struct workload *find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        for (const struct workload *w = tables[i]; w->name; w++)
            if (strcmp(w->name, name) == 0)
                return w;
    (void)fprintf(stderr, "bench-instructions: there is no workload \"%s\"; see list\n", name);
    exit(2);
}

static void list(void)
{
    for (size_t i = 0; i < COUNT_OF(tables); i++)
        for (const struct workload *w = tables[i]; w->name; w++)
            printf("%s %ld %s%s\n", w->name, w->rounds, w->make ? "made, " : "", w->unit);
}

static void go_into(const char *dir)
{
    if (chdir(dir) == 0)
        return;
    perror(dir);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        list();
    } else if (argc == 2 && strcmp(argv[1], "compiler") == 0) {
#ifdef __clang__
        printf("%s\n", __VERSION__);
#else
        printf("gcc %s\n", __VERSION__);
#endif
    } else if (argc == 4 && strcmp(argv[1], "make") == 0) {
        const struct workload *w = find(argv[2]);
        go_into(argv[3]);
        if (w->make)
            w->make(w);
    } else if (argc == 3 || argc == 4) {
        const struct workload *w = find(argv[1]);
        long rounds = argc == 4 ? strtol(argv[3], NULL, 10) : w->rounds;
        go_into(argv[2]);
        must_be(rounds > 0, "ROUNDS is a number above 0");
        w->run(w, rounds);
    } else {
        (void)fprintf(stderr,
                      "usage: bench-instructions NAME DIR [ROUNDS] | make NAME DIR | list | "
                      "compiler\n");
        return 2;
    }
    return 0;
}
