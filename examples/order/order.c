/* What the three agents of the order example share (order.h): flags, the ledger in which each
 * effect is recorded, and ways to misbehave on request, for demonstrations and tests. order_main
 * is their main function; stock.c, payment.c and shipping.c have the effects. */

#include "order.h"

#include <getopt.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Ways to misbehave: flag, and what it does. Each takes a chance per mille of all attempts. */
/* clang-format off */
#define MISCHIEF(X)                                                                              \
    X(FAIL,         "fail")         /* a retryable error; the effect may have happened or not */ \
    X(LATE,         "late")         /* takes effect in time, and answers after the deadline */   \
    X(HANG,         "hang")         /* does nothing until the deadline has passed */             \
    X(CRASH_BEFORE, "crash-before") /* kills itself before the effect is durable */              \
    X(CRASH_AFTER,  "crash-after")  /* kills itself after that, before it answers */
/* clang-format on */

enum mischief {
#define X(name, flag) MISCHIEF_##name,
    MISCHIEF(X)
#undef X
        MISCHIEF_NONE
};

static struct {
    struct intact_ledger *ledger;
    unsigned chance[MISCHIEF_NONE]; /* per mille */
    uint64_t seed;
    uint64_t boot; /* starts of this agent: a crash is not repeated for ever */
    long delay_ms;
} order;

static uint64_t mix(uint64_t hash, const void *ptr, size_t len)
{
    const unsigned char *bytes = ptr;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    return hash * UINT64_C(0x9e3779b97f4a7c15);
}

/* The same seed, history of starts and attempt give the same mischief. *ret_dice is for its
 * details. */
static enum mischief mischief_of(const struct intact_request *r, uint64_t *ret_dice)
{
    const char *key = intact_request_idempotency_key(r);
    unsigned attempt = intact_request_attempt(r);
    uint64_t hash = mix(order.seed, key, strlen(key));

    hash = mix(hash, &attempt, sizeof(attempt));
    hash = mix(hash, &order.boot, sizeof(order.boot));
    hash ^= hash >> 29;
    *ret_dice = hash / 1000;
    unsigned draw = (unsigned)(hash % 1000);
    for (int i = 0; i < MISCHIEF_NONE; i++) {
        if (draw < order.chance[i])
            return (enum mischief)i;
        draw -= order.chance[i];
    }
    return MISCHIEF_NONE;
}

static void pause_ms(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL); /* the handlers' threads take no signals */
}

static void bind(sqlite3_stmt *st, const char *name, const char *value)
{
    int index = sqlite3_bind_parameter_index(st, name);

    if (index > 0)
        (void)sqlite3_bind_text(st, index, value, -1, SQLITE_STATIC); /* else NULL: a constraint */
}

int work_run(struct work *w, const char *sql)
{
    sqlite3_stmt *st = NULL;
    const struct intact_request *r = w->request;
    int rc = sqlite3_prepare_v2(w->db, sql, -1, &st, NULL);

    if (rc == SQLITE_OK) {
        bind(st, ":key", intact_request_idempotency_key(r));
        bind(st, ":task", intact_request_task(r));
        bind(st, ":input", intact_request_input(r));
        bind(st, ":forward", intact_request_forward(r));
        bind(st, ":forward_key", intact_request_forward_key(r));
        rc = sqlite3_step(st);
    }
    (void)sqlite3_finalize(st); /* repeats what the step said */
    if (rc == SQLITE_DONE)
        return sqlite3_changes(w->db);
    bool refused = rc == SQLITE_CONSTRAINT;
    w->error.code = refused ? "bad_input" : "ledger";
    w->error.message = sqlite3_errstr(rc);
    w->error.flags = INTACT_EFFECT_NONE | (refused ? INTACT_PERMANENT : INTACT_RETRYABLE);
    return -1;
}

bool work_refuse(struct work *w, const char *code, const char *message)
{
    w->error.code = code;
    w->error.message = message;
    w->error.flags = INTACT_PERMANENT;
    return false;
}

static void fail(struct intact_request *r, enum intact_error_flags effect)
{
    intact_answer_error(r, "mischief", "it was told to fail", INTACT_RETRYABLE | (unsigned)effect);
}

static void until_deadline(struct intact_request *r)
{
    while (intact_request_time_left_ms(r) > 0)
        pause_ms(20);
}

/* What goes wrong before anything happened. True: nothing is left to do. */
static bool misbehave_before(struct intact_request *r, enum mischief mischief, uint64_t dice)
{
    if (mischief == MISCHIEF_FAIL && dice % 3 < 2) {
        fail(r, dice % 3 == 0 ? INTACT_EFFECT_NONE : INTACT_EFFECT_UNKNOWN);
        return true;
    }
    if (mischief == MISCHIEF_HANG) {
        until_deadline(r);
        intact_answer_nothing(r);
        return true;
    }
    return false;
}

/* What goes wrong when the effect is durable already. */
static void misbehave_after(struct intact_request *r, enum mischief mischief)
{
    if (mischief == MISCHIEF_CRASH_AFTER)
        (void)kill(getpid(), SIGKILL); /* does not return */
    if (mischief == MISCHIEF_FAIL)
        fail(r, INTACT_EFFECT_UNKNOWN);
    if (mischief == MISCHIEF_LATE)
        until_deadline(r); /* what it says then is not sent any more */
}

