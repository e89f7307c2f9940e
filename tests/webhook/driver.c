/*
 * The webhook channel, driven by a test: a configuration, deliveries on standard input, their
 * outcomes on standard output. Each line is a send:
 *
 *     TARGET ID SUBJECT [ID SUBJECT ...]
 *
 * and each delivery returns as a line, in the order in which the channel ends them:
 *
 *     ID delivered|retry|refused RETRY_AFTER_MS STORY
 *
 * "takes TARGET" prints whether the channel accepts it, "reload" reads the secrets again. The end
 * of the input drops deliveries in progress; "wait" first waits for all of them.
 * Usage: driver CONFIG
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "webhook/webhook.h"

struct one {
    struct link link;
    struct delivery d;
    char *text, *body;
};

static struct channel *channel;
static uv_loop_t loop;
static uv_poll_t input;
static struct link all = {&all, &all};
static size_t under_way;
static bool waits;

static void check_end(void)
{
    if (waits && under_way == 0)
        channel->ops->close(channel);
}

static void free_one(struct one *o)
{
    link_remove(&o->link);
    free(o->text);
    free(o->body);
    free(o);
}

static void on_done(void *arg, struct delivery **list, size_t count)
{
    static const char *const ends[] = {[DELIVERED] = "delivered",
                                       [DELIVERY_RETRY] = "retry",
                                       [DELIVERY_AWAY] = "away",
                                       [DELIVERY_REFUSED] = "refused"};
    (void)arg;

    for (size_t i = 0; i < count; i++) {
        struct one *o = CONTAINER_OF(list[i], struct one, d);
        printf("%.*s %s %" PRId64 " %s\n", SLICE_ARG(o->d.id), ends[o->d.end], o->d.retry_after_ms,
               o->d.story);
        free_one(o);
    }
    fflush(stdout);
    under_way -= count;
    check_end();
}

static struct delivery *delivery_of(const char *target, const char *id, const char *subject)
{
    struct one *o = calloc(1, sizeof *o);
    size_t len = strlen(target) + strlen(id) + strlen(subject) + 3;

    ASSERT(o);
    o->text = malloc(len);
    ASSERT(o->text);
    int at = snprintf(o->text, len, "%s%s%s", target, id, subject);
    ASSERT((size_t)at + 3 == len);
    if (asprintf(&o->body,
                 "{\"specversion\":\"1.0\",\"id\":\"%s\",\"source\":\"/intact/test\",\"type\":"
                 "\"intact.task.processed\",\"subject\":\"%s\",\"time\":\"2026-01-02T03:04:05Z\","
                 "\"datacontenttype\":\"application/json\",\"data\":{\"n\":1,\"s\":\"\xc3\xb6\"}}",
                 id, subject)
        < 0)
        out_of_memory(0);
    o->d.target = (struct slice){o->text, strlen(target)};
    o->d.id = (struct slice){o->text + strlen(target), strlen(id)};
    o->d.subject = (struct slice){o->text + strlen(target) + strlen(id), strlen(subject)};
    o->d.body = slice_of(o->body);
    list_push(&all, &o->link);
    return &o->d;
}

static void send_line(const char *target, char **rest)
{
    struct delivery *list[200];
    size_t count = 0;

    for (char *id = strtok_r(NULL, " ", rest); id && count < COUNT_OF(list);
         id = strtok_r(NULL, " ", rest)) {
        const char *subject = strtok_r(NULL, " ", rest);
        list[count++] = delivery_of(target, id, subject ? subject : "none");
    }
    ASSERT(count > 0);
    under_way += count;
    channel->ops->send(channel, list, count, on_done, NULL);
}

static void take_line(char *line)
{
    CLEANUP(buf_fini) struct buf faults = {0};
    struct error e = {0};
    char *rest = NULL;
    char *word = strtok_r(line, " ", &rest);

    if (!word)
        return;
    if (strcmp(word, "takes") == 0) {
        const char *target = strtok_r(NULL, " ", &rest);
        bool ok = channel->ops->takes(channel, slice_of(target ? target : ""), &e);
        printf("takes %s %s\n", ok ? "yes" : "no", e.text);
    } else if (strcmp(word, "reload") == 0) {
        bool ok = webhook_reload(channel, &faults);
        printf("reload %s %s", ok ? "yes" : "no", ok ? "\n" : faults.ptr);
    } else if (strcmp(word, "wait") == 0) {
        waits = true;
        uv_poll_stop(&input);
        uv_close((uv_handle_t *)&input, NULL);
        check_end();
    } else {
        send_line(word, &rest);
    }
    fflush(stdout);
}

static void on_input(uv_poll_t *p, int status, int events)
{
    static char text[1 << 16];
    static size_t len;
    (void)status;
    (void)events;

    ssize_t n = read(STDIN_FILENO, text + len, sizeof text - len);
    ASSERT(n >= 0);
    if (n == 0) {
        uv_close((uv_handle_t *)p, NULL);
        channel->ops->close(channel);
        return;
    }
    len += (size_t)n;
    char *from = text;
    for (char *end = NULL; !waits && (end = memchr(from, '\n', len - (size_t)(from - text)));
         from = end + 1) {
        *end = 0;
        take_line(from);
    }
    len -= (size_t)(from - text);
    memmove(text, from, len);
    ASSERT(len < sizeof text); /* lines are short */
}

struct settings {
    struct webhook_config webhooks;
};

static bool read_config(const char *path, struct arena *a, struct settings *s)
{
    static const struct field fields[] = {
        REQUIRED("webhooks", read_webhooks, offsetof(struct settings, webhooks))};
    static struct mistakes m;
    struct reader r = {.arena = a, .mistakes = &m};
    struct path root = {0};
    struct json *j = NULL;
    static char text[1 << 16];
    FILE *f = fopen(path, "re");

    ASSERT(f);
    size_t len = fread(text, 1, sizeof text, f);
    fclose(f);
    if (read_source(&r, (struct slice){text, len}, SOURCE_JSON, &j) == ERR_OK)
        read_object(&r, j, &root, fields, COUNT_OF(fields), s);
    for (size_t i = 0; i < m.count; i++)
        fprintf(stderr, "%s: %s, expected %s\n", m.list[i].path, m.list[i].found,
                m.list[i].expected);
    return m.count == 0;
}

int main(int argc, char **argv)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct settings s = {0};
    struct error e = {0};

    (void)signal(SIGPIPE, SIG_IGN);
    if (argc != 2 || !read_config(argv[1], &a, &s))
        return 2;
    uv_loop_init(&loop);
    channel = webhook_open(&loop, &s.webhooks, &e);
    if (!channel) {
        fprintf(stderr, "%s\n", e.text);
        return 2;
    }
    uv_poll_init(&loop, &input, STDIN_FILENO);
    uv_poll_start(&input, UV_READABLE, on_input);
    uv_run(&loop, UV_RUN_DEFAULT);
    int rc = uv_loop_close(&loop);
    ASSERT(rc == 0);
    LIST_FOREACH (l, after, &all) {
        free_one(CONTAINER_OF(l, struct one, link)); /* it was given up */
    }
    return 0;
}
