/* Says what came of a step whose result comes from elsewhere: decide TOKEN yes|no. The token of
 * the attempt is the only credential. A program outside this tree compiles like this one, against
 * the installed <intact/client.h>. */

#include <intact/client.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: decide TOKEN yes|no\n");
        return 2;
    }
    struct intact_client *c = intact_client_new(NULL, NULL); /* $INTACT_SERVER */
    enum intact_status status =
        strcmp(argv[2], "yes") == 0
            ? intact_attempt_complete(c, argv[1], "{\"approved\": true}")
            : intact_attempt_fail(c, argv[1], "{\"code\": \"refused\", \"retryable\": false}");

    if (status == INTACT_OK)
        printf("%s\n", intact_client_body(c));
    else
        fprintf(stderr, "%s\n", intact_client_error(c));
    intact_client_free(c);
    return status == INTACT_OK ? 0 : 1;
}
