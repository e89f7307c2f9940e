/* The text of a token, which the server tells but once: asked for and printed, for `intact token
 * create` and `intact token rotate`. */

#include "cli/verbs/token_text.h"

#include <stdio.h>

#include "cli/client/client.h"
#include "cli/terminal/print.h"

int token_text_ask(struct invocation *in, const char *path, struct buf *body)
{
    CLEANUP(arena_fini) struct arena a = {0};
    int end = CLI_OK;

    struct intact_client *c = client_begin(in);
    const struct json *answer = client_ask(c, "POST", path, body, &a, &end);
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer) {
        print_text(stdout, json_get_text(answer, "token"));
        putchar('\n');
    }
    intact_client_free(c);
    return end;
}
