/* An agent that asks a person: it leaves the question and the attempt's token in a file, and
 * whoever has read it says what is to become of the step (decide.c). See approval.json. */

#include <intact/agent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void ask(struct intact_request *r, void *arg)
{
    const char *folder = (const char *)arg;
    char path[1000];

    snprintf(path, sizeof path, "%s/%s", folder, intact_request_task(r));
    FILE *f = fopen(path, "w");
    if (!f) {
        intact_answer_error(r, "no_file", path, INTACT_RETRYABLE | INTACT_EFFECT_NONE);
        return;
    }
    fprintf(f, "%s\n%s\n", intact_request_token(r), intact_request_input(r));
    if (fclose(f) == 0)
        intact_answer_elsewhere(r); /* it takes no place any more, and may last for days */
    else
        intact_answer_error(r, "no_file", path, INTACT_RETRYABLE | INTACT_EFFECT_NONE);
}

static void on_signal(int signal)
{
    (void)signal;
    intact_agent_stop();
}

int main(int argc, char **argv)
{
    struct intact_agent *a = intact_agent_new("office");
    char here[] = ".";

    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    intact_agent_set_instance(a, "office-1");
    intact_agent_on(a, "ask", INTACT_FORWARD, ask, argc > 1 ? argv[1] : here);
    return (int)intact_agent_run(a);
}
