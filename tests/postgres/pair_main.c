/*
 * intact-pair: a primary and its synchronous standby, for scripts. Each call is one command on the
 * folder of the pair; pair.c does the work, pair.h says how.
 */

/* Usage:
 *
 *     intact-pair DIR make                    creates both: a is the primary, b its standby
 *     intact-pair DIR conninfo [a|b]          prints the conninfo: of the primary; of one server
 *     intact-pair DIR pool MODE               starts a PgBouncer before each: session, transaction
 *     intact-pair DIR conninfo pool           prints the conninfo of the poolers
 *     intact-pair DIR kill|stop|cont a|b      SIGKILL, SIGSTOP, SIGCONT to all of its processes
 *     intact-pair DIR start a|b               starts it in its previous role
 *     intact-pair DIR fast|immediate a|b      stops it in that mode and starts it again
 *     intact-pair DIR end a|b                 stops it as an operator does ("fast")
 *     intact-pair DIR promote a|b             the standby becomes the primary
 *     intact-pair DIR rejoin a|b              recreates it as the standby of the other
 *     intact-pair DIR end                     ends both and removes the folder
 *     intact-pair DIR guard PID               the same once that process has ended in any way
 */

#include "base/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pair.h"

enum { LOOK_US = 200000 };

static int usage(void)
{
    fprintf(stderr, "usage: intact-pair DIR make|conninfo|kill|stop|cont|start|fast|immediate|"
                    "promote|rejoin|end [a|b], conninfo pool, pool MODE, or guard PID\n");
    return 2;
}

static int to_one(const struct pair *p, const char *verb, int which)
{
    if (strcmp(verb, "kill") == 0)
        pair_kill(p, which);
    else if (strcmp(verb, "stop") == 0 || strcmp(verb, "cont") == 0)
        pair_signal(p, which, strcmp(verb, "stop") == 0 ? SIGSTOP : SIGCONT);
    else if (strcmp(verb, "start") == 0)
        pair_start(p, which);
    else if (strcmp(verb, "end") == 0)
        pair_stop(p, which, "fast");
    else if (strcmp(verb, "fast") == 0 || strcmp(verb, "immediate") == 0)
        pair_restart(p, which, verb);
    else if (strcmp(verb, "promote") == 0)
        pair_promote(p, which);
    else if (strcmp(verb, "rejoin") == 0)
        pair_rejoin(p, which);
    else
        return usage();
    return 0;
}

static int to_both(struct pair *p, const char *dir, const char *verb)
{
    char conninfo[PAIR_TEXT];

    if (strcmp(verb, "make") == 0) {
        pair_make(p, dir);
        return 0;
    }
    if (!pair_load(p, dir)) {
        fprintf(stderr, "intact-pair: there are no servers in %s\n", dir);
        return 1;
    }
    if (strcmp(verb, "end") == 0) {
        pair_end(p);
        return 0;
    }
    if (strcmp(verb, "conninfo") != 0)
        return usage();
    pair_conninfo(p, conninfo);
    (void)puts(conninfo);
    return 0;
}

static int conninfo_of(const struct pair *p, const char *of)
{
    char conninfo[PAIR_TEXT];

    if (strcmp(of, "pool") == 0)
        pair_pool_conninfo(p, conninfo);
    else
        pair_conninfo_of(p, strcmp(of, "b") == 0, conninfo);
    (void)puts(conninfo);
    return 0;
}

/* Servers outlive who makes them; a script that is killed cannot end them any more. */
static int guard(struct pair *p, const char *dir, pid_t pid)
{
    if (pid <= 1)
        return usage();
    while (kill(pid, 0) == 0)
        (void)usleep(LOOK_US);
    if (pair_load(p, dir))
        pair_end(p);
    return 0;
}

int main(int argc, char **argv)
{
    struct pair p = {.outlives = true};

    if (argc < 3 || argc > 4)
        return usage();
    if (argc == 3)
        return to_both(&p, argv[1], argv[2]);
    if (strcmp(argv[2], "guard") == 0)
        return guard(&p, argv[1], (pid_t)strtol(argv[3], NULL, 10));
    if (!pair_load(&p, argv[1]))
        return usage();
    if (strcmp(argv[2], "pool") == 0) {
        pair_pool(&p, argv[3]);
        return 0;
    }
    int which = strcmp(argv[3], "b") == 0;
    bool is_one = which || strcmp(argv[3], "a") == 0;
    if (strcmp(argv[2], "conninfo") == 0 && (is_one || strcmp(argv[3], "pool") == 0))
        return conninfo_of(&p, argv[3]);
    return is_one ? to_one(&p, argv[2], which) : usage();
}
