/* A client with many calls at a time on one thread: submits COUNT tasks, and says of each how it
 * ended. Usage: many_tasks WORKFLOW INPUT COUNT */

#include <intact/client.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned long processed;

static void on_answer(const struct intact_reply *reply, void *arg)
{
    (void)arg;
    if (intact_reply_status(reply) != INTACT_OK)
        fprintf(stderr, "%s\n", intact_reply_error(reply));
    else if (strstr(intact_reply_body(reply), "\"state\":\"processed\""))
        processed++;
    else
        fprintf(stderr, "not processed: %s\n", intact_reply_body(reply));
}

int main(int argc, char **argv)
{
    char task[1000];
    unsigned long count = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    struct intact_client *c = count > 0 ? intact_client_new(NULL, NULL) : NULL;
    struct pollfd p = {0, POLLIN, 0};

    if (!c) {
        fprintf(stderr, "usage: many_tasks WORKFLOW INPUT COUNT\n");
        return 2;
    }
    intact_client_set_connections(c, 100);
    snprintf(task, sizeof task, "{\"workflow\": \"%s\", \"input\": %s}", argv[1], argv[2]);
    for (unsigned long i = 0; i < count; i++)
        intact_client_start_submit(c, task, 60000, on_answer,
                                   NULL); /* answered when it has ended */
    p.fd = intact_client_fd(c);
    while (intact_client_drive(c) > 0)
        poll(&p, 1, intact_client_timeout_ms(c));
    intact_client_free(c);
    printf("%lu of %lu processed\n", processed, count);
    return processed == count ? 0 : 1;
}
