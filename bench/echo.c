/*
 * The floor of HTTP: a server that does nothing else, on the node's HTTP library and, as in the
 * node, with one thread for its loop. It accepts any request and answers 201 with the number of
 * bytes given in the query: POST /?answer=BYTES. Prints its port; ends with standard input. Usage:
 * bench-echo
 */

#include <stdio.h>
#include <stdlib.h>

#include "http/http.h"

enum { ANSWER_MAX = 1 << 20 };

static char answer[ANSWER_MAX];

static void handle(void *arg, struct http_request *r)
{
    struct slice wanted = http_query(r, "answer");
    unsigned long size = wanted.ptr ? strtoul(wanted.ptr, NULL, 10) : 0;
    (void)arg;

    http_answer(r, 201, "application/json",
                (struct slice){answer, size < ANSWER_MAX ? size : ANSWER_MAX}, NULL);
}

static void done(void *arg, struct http_request *r, bool sent)
{
    (void)arg, (void)r, (void)sent;
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    char c = 0;
    (void)status, (void)events;

    if (fread(&c, 1, 1, stdin) == 0)
        uv_stop(poll->loop);
}

int main(void)
{
    const struct http_handler handler = {.handle = handle, .done = done};
    struct http_server *server = NULL;
    struct error e = {0};
    uv_loop_t loop;
    uv_poll_t input;

    memset(answer, 'x', sizeof answer);
    (void)setvbuf(stdin, NULL, _IONBF, 0);
    if (uv_loop_init(&loop) != 0 || uv_poll_init(&loop, &input, 0) != 0
        || uv_poll_start(&input, UV_READABLE | UV_DISCONNECT, on_input) != 0)
        return 1;
    if (http_listen(&loop, "127.0.0.1:0", NULL, &handler, &server, &e) != ERR_OK) {
        (void)fprintf(stderr, "bench-echo: %s\n", e.text);
        return 1;
    }
    printf("%d\n", http_port(server));
    (void)fflush(stdout);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    http_close(server);
    uv_close((uv_handle_t *)&input, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) != 0;
}
