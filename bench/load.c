/*
 * Measures from the outside, over HTTP. Prints one JSON object. Usage:
 *   bench-load one N          submits N tasks one after another, waiting for the end of each
 *   bench-load many N [LINES [PREFIX [REPLY_TO]]]
 *                             submits N tasks in batches of LINES, and waits until all have ended
 *                             and all messages to REPLY_TO are delivered; PREFIX starts their ids
 *   bench-load pending N      submits N tasks that no agent executes
 *   bench-load stopping N     submits N tasks, and waits until all have stopped in error
 */

#include <intact/client.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "measure.h"

static const char payload[] =
    "{\"sku\":\"widget\",\"quantity\":1,\"text\":\"three hundred bytes of payload are what figures "
    "are quoted with unless something else is said, so here they are: an order, its customer, a "
    "card, an address, whatever a shop is likely to send along when somebody has pressed the "
    "button at last and waits\"}";

static int fail(struct intact_client *c)
{
    (void)fprintf(stderr, "bench-load: %s\n", intact_client_error(c));
    return 1;
}

static int one_by_one(struct intact_client *c, long count)
{
    double *ms = calloc((size_t)count, sizeof *ms);
    char body[1024];

    if (!ms)
        return 1;
    for (long i = 0; i < count; i++) {
        (void)snprintf(body, sizeof body, "{\"workflow\":\"bench\",\"input\":%s}", payload);
        double start = now_ms();
        if (intact_client_submit(c, body, 30000) != INTACT_OK
            || !strstr(intact_client_body(c), "\"state\":\"processed\"")) {
            free(ms);
            (void)fprintf(stderr, "bench-load: not processed: %.300s\n", intact_client_body(c));
            return fail(c);
        }
        ms[i] = now_ms() - start;
    }
    qsort(ms, (size_t)count, sizeof *ms, by_value);
    printf("{\"tasks\": %ld, \"p50_ms\": %.3f, \"p99_ms\": %.3f, \"max_ms\": %.3f}\n", count,
           ms[count / 2], ms[count * 99 / 100], ms[count - 1]);
    free(ms);
    return 0;
}

/* Fails unless each line created a task: a known or refused task costs less and would distort the
 * figures. */
static bool all_are_new(struct intact_client *c, long count)
{
    static const char is_new[] = "\"status\":201";

    for (const char *at = intact_client_body(c); (at = strstr(at, is_new)); at += sizeof is_new - 1)
        count--;
    if (count != 0)
        (void)fprintf(stderr, "bench-load: %ld were not taken as new tasks: %.300s\n", count,
                      intact_client_body(c));
    return count == 0;
}

/* Ids begin with `prefix`. */
static int submit_all(struct intact_client *c, long count, long lines, const char *workflow,
                      const char *prefix, const char *reply_to)
{
    size_t cap = (size_t)lines * (sizeof payload + 120 + strlen(prefix) + strlen(reply_to));
    char *body = malloc(cap);
    int rc = 0;

    for (long done = 0; body && done < count && rc == 0;) {
        size_t len = 0;
        long before = done;
        for (long i = 0; i < lines && done < count; i++, done++) {
            int n = snprintf(body + len, cap - len,
                             "{\"workflow\":\"%s\",\"id\":\"%s-%ld\",%s%s%s\"input\":%s}\n",
                             workflow, prefix, done, reply_to[0] ? "\"reply_to\":\"" : "", reply_to,
                             reply_to[0] ? "\"," : "", payload);
            len += (size_t)n;
        }
        if (intact_client_submit_many(c, body, len) != INTACT_OK)
            rc = fail(c);
        else if (!all_are_new(c, done - before))
            rc = 1;
    }
    free(body);
    return rc;
}

/* *ret: whether any task is still pending, processing or compensating. */
static int count_open(struct intact_client *c, bool *ret)
{
    static const char *const states[] = {"state=pending&limit=1", "state=processing&limit=1",
                                         "state=compensating&limit=1"};

    *ret = false;
    for (int i = 0; i < 3 && !*ret; i++) {
        if (intact_client_list(c, states[i]) != INTACT_OK)
            return fail(c);
        *ret = strstr(intact_client_body(c), "\"id\"") != NULL;
    }
    return 0;
}

/* Checks that all tasks ended as intended: those of "stops" in error, all others processed. */
static int check_ends(struct intact_client *c, const char *workflow)
{
    bool stops = strcmp(workflow, "stops") == 0;

    if (intact_client_list(c, stops ? "state=processed&limit=1&workflow=stops"
                                    : "state=error,compensated&limit=1&workflow=bench")
        != INTACT_OK)
        return fail(c);
    if (!strstr(intact_client_body(c), "\"id\""))
        return 0;
    (void)fprintf(stderr, "bench-load: a task did not end as it was to: %.300s\n",
                  intact_client_body(c));
    return 1;
}

/* *ret: whether any message is still undelivered. */
static int count_untold(struct intact_client *c, bool *ret)
{
    if (intact_client_call(c, "GET", "/v1/outbox?state=waiting&limit=1", NULL, NULL, 0)
        != INTACT_OK)
        return fail(c);
    *ret = strstr(intact_client_body(c), "\"id\"") != NULL;
    return 0;
}

static int many(struct intact_client *c, long count, long lines, const char *workflow,
                const char *prefix, const char *reply_to)
{
    const struct timespec nap = {0, 20000000};
    double start = now_ms();
    bool open = true;
    int rc = submit_all(c, count, lines, workflow, prefix, reply_to);
    double submitted = now_ms();

    while (rc == 0 && open) {
        rc = count_open(c, &open);
        (void)nanosleep(&nap, NULL);
    }
    double end = now_ms();
    open = reply_to[0] != 0;
    while (rc == 0 && open) {
        rc = count_untold(c, &open);
        (void)nanosleep(&nap, NULL);
    }
    double told = reply_to[0] ? now_ms() : end;
    if (rc == 0)
        rc = check_ends(c, workflow);
    if (rc == 0)
        printf("{\"tasks\": %ld, \"submit_s\": %.3f, \"ended_s\": %.3f, \"seconds\": %.3f, "
               "\"tasks_per_s\": %.0f}\n",
               count, (submitted - start) / 1e3, (end - start) / 1e3, (told - start) / 1e3,
               (double)count / ((told - start) / 1e3));
    return rc;
}

int main(int argc, char **argv)
{
    long count = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    long lines = argc > 3 ? strtol(argv[3], NULL, 10) : 500;
    const char *prefix = argc > 4 ? argv[4] : "t";
    const char *reply_to = argc > 5 ? argv[5] : "";
    int rc = 2;

    if (count <= 0 || lines <= 0) {
        (void)fprintf(
            stderr,
            "usage: bench-load one|many|pending|stopping COUNT [LINES [PREFIX [REPLY_TO]]]\n");
        return 2;
    }
    struct intact_client *c = intact_client_new(NULL, NULL);
    if (strcmp(argv[1], "one") == 0)
        rc = one_by_one(c, count);
    else if (strcmp(argv[1], "many") == 0)
        rc = many(c, count, lines, "bench", prefix, reply_to);
    else if (strcmp(argv[1], "stopping") == 0)
        rc = many(c, count, lines, "stops", "stops", "");
    else if (strcmp(argv[1], "pending") == 0)
        rc = submit_all(c, count, lines, "nobody", prefix, "");
    intact_client_free(c);
    return rc;
}
