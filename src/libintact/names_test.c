/* Test of an agent with a server whose name lookup never completes: others must not wait for it.
 * getaddrinfo is replaced here, which libcurl calls in a thread of its own. */

#include "base/test.h"

#include <dlfcn.h>
#include <intact/agent.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "libintact/agent_kit.h"
#include "libintact/peer.h"

static atomic_bool is_over, was_asked, was_given_up;

typedef int lookup(const char *node, const char *service, const struct addrinfo *hints,
                   struct addrinfo **ret);

/* libcurl calls this one, in its own thread. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");
    lookup *real = NULL;

    memcpy(&real, &symbol, sizeof real);
    if (!node || strcmp(node, "nobody.test") != 0)
        return real(node, service, hints, ret);
    atomic_store(&was_asked, true);
    while (!atomic_load(&is_over))
        usleep(1000);
    return EAI_AGAIN;
}

static void log_line_of(void *arg, enum intact_log_level level, const char *line)
{
    (void)arg;
    (void)level;
    if (strstr(line, "event=call_failed server=http://nobody.test"))
        atomic_store(&was_given_up, true);
}

static void do_it(struct intact_request *r, void *arg)
{
    (void)arg;
    intact_answer(r, "1");
}

static void *run(void *arg)
{
    (void)intact_agent_run(arg);
    return NULL;
}

static void others_do_not_wait_for_its_name(void **state)
{
    pthread_t thread;
    char url[40];
    char servers[100];

    (void)state;
    m.fake.answer = answer_work;
    fake_open(&m.fake);
    fake_url(&m.fake, url);
    (void)snprintf(servers, sizeof servers, "http://nobody.test:7420,%s", url);
    struct intact_agent *a = intact_agent_new("pay desk");
    intact_agent_set_server(a, servers);
    intact_agent_on(a, "x", INTACT_ANY, do_it, NULL);
    intact_agent_set_log(a, log_line_of, NULL);
    pthread_create(&thread, NULL, run, a);
    add_jobs(5, "x", "forward", 600000);
    wait_done(5);
    while (!atomic_load(&was_given_up)) /* the lookup still runs */
        usleep(1000);
    add_jobs(5, "x", "forward", 600000);
    wait_done(10);
    intact_agent_stop_one(a);
    pthread_join(thread, NULL);
    intact_agent_free(a);
    CHECK(atomic_load(&was_asked), "somebody else resolves names");
    atomic_store(&is_over, true);
    fake_close(&m.fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(others_do_not_wait_for_its_name)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
