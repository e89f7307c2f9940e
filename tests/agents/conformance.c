/*
 * The libintact agent for `intact agent check`: it has all actions whose behaviour the checker
 * verifies (docs/agent-check.md). Usage: conformance RECORD
 */

#include <inttypes.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include <intact/agent.h>
#include <intact/ledger.h>

#include "base/when.h"
#include "json/json.h"

enum { PLACES = 4, OUTPUT_MAX = 64 };

static struct intact_ledger *ledger;

/* ---- what an input says ---- */

/* The tree lies in the arena, and points into the request's text. */
static const struct json *input_of(const struct intact_request *r, struct arena *a)
{
    struct json *input = NULL;

    return json_parse(a, slice_of(intact_request_input(r)), &input, NULL) == ERR_OK ? input : NULL;
}

/* A text with a NUL behind it, as the tree has them. */
static const char *text_of(const struct json *j, const char *key, const char *otherwise)
{
    struct slice s = json_get_text(j, key);

    return s.ptr ? s.ptr : otherwise;
}

/* ---- actions ---- */

static void echo(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, intact_request_input(r));
}

static void fail(struct intact_request *r, void *arg)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf resume = {0};
    const struct json *in = input_of(r, &a);
    const char *effect = text_of(in, "effect", "");
    int64_t after_ms = 0;
    unsigned flags = json_get_bool(in, "retryable", true) ? INTACT_RETRYABLE : INTACT_PERMANENT;

    (void)arg;
    flags |= strcmp(effect, "none") == 0      ? INTACT_EFFECT_NONE
             : strcmp(effect, "unknown") == 0 ? INTACT_EFFECT_UNKNOWN
                                              : 0u;
    if (!duration_parse(json_get_text(in, "retry_after"), &after_ms))
        after_ms = 0;
    buf_slice(&resume, json_get_raw(in, "resume"));
    intact_answer_error_resume(r, text_of(in, "code", "failed"), text_of(in, "message", NULL),
                               flags, after_ms, resume.len ? resume.ptr : NULL);
}

static void slow(struct intact_request *r, void *arg)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *in = input_of(r, &a);
    int64_t ms = json_get_int(in, "ms", 0);
    int64_t beats = json_get_int(in, "beats", 0);
    int64_t step = beats > 0 ? beats : ms;
    char progress[OUTPUT_MAX];

    (void)arg;
    for (int64_t done = 0; done * step < ms; done++) {
        if (beats > 0) {
            (void)snprintf(progress, sizeof progress, "{\"done\": %" PRId64 "}", done);
            (void)intact_heartbeat(r, progress, NULL);
        }
        if (!intact_request_sleep(r, step)) {
            intact_answer_error(r, "stopped", "the server asked to stop",
                                INTACT_RETRYABLE | INTACT_EFFECT_NONE);
            return;
        }
    }
    intact_answer(r, "null");
}

/* The sum of all that was counted. -1: the file does not work. */
static int64_t count_by(sqlite3 *db, int by)
{
    sqlite3_stmt *q = NULL;
    int64_t n = -1;
    char sql[OUTPUT_MAX];

    (void)snprintf(sql, sizeof sql, "INSERT INTO counted VALUES (%d)", by);
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK
        && sqlite3_prepare_v2(db, "SELECT sum(by) FROM counted", -1, &q, NULL) == SQLITE_OK
        && sqlite3_step(q) == SQLITE_ROW)
        n = sqlite3_column_int64(q, 0);
    sqlite3_finalize(q);
    return n;
}

static void count(struct intact_request *r, void *arg)
{
    CLEANUP(arena_fini) struct arena a = {0};
    int64_t ms = json_get_int(input_of(r, &a), "ms", 0);
    bool is_undo = intact_request_direction(r) == INTACT_UNDO;
    char output[OUTPUT_MAX];

    (void)arg;
    if (!intact_ledger_begin(ledger, r))
        return;
    int64_t n = count_by(intact_ledger_db(ledger), is_undo ? -1 : 1);
    if (ms > 0 && !is_undo) {
        (void)intact_heartbeat(r, NULL, NULL);
        (void)intact_request_sleep(r, ms);
    }
    (void)snprintf(output, sizeof output, "{\"n\": %" PRId64 "}", n);
    if (n < 0) {
        intact_ledger_rollback(ledger);
        intact_answer_error(r, "record", "the record cannot be written",
                            INTACT_RETRYABLE | INTACT_EFFECT_NONE);
    } else if (intact_ledger_commit(ledger, r, output)) {
        intact_answer(r, output);
    }
}

/* Its service is away for the first calls. */
static void retry(struct intact_request *r, void *arg)
{
    CLEANUP(arena_fini) struct arena a = {0};
    int64_t away = json_get_int(input_of(r, &a), "fail", 0);
    char output[OUTPUT_MAX];

    (void)arg;
    do {
        unsigned tries = intact_request_try(r);
        if (tries <= away)
            continue;
        (void)snprintf(output, sizeof output, "{\"tries\": %u}", tries);
        intact_answer(r, output);
        return;
    } while (intact_request_retry(r, 0));
    intact_answer_error(r, "unreachable", NULL, INTACT_RETRYABLE);
}

static void elsewhere(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer_elsewhere(r);
}

static void resume(struct intact_request *r, void *arg)
{
    const char *left = intact_request_resume(r);

    (void)arg;
    if (left)
        intact_answer(r, left);
    else
        intact_answer_error_resume(r, "interrupted", "half of it is done",
                                   INTACT_RETRYABLE | INTACT_EFFECT_NONE, 0, "{\"at\": 1}");
}

static void on_signal(int number)
{
    (void)number;
    intact_agent_stop();
}

int main(int argc, char **argv)
{
    struct intact_agent *a = intact_agent_new("conformance");
    char why[200];

    ledger = intact_ledger_open(argc > 1 ? argv[1] : "conformance.db", why, sizeof why);
    if (!ledger) {
        fprintf(stderr, "conformance: %s\n", why);
        return EXIT_FAILURE;
    }
    if (sqlite3_exec(intact_ledger_db(ledger),
                     "CREATE TABLE IF NOT EXISTS counted(by INTEGER NOT NULL)", NULL, NULL, NULL)
        != SQLITE_OK) {
        fprintf(stderr, "conformance: %s\n", sqlite3_errmsg(intact_ledger_db(ledger)));
        return EXIT_FAILURE;
    }
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGINT, on_signal);
    intact_agent_set_instance(a, "c-1");
    intact_agent_set_concurrency(a, PLACES);
    intact_agent_set_retry(a, 0, 10, 100);
    intact_agent_on(a, "echo", INTACT_ANY, echo, NULL);
    intact_agent_on(a, "fail", INTACT_FORWARD, fail, NULL);
    intact_agent_on(a, "slow", INTACT_FORWARD, slow, NULL);
    intact_agent_on(a, "count", INTACT_ANY, count, NULL);
    intact_agent_on(a, "retry", INTACT_FORWARD, retry, NULL);
    intact_agent_on(a, "elsewhere", INTACT_FORWARD, elsewhere, NULL);
    intact_agent_on(a, "resume", INTACT_FORWARD, resume, NULL);
    int end = (int)intact_agent_run(a);
    intact_agent_free(a);
    intact_ledger_close(ledger);
    return end;
}
