/* Implements links_kit.h: a server whose tasks ask people, and a client without a token that has
 * only a link. For approval-links_test.c and approval-attacks_test.c. */

#include "links_kit.h"

#include <stdlib.h>

struct node node, ann, bob, zoe, mailer;
int links_ids;

#define STEP(more)                                                                            \
    "{\"name\": \"allow\", \"approve\": {\"by\": \"finance\", \"question\": \"Pay ${ .input " \
    "}?\"" more "}}"
static const char two[] = "\"steps\": [" STEP(", \"people\": 2") "]";
static const char other[] = "\"steps\": [" STEP(", \"not\": \"submitter\"") "]";
static const char both[] = "\"steps\": [" STEP(
    ", \"people\": 2") ", {\"name\": \"again\", "
                       "\"approve\": {\"by\": \"finance\", \"question\": \"Sure?\"}}]";
static const char hurry[] =
    "\"steps\": [{\"name\": \"allow\", \"approve\": {\"by\": \"finance\", \"question\": \"Now?\"}, "
    "\"complete_by\": \"1s\", \"on_failure\": \"hold\"}]";

static struct node person(const char *name, const char *who, const char *groups)
{
    CLEANUP(buf_fini) struct buf roles = {0};
    char token[64];

    buf_fmt(&roles, "\"approve\", \"submit\"], \"person\": \"%s\", \"groups\": [%s", who, groups);
    make_token(&node, name, roles.ptr, NULL, token);
    return as(&node, token);
}

void links_begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms", "--log", "debug"));
}

int links_start(void **state)
{
    char token[64];

    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms", "--log", "debug"));
    ann = person("ann", "ann", "\"finance\"");
    bob = person("bob", "bob@example.org", "\"finance\", \"board\"");
    zoe = person("zoe", "zoe", "\"sales\"");
    make_token(&node, "mailer", "\"link\"", NULL, token);
    mailer = as(&node, token);
    (void)define(&node, "two", two);
    (void)define(&node, "other", other);
    (void)define(&node, "both", both);
    (void)define(&node, "hurry", hurry);
    return 0;
}

/* A new task that asks; its id is good until the next one. */
const char *asks_as(const struct node *n, const char *workflow, const char *input)
{
    static char id[32];
    REPLY r = {0};

    (void)snprintf(id, sizeof id, "k-%d", ++links_ids);
    post(n, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": %s}", workflow, id,
         input);
    EXPECT(&r, 201);
    return id;
}

const char *asks(const char *workflow)
{
    return asks_as(&node, workflow, "80");
}

void makes(const struct node *n, struct reply *r, const char *id, const char *body)
{
    char path[120];

    (void)snprintf(path, sizeof path, "/v1/approvals/%s/allow/link", id);
    post(n, r, path, "%s", body);
}

/* The path of a link for that person; to be freed. */
char *link_for(const char *id, const char *who)
{
    REPLY r = {0};
    char body[100];

    (void)snprintf(body, sizeof body, "{\"person\": \"%s\"}", who);
    makes(&mailer, &r, id, body);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "person", who);
    EXPECT_TEXT(&r, "step", "allow");
    const char *path = strstr(text_at(&r, "url"), "/v1/approvals/");
    CHECK(path && strncmp(text_at(&r, "url"), "http://127.0.0.1:", 17) == 0, "%.*s",
          SLICE_ARG(r.body));
    return strdup(path);
}

/* Nobody sends a token with a link. */
void opens(struct reply *r, const char *path)
{
    const struct node stranger = as(&node, "");

    send_as(&stranger, r, "GET", path, NULL, SLICE_NONE);
}

void sends(struct reply *r, const char *path, const char *form)
{
    const struct node stranger = as(&node, "");

    send_as(&stranger, r, "POST", path, FORM, slice_of(form));
}

bool body_has(const struct reply *r, const char *text)
{
    return memmem(r->body.ptr, r->body.len, text, strlen(text)) != NULL;
}

/* Whatever it says, it is to stay where it is. */
void expect_page(const struct reply *r, int status, const char *text)
{
    static const char *const lines[] = {
        "Content-Type: text/html; charset=utf-8",
        "Cache-Control: no-store",
        "Content-Security-Policy: default-src 'none'; style-src 'sha256-",
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        "Referrer-Policy: same-origin",
        "X-Content-Type-Options: nosniff",
        "X-Frame-Options: DENY",
    };

    EXPECT(r, status);
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        CHECK(head_has(r, lines[i]), "%s: %.*s", lines[i], SLICE_ARG(r->head));
    CHECK(body_has(r, text), "\"%s\" is not in %.*s", text, SLICE_ARG(r->body));
    CHECK(!body_has(r, "<script"), "no script");
}

int64_t agreed(const char *id)
{
    REPLY r = {0};

    task_of(&node, &r, id);
    EXPECT_TEXT(&r, "steps.0.state", "waiting");
    return int_at(&r, "steps.0.approval.agreed");
}

void votes(const struct node *n, const char *id)
{
    REPLY r = {0};
    char path[80];

    (void)snprintf(path, sizeof path, "/v1/approvals/%s/allow/approve", id);
    post(n, &r, path, "{}");
    EXPECT(&r, 200);
}

void call(struct reply *r, const char *method, const char *path, const char *fields,
          const char *form)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int fd = dial(&node);

    buf_fmt(&b, "%s %s HTTP/1.1\r\nConnection: close\r\n%s", method, path, fields);
    if (form)
        buf_fmt(&b, "Content-Type: " FORM "\r\nContent-Length: %zu\r\n", strlen(form));
    buf_fmt(&b, "\r\n%s", form ? form : "");
    say(fd, buf_view(&b));
    hear(fd, r);
}
