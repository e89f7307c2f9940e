/* The smallest client that is of use: submits one task and prints how it ended.
 * Usage: submit WORKFLOW INPUT */

#include <intact/client.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    char task[1000];
    int result = 1;
    struct intact_client *c = argc == 3 ? intact_client_new(NULL, NULL) : NULL;

    if (!c) {
        fprintf(stderr, "usage: submit WORKFLOW INPUT\n");
        return 2;
    }
    snprintf(task, sizeof task, "{\"workflow\": \"%s\", \"input\": %s}", argv[1], argv[2]);
    if (intact_client_submit(c, task, 60000) == INTACT_OK) {
        puts(intact_client_body(c));
        result = 0;
    } else {
        fprintf(stderr, "%s\n", intact_client_error(c));
    }
    intact_client_free(c);
    return result;
}
