/* A long step: copies so many pages as its input says, tells how far it is, and goes on where an
 * earlier attempt had to stop. See pages.json. */

#include <intact/agent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* Stands for a copier, which does not work each time. */
static int copy_page(long page)
{
    static unsigned calls;

    (void)page;
    return ++calls % 3 != 0;
}

/* Tries again, with longer and longer waits, for as long as there is time. */
static int copy_at_last(struct intact_request *r, long page)
{
    do {
        intact_request_try(r);
        if (copy_page(page))
            return 1;
    } while (intact_request_retry(r, 0));
    return 0;
}

static void copy(struct intact_request *r, void *arg)
{
    const char *resume = intact_request_resume(r);
    long pages = strtol(intact_request_input(r), NULL, 10);
    char progress[80];
    char next[30];

    (void)arg;
    for (long page = resume ? strtol(resume, NULL, 10) : 0; page < pages; page++) {
        if (page == pages / 2 && !resume) { /* so that there is something to see */
            intact_answer_error(r, "out_of_paper", "there is no paper left",
                                INTACT_RETRYABLE | INTACT_EFFECT_UNKNOWN);
            return;
        }
        if (!copy_at_last(r, page)) {
            intact_answer_error(r, "broken", "the copier does not work", INTACT_RETRYABLE);
            return;
        }
        snprintf(progress, sizeof progress, "{\"done\": %ld, \"of\": %ld}", page + 1, pages);
        snprintf(next, sizeof next, "%ld", page + 1);
        intact_heartbeat_resume(r, progress, "copying", next);
        if (intact_request_should_stop(r)) {
            intact_answer_error(r, "stopped", NULL, INTACT_RETRYABLE);
            return;
        }
    }
    snprintf(progress, sizeof progress, "{\"pages\": %ld, \"begun_at\": %s}", pages,
             resume ? resume : "0");
    intact_answer(r, progress);
}

static void on_signal(int signal)
{
    (void)signal;
    intact_agent_stop();
}

int main(void)
{
    struct intact_agent *a = intact_agent_new("copier");

    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    intact_agent_set_instance(a, "copier-1");
    intact_agent_set_retry(a, 0, 10, 1000);
    intact_agent_on(a, "copy", INTACT_FORWARD, copy, NULL);
    return (int)intact_agent_run(a);
}
