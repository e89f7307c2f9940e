/* Prints the result of bench-flow as one JSON object: throughput, latencies, and the delays of
 * the generator itself, by which the reader judges whether the machine was too busy to measure.
 * flow.c collects them. */

#include "flow/flow.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "../measure.h"

/* The smallest value that at least `thousandths`/1000 of the values do not exceed. */
static double percentile(const double *sorted, long count, long thousandths)
{
    long rank = (count * thousandths + 999) / 1000;

    return sorted[rank > 0 ? rank - 1 : 0];
}

static double *differences(const struct flow *f, const double *from, const double *to)
{
    double *ms = calloc((size_t)f->o.tasks, sizeof *ms);

    if (!ms)
        flow_fail("no memory");
    for (long i = 0; i < f->o.tasks; i++)
        ms[i] = (to[i] - from[i]) / 1e3;
    qsort(ms, (size_t)f->o.tasks, sizeof *ms, by_value);
    return ms;
}

static double cpu_s(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec)
           + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* ENDS_COUNT yields only the throughput. */
static void print_latencies(const struct flow *f)
{
    double *ms = differences(f, f->due_at, f->ended_at);
    double sum = 0;

    for (long i = 0; i < f->o.tasks; i++)
        sum += ms[i];
    printf("\"mean_ms\": %.3f, \"p50_ms\": %.3f, \"p90_ms\": %.3f, \"p99_ms\": %.3f, "
           "\"p999_ms\": %.3f, \"max_ms\": %.3f, ",
           sum / (double)f->o.tasks, percentile(ms, f->o.tasks, 500),
           percentile(ms, f->o.tasks, 900), percentile(ms, f->o.tasks, 990),
           percentile(ms, f->o.tasks, 999), ms[f->o.tasks - 1]);
    free(ms);
}

/* How long due tasks waited in this program, for a free connection or for a processor. */
static void print_sent(const struct flow *f)
{
    double *ms = differences(f, f->due_at, f->sent_at);

    printf("\"sent_p50_ms\": %.3f, \"sent_p99_ms\": %.3f, ", percentile(ms, f->o.tasks, 500),
           percentile(ms, f->o.tasks, 990));
    free(ms);
}

void report_print(const struct flow *f, double seconds)
{
    double tasks = (double)f->o.tasks;

    printf("{\"tasks\": %ld, \"seconds\": %.6f, \"tasks_per_s\": %.1f, ", f->o.tasks, seconds,
           tasks / seconds);
    if (f->o.rate > 0)
        printf("\"rate\": %.1f, \"poisson\": %s, ", f->o.rate, f->o.poisson ? "true" : "false");
    else
        printf("\"in_flight\": %ld, ", f->o.in_flight);
    if (f->o.ends != ENDS_COUNT)
        print_latencies(f);
    print_sent(f);
    printf("\"processed\": %ld, \"compensated\": %ld, \"error\": %ld, \"gaps\": %ld, ",
           f->outcomes[0], f->outcomes[1], f->outcomes[2], f->gaps);
    printf("\"requests\": %ld, \"body_bytes\": %.0f, \"answer_bytes\": %.0f, ", f->requests,
           f->body_bytes / (double)f->requests, f->answer_bytes / (double)f->requests);
    printf("\"generator_cpu_s_per_1000\": %.4f}\n", cpu_s() / tasks * 1000);
}