static void handle(struct intact_request *r, void *arg)
{
    const struct effect *effect = arg;
    struct work w = {
        .db = intact_ledger_db(order.ledger),
        .request = r,
        .error = {.code = "broken_ledger", .message = "the tables do not fit the record"},
    };
    uint64_t dice;
    enum mischief mischief = mischief_of(r, &dice);

    pause_ms(order.delay_ms);
    if (misbehave_before(r, mischief, dice) || !intact_ledger_begin(order.ledger, r))
        return;
    if (!effect->write(&w)) {
        intact_ledger_rollback(order.ledger);
        intact_answer_error(r, w.error.code, w.error.message, w.error.flags);
        return;
    }
    if (mischief == MISCHIEF_CRASH_BEFORE)
        (void)kill(getpid(), SIGKILL); /* does not return */
    if (!intact_ledger_commit(order.ledger, r, w.output))
        return;
    misbehave_after(r, mischief);
    intact_answer(r, w.output);
}

/* The tables, and the number of this start. */
static bool prepare(sqlite3 *db, const char *schema)
{
    static const char count_start[] = "CREATE TABLE IF NOT EXISTS start(id INTEGER PRIMARY KEY);"
                                      "INSERT INTO start VALUES (NULL);";

    if (sqlite3_exec(db, schema, NULL, NULL, NULL) != SQLITE_OK
        || sqlite3_exec(db, count_start, NULL, NULL, NULL) != SQLITE_OK) {
        fprintf(stderr, "cannot prepare the ledger: %s\n", sqlite3_errmsg(db));
        return false;
    }
    order.boot = (uint64_t)sqlite3_last_insert_rowid(db);
    return true;
}

static void usage(const char *agent)
{
    fprintf(stderr,
            "usage: order-%s --ledger FILE [--server URL] [--instance NAME] [--concurrency N]\n"
            "  [--delay MS] [--seed N] and, each with a chance per mille: --fail --late --hang\n"
            "  --crash-before --crash-after\n",
            agent);
}

/* The number behind a flag; -1: it is none. */
static long number(const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    return *text && !*end && n >= 0 ? n : -1;
}

static bool take_flag(int flag, struct intact_agent *a, const char **ledger)
{
    long n = number(optarg ? optarg : "");

    switch (flag) {
    case 's':
        intact_agent_set_server(a, optarg);
        return true;
    case 'i':
        intact_agent_set_instance(a, optarg);
        return true;
    case 'l':
        *ledger = optarg;
        return true;
    case 'c':
        intact_agent_set_concurrency(a, (unsigned)n);
        return n > 0 && n <= 1000;
    case 'd':
        order.delay_ms = n;
        return n >= 0;
    case 'S':
        order.seed = (uint64_t)n;
        return n >= 0;
    default:
        if (flag < 256 || n < 0 || n > 1000)
            return false;
        order.chance[flag - 256] = (unsigned)n;
        return true;
    }
}

static bool take_flags(int argc, char **argv, struct intact_agent *a, const char **ledger)
{
    static const struct option flags[] = {
        {"server", required_argument, NULL, 's'},
        {"instance", required_argument, NULL, 'i'},
        {"ledger", required_argument, NULL, 'l'},
        {"concurrency", required_argument, NULL, 'c'},
        {"delay", required_argument, NULL, 'd'},
        {"seed", required_argument, NULL, 'S'},
#define X(name, flag) {flag, required_argument, NULL, 256 + MISCHIEF_##name},
        MISCHIEF(X)
#undef X
            {NULL, 0, NULL, 0},
    };

    for (int f = getopt_long(argc, argv, "", flags, NULL); f != -1;
         f = getopt_long(argc, argv, "", flags, NULL))
        if (!take_flag(f, a, ledger))
            return false;
    return *ledger && optind == argc;
}

static void on_signal(int number_of_signal)
{
    (void)number_of_signal;
    intact_agent_stop();
}

static void stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTERM, &action, NULL); /* cannot fail: both may be caught */
    (void)sigaction(SIGINT, &action, NULL);
}

/* Its flags, handlers and defaults. NULL: the flags are wrong, and it was said what they are. */
static struct intact_agent *set_up(int argc, char **argv, const char *name,
                                   const struct effect *effects, size_t effect_count,
                                   const char **ledger)
{
    struct intact_agent *a = intact_agent_new(name);
    char instance[64];

    snprintf(instance, sizeof(instance), "%s-1", name);
    intact_agent_set_instance(a, instance);
    intact_agent_set_concurrency(a, 8);
    for (size_t i = 0; i < effect_count; i++)
        intact_agent_on(a, effects[i].action, effects[i].direction, handle,
                        (void *)(uintptr_t)&effects[i]);
    if (take_flags(argc, argv, a, ledger))
        return a;
    usage(name);
    intact_agent_free(a);
    return NULL;
}

int order_main(int argc, char **argv, const char *agent, const char *schema,
               const struct effect *effects, size_t effect_count)
{
    char why[300];
    const char *ledger = NULL;
    struct intact_agent *a = set_up(argc, argv, agent, effects, effect_count, &ledger);

    if (!a)
        return 2;
    order.ledger = intact_ledger_open(ledger, why, sizeof(why));
    if (!order.ledger) {
        fprintf(stderr, "%s\n", why);
        intact_agent_free(a);
        return 1;
    }
    stop_on_signals();
    bool ok = prepare(intact_ledger_db(order.ledger), schema) && intact_agent_run(a) == 0;
    intact_agent_free(a);
    intact_ledger_close(order.ledger);
    return ok ? 0 : 1;
}
