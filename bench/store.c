/*
 * The store alone: the cost of claims, scans and changes with an empty store and with many pending
 * tasks. Prints a line for each size. Usage: bench-store DIR [PENDING]
 */

#include <stdio.h>
#include <stdlib.h>

#include "measure.h"
#include "store/sqlite/sqlite.h"

enum { BATCH = 1000, ROUNDS = 200, CLAIMED = 10 };

static const char doc[] =
    "{\"input\":{\"text\":\"three hundred bytes of payload are what figures are quoted with unless "
    "something else is said, so here they are: an order, its customer, a card, an address, "
    "whatever "
    "a shop is likely to send along when somebody has pressed the button at last and waits\"},"
    "\"steps\":[{\"name\":\"first\",\"state\":\"waiting\"},{\"name\":\"second\",\"state\":"
    "\"waiting\"},"
    "{\"name\":\"third\",\"state\":\"waiting\"}]}";

static long next_id;

static void die(const struct error *e)
{
    (void)fprintf(stderr, "bench-store: %s\n", e->text);
    exit(1);
}

/* Inserts `count` pending tasks that wait for `agent`, with a deadline far away. */
static void insert(struct store *s, const char *agent, long count)
{
    static struct change changes[BATCH];
    static char ids[BATCH][24];
    struct arena a = {0};
    struct error e = {0};

    for (long i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "t-%09ld", next_id);
        changes[i] = (struct change){.kind = CHANGE_INSERT};
        changes[i].row = (struct task_row){
            .id = slice_of(ids[i]),
            .workflow = slice_of("bench"),
            .version = 1,
            .revision = 1,
            .priority = 5,
            .wake_at = INT64_C(4000000000000) + next_id,
            .waiting_for = slice_of(agent),
            .rank = next_id,
            .submitted_at = 1,
            .doc = slice_of(doc),
        };
        next_id++;
    }
    struct batch b = {.changes = changes, .change_count = (size_t)count};
    if (s->ops->commit(s, &b, &a, &e) != ERR_OK)
        die(&e);
    arena_fini(&a);
    (void)sqlite_store_maintain(s, false);
}

static double claim(struct store *s)
{
    struct claim c = {.kind = CLAIM_AGENT,
                      .agent = slice_of("wanted"),
                      .locked_by = slice_of("n1/1"),
                      .now = 2,
                      .limit = CLAIMED};
    struct batch b = {.claims = &c, .claim_count = 1};
    struct arena a = {0};
    struct error e = {0};

    insert(s, "wanted", CLAIMED);
    double start = now_us();
    if (s->ops->commit(s, &b, &a, &e) != ERR_OK)
        die(&e);
    double us = now_us() - start;
    if (c.row_count != CLAIMED)
        exit(1);
    arena_fini(&a);
    return us;
}

static double scan(struct store *s)
{
    struct row_page page = {0};
    struct arena a = {0};
    struct error e = {0};
    double start = now_us();

    if (s->ops->overdue(s, 3, 0, 0, 256, &a, &page, &e) != ERR_OK)
        die(&e);
    double us = now_us() - start;
    arena_fini(&a);
    return us;
}

static double median(struct store *s, double (*measure)(struct store *s))
{
    static double us[ROUNDS];

    for (int i = 0; i < ROUNDS; i++)
        us[i] = measure(s);
    qsort(us, ROUNDS, sizeof *us, by_value);
    return us[ROUNDS / 2];
}

static void report(struct store *s, long pending)
{
    printf("store: %ld pending: claim of %d tasks %.0f us (with its commit), supervisor's scan "
           "%.1f us\n",
           pending, CLAIMED, median(s, claim), median(s, scan));
}

int main(int argc, char **argv)
{
    struct store *s = NULL;
    struct error e = {0};
    long pending = argc > 2 ? strtol(argv[2], NULL, 10) : 1000000;

    if (argc < 2) {
        (void)fprintf(stderr, "usage: bench-store DIR [PENDING]\n");
        return 2;
    }
    if (sqlite_store_open(argv[1], &s, &e) != ERR_OK)
        die(&e);
    insert(s, "nobody", BATCH);
    report(s, BATCH);
    double start = now_us();
    for (long i = 0; i < pending; i += BATCH)
        insert(s, "nobody", BATCH);
    printf("store: %.0f insertions a second in batches of %d\n",
           (double)pending / (now_us() - start) * 1e6, BATCH);
    report(s, pending);
    s->ops->close(s);
    return 0;
}
