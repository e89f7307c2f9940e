/* Agents without ledgers, for measuring the server: each answers at once with about 300 bytes, or
 * with the number of bytes given. All named agents run in this process, one thread each. The action
 * "refuse" is refused until SIGUSR1. Usage: bench-agent [--answer BYTES] PLACES AGENT... */

#include <intact/agent.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGENTS_MAX = 16 };

static const char receipt[] =
    "{\"id\":\"0123456789abcdef\",\"text\":\"three hundred bytes of payload are what figures are "
    "quoted with unless something else is said, so here they are: a receipt, a parcel's number, an "
    "address, whatever a service is likely to answer with when it was asked to do something and "
    "did so without much ado\",\"n\":12345}";

static const char *output = receipt;
static unsigned places;
static volatile sig_atomic_t mended;

static void answer(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, output);
}

static void refuse(struct intact_request *r, void *arg)
{
    (void)arg;
    if (mended)
        intact_answer(r, output);
    else
        intact_answer_error(r, "declined", "not now", INTACT_PERMANENT);
}

/* {"text":"aaa..."} of exactly `bytes` bytes; NULL if `bytes` is too small. */
static char *answer_of(size_t bytes)
{
    static const char head[] = "{\"text\":\"";
    char *text = bytes < sizeof head + 2 ? NULL : malloc(bytes + 1);

    if (!text)
        return NULL;
    memset(text, 'a', bytes);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + bytes - 2, "\"}", 3);
    return text;
}

static void *run(void *arg)
{
    const char *name = arg;
    char instance[64];
    struct intact_agent *a = intact_agent_new(name);

    (void)snprintf(instance, sizeof instance, "%s-1", name);
    intact_agent_on(a, "do", INTACT_ANY, answer, NULL);
    intact_agent_on(a, "undo", INTACT_ANY, answer, NULL);
    intact_agent_on(a, "refuse", INTACT_ANY, refuse, NULL);
    intact_agent_set_instance(a, instance);
    intact_agent_set_concurrency(a, places);
    intact_agent_set_inline(a, true);
    (void)intact_agent_run(a);
    intact_agent_free(a);
    return NULL;
}

static void on_signal(int signum)
{
    if (signum == SIGUSR1)
        mended = 1;
    else
        intact_agent_stop();
}

int main(int argc, char **argv)
{
    pthread_t threads[AGENTS_MAX];
    char *text = NULL;

    if (argc > 2 && strcmp(argv[1], "--answer") == 0) {
        text = answer_of(strtoul(argv[2], NULL, 10));
        output = text;
        argv += 2;
        argc -= 2;
    }
    int count = argc - 2;
    if (!output || count < 1 || count > AGENTS_MAX) {
        (void)fprintf(stderr, "usage: bench-agent [--answer BYTES] PLACES AGENT...\n");
        return 2;
    }
    places = (unsigned)strtoul(argv[1], NULL, 10);
    (void)signal(SIGTERM, on_signal);
    (void)signal(SIGUSR1, on_signal);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, run, argv[i + 2]) != 0)
            return 1;
    for (int i = 0; i < count; i++)
        (void)pthread_join(threads[i], NULL);
    free(text);
    return 0;
}
