/* The smallest useful agent: greets whoever the input of its step names. greeting.json is its
 * workflow. It compiles against the installed <intact/agent.h>, and stops on a signal. */

#include <intact/agent.h>
#include <signal.h>
#include <stdio.h>

static void greet(struct intact_request *r, void *arg)
{
    char answer[4096];
    (void)arg;

    int len =
        snprintf(answer, sizeof answer, "{\"greeting\": [\"hello\", %s]}", intact_request_input(r));
    if (len < 0 || (size_t)len >= sizeof answer)
        intact_answer_error(r, "too_long", NULL, INTACT_PERMANENT);
    else
        intact_answer(r, answer);
}

static void on_signal(int signal)
{
    (void)signal;
    intact_agent_stop();
}

int main(void)
{
    struct intact_agent *a = intact_agent_new("greeter");

    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    intact_agent_set_instance(a, "greeter-1");
    intact_agent_on(a, "greet", INTACT_FORWARD, greet, NULL);
    return (int)intact_agent_run(a);
}
