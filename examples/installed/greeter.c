/* The smallest agent that is of use: greets whoever its input names. See greeting.json. */

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
        intact_answer_error(r, &(struct intact_error){.code = "too_long"});
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
    static const struct intact_handler handlers[] = {{.action = "greet", .run = greet}};

    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    return (int)intact_agent_run(&(struct intact_agent_options){
        .agent = "greeter", .instance = "greeter-1", .handlers = handlers, .handler_count = 1});
}
