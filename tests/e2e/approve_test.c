/* Approvals, with a real server that is killed around votes: who is asked, who may decide, and what
 * follows; what was acknowledged counts, once. */

#include <stdlib.h>

#include "base/when.h"
#include "kit.h"

static struct node node, ann, bob, cfo, zoe;

enum { VOTERS = 32, CROWD = 60 };

#define STEP(more)                                                                            \
    "{\"name\": \"allow\", \"approve\": {\"by\": \"finance\", \"question\": \"Pay ${ .input " \
    "}?\"" more "}"

static const char two[] =
    "\"steps\": [" STEP(", \"people\": 2") "}, {\"name\": \"pay\", \"agent\": "
                                           "\"bank\", \"action\": \"pay\", \"undo\": \"none\"}]";
static const char other[] = "\"steps\": [" STEP(", \"not\": \"submitter\"") "}]";
static const char hurry[] = "\"steps\": [" STEP("") ", \"complete_by\": \"1s\", \"on_failure\": "
                                                    "\"hold\"}]";
static const char otherwise[] = "\"steps\": [" STEP("") ", \"complete_by\": \"1s\", \"default\": "
                                                        "{\"approved\": false}}]";
static const char escalates[] = "\"steps\": [" STEP(", \"escalate\": {\"after\": \"1s\", \"to\": "
                                                    "\"cfo\"}") "}]";

static struct node person(const char *name, const char *groups)
{
    CLEANUP(buf_fini) struct buf roles = {0};
    char token[64];

    buf_fmt(&roles, "\"approve\", \"submit\"], \"groups\": [%s", groups);
    make_token(&node, name, roles.ptr, NULL, token);
    return as(&node, token);
}

static void begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    ann = person("ann", "\"finance\"");
    bob = person("bob", "\"finance\", \"board\"");
    cfo = person("cfo", "\"cfo\"");
    zoe = person("zoe", "\"sales\"");
    (void)define(&node, "two", two);
    (void)define(&node, "other", other);
    (void)define(&node, "hurry", hurry);
    (void)define(&node, "otherwise", otherwise);
    (void)define(&node, "escalates", escalates);
    return 0;
}

static void submit_as(const struct node *n, const char *workflow, const char *id)
{
    REPLY r = {0};

    post(n, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": 80}", workflow, id);
    EXPECT(&r, 201);
}

static void decides(const struct node *n, struct reply *r, const char *id, const char *what,
                    const char *body)
{
    char path[120];

    (void)snprintf(path, sizeof path, "/v1/approvals/%s/allow/%s", id, what);
    post(n, r, path, "%s", body);
}

static void approves(const struct node *n, const char *id)
{
    REPLY r = {0};

    decides(n, &r, id, "approve", "{}");
    EXPECT(&r, 200);
}

static bool waits_for(const struct node *n, const char *id)
{
    REPLY r = {0};
    char path[120];

    (void)snprintf(path, sizeof path, "/v1/approvals?task=%s", id);
    get(n, &r, "%s", path);
    EXPECT(&r, 200);
    return at(&r, "approvals.0") != NULL;
}

static void enough_agree(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_as(&node, "two", "a-1");
    CHECK(waits_for(&ann, "a-1") && waits_for(&bob, "a-1"), "they are asked");
    CHECK(!waits_for(&zoe, "a-1") && !waits_for(&cfo, "a-1"), "others are not");
    get(&node, &r, "/v1/tasks/a-1/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "approval");
    EXPECT_TEXT(&r, "reasons.0.text",
                "Step allow asks finance; 0 of 2 agreed. It asks: \"Pay 80?\"");
    decides(&ann, &r, "a-1", "approve", "{\"comment\": \"fine\", \"asking\": 1}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "agreed", 1);
    EXPECT_INT(&r, "people", 2);
    node_kill(&node); /* it was acknowledged */
    begin();
    CHECK(!waits_for(&ann, "a-1"), "she has decided");
    decides(&ann, &r, "a-1", "approve", "{}"); /* once more */
    EXPECT(&r, 200);
    EXPECT_INT(&r, "agreed", 1);
    decides(&ann, &r, "a-1", "reject", "{\"comment\": \"no\"}");
    expect_problem(&r, 409, "conflict");
    approves(&bob, "a-1");
    serve_step(&node, "bank", "i", "1");
    wait_for_state(&node, "a-1", "processed");
    task_of(&node, &r, "a-1");
    EXPECT_TEXT(&r, "steps.0.kind", "approve");
    EXPECT_TEXT(&r, "steps.0.input", "Pay 80?");
    EXPECT_RAW(&r, "steps.0.output.approved", "true");
    EXPECT_TEXT(&r, "steps.0.output.votes.0.by", "ann");
    EXPECT_TEXT(&r, "steps.0.output.votes.0.comment", "fine");
    EXPECT_TEXT(&r, "steps.0.output.votes.1.by", "bob");
    EXPECT_TEXT(&r, "operations.0.verb", "approve");
    EXPECT_TEXT(&r, "operations.0.actor", "ann");
    EXPECT_TEXT(&r, "operations.0.detail.person", "ann");
    EXPECT_TEXT(&r, "operations.1.actor", "bob");
    CHECK(!at(&r, "operations.2"), "each once: %.*s", SLICE_ARG(r.body));
}

static void one_rejects(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_as(&node, "two", "a-2");
    decides(&bob, &r, "a-2", "reject", "{}");
    expect_problem(&r, 422, "no-comment");
    decides(&bob, &r, "a-2", "reject", "{\"comment\": \"too much\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "agrees", "false");
    wait_for_state(&node, "a-2", "compensated");
    task_of(&node, &r, "a-2");
    EXPECT_TEXT(&r, "error.code", "rejected");
    EXPECT_TEXT(&r, "error.message", "too much");
    decides(&ann, &r, "a-2", "approve", "{}");
    expect_problem(&r, 409, "conflict");
}

static void who_is_not_asked_learns_nothing(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_as(&node, "two", "a-3");
    decides(&zoe, &r, "a-3", "approve", "{}");
    expect_problem(&r, 404, "no-such-approval");
    decides(&zoe, &r, "nowhere", "approve", "{}");
    expect_problem(&r, 404, "no-such-approval");
    post(&ann, &r, "/v1/approvals/a-3/pay/approve", "{}");
    expect_problem(&r, 404, "no-such-approval");
    decides(&ann, &r, "a-3", "approve", "{\"asking\": 0}");
    expect_problem(&r, 422, "bad-asking");
    decides(&ann, &r, "a-3", "approve", "{\"comment\": 7}");
    expect_problem(&r, 422, "bad-comment");
    decides(&ann, &r, "a-3", "approve", "{\"reason\": \"x\"}");
    expect_problem(&r, 422, "unknown-member");
    get(&ann, &r, "/v1/approvals?all=true");
    expect_problem(&r, 403, "forbidden");
    get(&ann, &r, "/v1/approvals?all=perhaps");
    expect_problem(&r, 422, "bad-filter");
    get(&ann, &r, "/v1/approvals?limit=0");
    expect_problem(&r, 422, "bad-limit");
    get(&ann, &r, "/v1/approvals?cursor=x");
    expect_problem(&r, 422, "bad-cursor");
    get(&ann, &r, "/v1/approvals?task=%%20");
    expect_problem(&r, 422, "bad-ids");
    get(&ann, &r, "/v1/approvals?group=finance");
    expect_problem(&r, 422, "unknown-parameter");
    get(&node, &r, "/v1/approvals?all=true&task=a-3");
    EXPECT_TEXT(&r, "approvals.0.task", "a-3");
    EXPECT_RAW(&r, "approvals.0.waits_for_you", "false");
}

/* Agreeing and rejecting, alike. */
static void what_is_wrong_with_a_decision_is_said(void **state)
{
    static const char *const verbs[] = {"approve", "reject"};
    REPLY r = {0};
    (void)state;

    submit_as(&ann, "other", "a-17");
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        decides(&bob, &r, "a-17", verbs[i], "{\"comment\": 7}");
        expect_problem(&r, 422, "bad-comment");
        decides(&bob, &r, "a-17", verbs[i], "{\"comment\": \"x\", \"asking\": \"1\"}");
        expect_problem(&r, 422, "bad-asking");
        decides(&bob, &r, "a-17", verbs[i], "{\"comment\": \"x\", \"reason\": \"x\"}");
        expect_problem(&r, 422, "unknown-member");
        decides(&bob, &r, "a-17", verbs[i], "{\"comment\": \"x\", \"asking\": 2}");
        expect_problem(&r, 409, "asked-anew");
        decides(&ann, &r, "a-17", verbs[i], "{\"comment\": \"x\"}");
        expect_problem(&r, 403, "forbidden");
        decides(&zoe, &r, "a-17", verbs[i], "{\"comment\": \"x\"}");
        expect_problem(&r, 404, "no-such-approval");
    }
    approves(&bob, "a-17");
    wait_for_state(&node, "a-17", "processed");
}

static void not_by_who_submitted_it(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_as(&ann, "other", "a-4");
    decides(&ann, &r, "a-4", "approve", "{}");
    expect_problem(&r, 403, "forbidden");
    CHECK(!waits_for(&ann, "a-4") && waits_for(&bob, "a-4"), "she is not asked");
    approves(&bob, "a-4");
    wait_for_state(&node, "a-4", "processed");
}

static void is_one_person(const struct node *phone)
{
    REPLY r = {0};

    decides(phone, &r, "a-15", "approve", "{}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "person", "ann");
    EXPECT_INT(&r, "agreed", 1);
    approves(&ann, "a-15");
    CHECK(!waits_for(&ann, "a-15") && !waits_for(phone, "a-15"), "she has decided");
    decides(&ann, &r, "a-15", "reject", "{\"comment\": \"no\"}");
    expect_problem(&r, 409, "conflict");
    CHECK(!waits_for(&ann, "a-16") && !waits_for(phone, "a-16"), "she submitted it");
    decides(&ann, &r, "a-16", "approve", "{}");
    expect_problem(&r, 403, "forbidden");
    decides(phone, &r, "a-16", "approve", "{}");
    expect_problem(&r, 403, "forbidden");
}

/* Also with another text of her token, with limits, and after a restart. */
static void a_person_with_two_tokens_is_one(void **state)
{
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "ann-phone",
               "\"approve\", \"submit\"], \"person\": \"ann\", \"groups\": [\"finance\"", NULL,
               token);
    struct node phone = as(&node, token);
    submit_as(&node, "two", "a-15");
    submit_as(&phone, "other", "a-16");
    is_one_person(&phone);
    post(&node, &r, "/v1/tokens/ann-phone/rotate", "{\"keep\": \"0s\"}");
    EXPECT(&r, 200);
    phone = as(&node, text_at(&r, "token"));
    send_as(&node, &r, "PUT", "/v1/tokens/ann-phone", "application/json",
            SLICE("{\"limits\": {\"calls\": 1000}}"));
    EXPECT(&r, 200);
    is_one_person(&phone);
    node_kill(&node);
    begin();
    is_one_person(&phone);
    approves(&bob, "a-16");
    wait_for_state(&node, "a-16", "processed");
    approves(&bob, "a-15");
    serve_step(&node, "bank", "i", "1");
    wait_for_state(&node, "a-15", "processed");
    task_of(&node, &r, "a-15");
    EXPECT_TEXT(&r, "steps.0.output.votes.0.by", "ann");
    EXPECT_TEXT(&r, "steps.0.output.votes.1.by", "bob");
    EXPECT_TEXT(&r, "operations.0.actor", "ann-phone");
    EXPECT_TEXT(&r, "operations.0.detail.person", "ann");
    EXPECT_TEXT(&r, "operations.1.actor", "bob");
}

/* Whoever stored the schedule, whoever has it run. */
static void not_by_the_author_of_a_schedule(void **state)
{
    static const char text[] = "intact: 1\nschedule: payday\nworkflow: other\n"
                               "cron: \"0 0 1 1 *\"\ninput: 80\n";
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "dora", "\"approve\", \"define\"], \"groups\": [\"finance\"", NULL, token);
    struct node dora = as(&node, token);
    send_as(&dora, &r, "PUT", "/v1/schedules/payday", "application/yaml", slice_of(text));
    EXPECT(&r, 201);
    post(&node, &r, "/v1/schedules/payday/run", "{\"reason\": \"test\"}");
    EXPECT(&r, 202);
    CLEANUP(buf_fini) struct buf id = {0};
    buf_str(&id, text_at(&r, "task"));
    WAIT_FOR(waits_for(&bob, id.ptr), "he is asked");
    CHECK(!waits_for(&dora, id.ptr), "she is not");
    decides(&dora, &r, id.ptr, "approve", "{}");
    expect_problem(&r, 403, "forbidden");
    approves(&bob, id.ptr);
    wait_for_state(&node, id.ptr, "processed");
}

static void put_schedule(const struct node *n, struct reply *r, const char *name,
                         const char *workflow)
{
    CLEANUP(buf_fini) struct buf text = {0};
    char path[80];

    buf_fmt(&text, "intact: 1\nschedule: %s\nworkflow: %s\ncron: \"0 0 1 1 *\"\ninput: 80\n", name,
            workflow);
    (void)snprintf(path, sizeof path, "/v1/schedules/%s", name);
    send_as(n, r, "PUT", path, "application/yaml", buf_view(&text));
}

/* Nobody knows who stored a schedule at an open server. Whoever stores it again says so. */
static void a_schedule_of_nobody_is_stored_again(void **state)
{
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "emil", "\"approve\", \"define\"], \"groups\": [\"finance\"", NULL, token);
    struct node emil = as(&node, token);
    (void)define(&node, "later", two);
    node_kill(&node);
    node_start(&node, FLAGS("--open", "--scan-every", "100ms", "--drain", "200ms"));
    put_schedule(&node, &r, "refused", "other");
    expect_problem(&r, 422, "no-submitter");
    put_schedule(&node, &r, "nobodys", "later");
    EXPECT(&r, 201);
    node_kill(&node);
    begin();
    (void)define(&node, "later", other);
    put_schedule(&emil, &r, "nobodys", "later");
    EXPECT(&r, 201);
    EXPECT_INT(&r, "version", 2);
    put_schedule(&bob, &r, "nobodys", "later");
    EXPECT(&r, 403); /* he may not */
    put_schedule(&node, &r, "nobodys", "later");
    EXPECT(&r, 200); /* it has its author */
    post(&node, &r, "/v1/schedules/nobodys/run", "{\"reason\": \"test\"}");
    EXPECT(&r, 202);
    CLEANUP(buf_fini) struct buf id = {0};
    buf_str(&id, text_at(&r, "task"));
    WAIT_FOR(waits_for(&bob, id.ptr), "he is asked");
    decides(&emil, &r, id.ptr, "approve", "{}");
    expect_problem(&r, 403, "forbidden");
    approves(&bob, id.ptr);
    wait_for_state(&node, id.ptr, "processed");
}

static void with_another_input_it_is_asked_anew(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_as(&node, "two", "a-5");
    approves(&ann, "a-5");
    post(&node, &r, "/v1/tasks/a-5/correct", "{\"input\": 90, \"reason\": \"a slip\"}");
    EXPECT(&r, 200);
    WAIT_FOR(waits_for(&ann, "a-5"), "she is asked anew");
    get(&ann, &r, "/v1/approvals?task=a-5");
    EXPECT_TEXT(&r, "approvals.0.question", "Pay 90?");
    EXPECT_INT(&r, "approvals.0.asking", 2);
    EXPECT_INT(&r, "approvals.0.agreed", 0);
    decides(&ann, &r, "a-5", "approve", "{\"asking\": 1}");
    expect_problem(&r, 409, "asked-anew");
    approves(&ann, "a-5");
    approves(&bob, "a-5");
    serve_step(&node, "bank", "i", "1");
    wait_for_state(&node, "a-5", "processed");
}

static void nobody_decides_in_time(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_as(&node, "hurry", "a-6");
    submit_as(&node, "otherwise", "a-7");
    wait_for_state(&node, "a-6", "error");
    wait_for_state(&node, "a-7", "processed");
    task_of(&node, &r, "a-7");
    EXPECT_RAW(&r, "steps.0.output.approved", "false");
    task_of(&node, &r, "a-6");
    EXPECT_TEXT(&r, "error.code", "not_approved");
}

static void others_are_asked_after_a_while(void **state)
{
    (void)state;

    submit_as(&node, "escalates", "a-8");
    WAIT_FOR(waits_for(&cfo, "a-8"), "it escalates");
    approves(&cfo, "a-8");
    wait_for_state(&node, "a-8", "processed");
}

static const struct json *alert_of(const struct reply *r, const char *workflow, const char *group)
{
    const struct json *list = at(r, "alerts");

    for (const struct json *j = list ? list->child : NULL; j; j = j->next) {
        const struct json *labels = json_get(j, "labels");
        if (slice_is(json_get_text(j, "condition"), "approval_waiting")
            && slice_is(json_get_text(labels, "workflow"), workflow)
            && slice_is(json_get_text(labels, "step"), "allow")
            && slice_is(json_get_text(labels, "group"), group))
            return j;
    }
    return NULL;
}

static bool is_told(const char *workflow, const char *group, const char *task)
{
    REPLY r = {0};

    get(&node, &r, "/v1/alerts?state=open");
    EXPECT(&r, 200);
    const struct json *alert = alert_of(&r, workflow, group);
    const struct json *list = alert ? json_get(alert, "examples") : NULL;
    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        if (slice_is(j->text, task))
            return true;
    return false;
}

static void a_group_is_told_that_it_is_asked(void **state)
{
    (void)state;

    submit_as(&node, "two", "a-11");
    submit_as(&node, "escalates", "a-12");
    WAIT_FOR(is_told("two", "finance", "a-11") && is_told("escalates", "finance", "a-12"),
             "alerts");
    WAIT_FOR(is_told("escalates", "cfo", "a-12"), "one for those to whom it escalates");
    CHECK(!is_told("two", "cfo", "a-11"), "the others are not asked");
}

/* Whether so many tasks are counted, from the first one on. */
static bool is_told_of(int64_t count, int64_t *ret_notices)
{
    REPLY r = {0};
    REPLY asked = {0};

    get(&node, &r, "/v1/alerts?state=open");
    EXPECT(&r, 200);
    const struct json *alert = alert_of(&r, "crowd", "crowd");
    if (!alert || json_get_int(alert, "count", 0) != count)
        return false;
    get(&node, &asked, "/v1/approvals?all=true&task=crowd-0");
    CHECK(slice_is(json_get_text(alert, "first_at"), text_at(&asked, "approvals.0.asked_at")),
          "since the first: %.*s", SLICE_ARG(r.body));
    *ret_notices = json_get_int(alert, "notices", 0);
    return true;
}

/* A group is told of more questions than a page of the store has, with the oldest; and again when
 * there is one more. */
static void a_group_is_told_of_all(void **state)
{
    int64_t before = 0;
    int64_t after = 0;
    char id[24];
    (void)state;

    (void)define(&node, "crowd",
                 "\"steps\": [{\"name\": \"allow\", \"approve\": {\"by\": \"crowd\", "
                 "\"question\": \"Well?\"}}]");
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(id, sizeof id, "crowd-%d", i);
        submit_as(&node, "crowd", id);
    }
    WAIT_FOR(is_told_of(CROWD, &before), "all are counted");
    submit_as(&node, "crowd", "crowd-more");
    WAIT_FOR(is_told_of(CROWD + 1, &after), "one more");
    CHECK(after > before, "it is told");
}

static void an_admin_decides_in_their_place(void **state)
{
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "fixer", "\"repair\"", NULL, token);
    struct node fixer = as(&node, token);
    submit_as(&node, "other", "a-9");
    post(&fixer, &r, "/v1/tasks/a-9/skip", "{\"step\": \"allow\", \"reason\": \"x\"}");
    expect_problem(&r, 403, "forbidden");
    post(&fixer, &r, "/v1/tasks/a-9/supply",
         "{\"step\": \"allow\", \"output\": {}, \"reason\": \"x\"}");
    expect_problem(&r, 403, "forbidden");
    post(&node, &r, "/v1/tasks/a-9/supply",
         "{\"step\": \"allow\", \"output\": {\"approved\": true, \"overridden\": false}, "
         "\"reason\": \"by telephone\"}");
    EXPECT(&r, 200);
    task_of(&node, &r, "a-9");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_RAW(&r, "steps.0.output.approved", "true");
    EXPECT_RAW(&r, "steps.0.output.overridden", "true");
}

static void of_many(const struct node *n, struct reply *r, const char *dry_run)
{
    post(n, r, "/v1/operations",
         "{\"verb\": \"skip\", \"filter\": {\"ids\": [\"a-14\"]}, \"arguments\": {\"step\": "
         "\"allow\"}, \"reason\": \"test\", \"dry_run\": %s}",
         dry_run);
    EXPECT(r, strcmp(dry_run, "true") == 0 ? 200 : 202);
}

static bool is_done(const char *id, int refused)
{
    REPLY r = {0};

    get(&node, &r, "/v1/operations/%s", id);
    EXPECT(&r, 200);
    if (strcmp(text_at(&r, "state"), "done") != 0)
        return false;
    EXPECT_INT(&r, "done", 1 - refused);
    CHECK(!memmem(r.body.ptr, r.body.len, "people decide", 13) == !refused, "why: %.*s",
          SLICE_ARG(r.body));
    return true;
}

/* What it would do is what it does. */
static void an_admin_decides_on_many_in_their_place(void **state)
{
    CLEANUP(buf_fini) struct buf first = {0};
    CLEANUP(buf_fini) struct buf second = {0};
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "sweeper", "\"repair\"", NULL, token);
    struct node sweeper = as(&node, token);
    submit_as(&node, "two", "a-14");
    of_many(&sweeper, &r, "true");
    EXPECT_INT(&r, "matched", 1);
    EXPECT_INT(&r, "possible", 0);
    of_many(&sweeper, &r, "false");
    buf_str(&first, text_at(&r, "id"));
    WAIT_FOR(is_done(first.ptr, 1), "it is refused");
    of_many(&node, &r, "true");
    EXPECT_INT(&r, "possible", 1);
    of_many(&node, &r, "false");
    buf_str(&second, text_at(&r, "id"));
    WAIT_FOR(is_done(second.ptr, 0), "it is done");
    task_of(&node, &r, "a-14");
    EXPECT_TEXT(&r, "steps.0.state", "skipped");
    EXPECT_RAW(&r, "steps.0.output.overridden", "true");
    serve_step(&node, "bank", "i", "1");
    wait_for_state(&node, "a-14", "processed");
}

/* Or an operator would have 80000 paid where people allowed 80. */
static void what_they_allowed_stays_so(void **state)
{
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "mender", "\"repair\"", NULL, token);
    struct node mender = as(&node, token);
    submit_as(&node, "two", "a-13");
    post(&mender, &r, "/v1/tasks/a-13/correct", "{\"input\": 90, \"reason\": \"a slip\"}");
    EXPECT(&r, 200);
    post(&mender, &r, "/v1/tasks/a-13/correct",
         "{\"step\": \"pay\", \"input\": 80000, \"reason\": \"x\"}");
    expect_problem(&r, 403, "forbidden"); /* they are asked about 90 */
    approves(&ann, "a-13");
    approves(&bob, "a-13");
    post(&mender, &r, "/v1/tasks/a-13/correct", "{\"input\": 80000, \"reason\": \"x\"}");
    expect_problem(&r, 403, "forbidden");
    post(&mender, &r, "/v1/tasks/a-13/correct",
         "{\"step\": \"pay\", \"input\": 80000, \"reason\": \"x\"}");
    expect_problem(&r, 403, "forbidden");
    post(&mender, &r, "/v1/tasks/a-13/correct", "{\"input\": 90, \"reason\": \"once more\"}");
    EXPECT(&r, 200); /* it is that already */
    post(&mender, &r, "/v1/tasks/a-13/retry", "{\"from\": \"allow\", \"reason\": \"x\"}");
    EXPECT(&r, 200);
    post(&mender, &r, "/v1/tasks/a-13/correct", "{\"input\": 91, \"reason\": \"x\"}");
    EXPECT(&r, 200);
    WAIT_FOR(waits_for(&ann, "a-13"), "they are asked anew");
    approves(&ann, "a-13");
    approves(&bob, "a-13");
    post(&node, &r, "/v1/tasks/a-13/correct", "{\"input\": 92, \"reason\": \"an admin\"}");
    EXPECT(&r, 200);
    serve_step(&node, "bank", "i", "1");
    wait_for_state(&node, "a-13", "processed");
    post(&mender, &r, "/v1/tasks/a-13/correct", "{\"input\": 93, \"reason\": \"x\"}");
    expect_problem(&r, 409, "conflict");
}

enum { LONG_TASKS = 30, LONG_STEPS = 25 };

static void submit_long_ones(void)
{
    CLEANUP(buf_fini) struct buf steps = {0};
    CLEANUP(buf_fini) struct buf question = {0};

    while (question.len < 1900)
        buf_str(&question, "Is that so? ");
    buf_str(&steps, "\"steps\": [");
    for (int i = 0; i < LONG_STEPS; i++)
        buf_fmt(&steps,
                "%s{\"name\": \"s%d\", \"after\": [], \"approve\": {\"by\": \"readers\", "
                "\"question\": \"%.*s\"}}",
                i ? ", " : "", i, (int)question.len, question.ptr);
    buf_byte(&steps, ']');
    (void)define(&node, "long", steps.ptr);
    for (int i = 0; i < LONG_TASKS; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "long-%d", i);
        submit_as(&node, "long", id);
        (void)snprintf(id, sizeof id, "short-%d", i);
        submit_as(&node, "two", id);
    }
}

/* The pages of the list for that person; each question is on one of them. */
static int pages_of(const struct node *n, int limit, int questions)
{
    CLEANUP(buf_fini) struct buf cursor = {0};
    int pages = 0;
    int found = 0;

    do {
        REPLY r = {0};
        get(n, &r, "/v1/approvals?limit=%d%s%s", limit, cursor.len ? "&cursor=" : "",
            cursor.len ? cursor.ptr : "");
        EXPECT(&r, 200);
        const struct json *list = at(&r, "approvals");
        found += (int)list->count;
        CHECK((int)list->count <= limit * LONG_STEPS, "more than %d tasks", limit);
        struct slice next = json_get_text(r.json, "next");
        buf_clear(&cursor);
        buf_fmt(&cursor, "%.*s", SLICE_ARG(next));
        pages++;
    } while (cursor.len > 0 && pages < 1000);
    CHECK(found == questions, "%d of %d questions on %d pages", found, questions, pages);
    return pages;
}

/* However much there is to read, of one's own and of others. */
static void a_list_comes_in_pages(void **state)
{
    (void)state;

    submit_long_ones();
    struct node reader = person("reader", "\"readers\"");
    CHECK(pages_of(&reader, 2, LONG_TASKS * LONG_STEPS) >= LONG_TASKS / 2, "two on a page");
    CHECK(pages_of(&reader, 500, LONG_TASKS * LONG_STEPS) >= 2, "not all on one page");
    CHECK(pages_of(&zoe, 7, 0) <= 3, "others have none of them");
}

/* Whoever comes first: as many persons as are needed, no more, no fewer. */
static void many_vote_at_once(void **state)
{
    int fds[VOTERS];
    struct node voters[VOTERS];
    REPLY r = {0};
    int counted = 0;
    (void)state;

    for (int i = 0; i < VOTERS; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "voter-%d", i);
        voters[i] = person(name, "\"finance\"");
    }
    submit_as(&node, "two", "a-10");
    for (int i = 0; i < VOTERS; i++)
        fds[i] = ask(&voters[i], "POST", "/v1/approvals/a-10/allow/approve", "application/json",
                     SLICE("{}"));
    for (int i = 0; i < VOTERS; i++) {
        hear(fds[i], &r);
        CHECK(r.status == 200 || r.status == 409, "%d", r.status);
        counted += r.status == 200;
    }
    CHECK(counted == 2, "%d votes counted", counted);
    serve_step(&node, "bank", "i", "1");
    wait_for_state(&node, "a-10", "processed");
}

/* Killed at any moment: sent until it is acknowledged, it counts once. */
static void a_server_is_killed_around_votes(void **state)
{
    (void)state;

    for (int i = 0; i < 6; i++) {
        char id[24];
        char path[80];
        REPLY r = {0};
        (void)snprintf(id, sizeof id, "kill-%d", i);
        (void)snprintf(path, sizeof path, "/v1/approvals/%s/allow/approve", id);
        submit_as(&node, "two", id);
        int fd = ask(&ann, "POST", path, "application/json", SLICE("{}"));
        sleep_ms(i);
        node_kill(&node);
        hear(fd, &r);
        begin();
        approves(&ann, id);
        task_of(&node, &r, id);
        EXPECT_TEXT(&r, "steps.0.state", "waiting");
        EXPECT_INT(&r, "steps.0.approval.agreed", 1);
        approves(&bob, id);
        task_of(&node, &r, id);
        EXPECT_TEXT(&r, "steps.0.state", "completed");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(enough_agree),
        cmocka_unit_test(one_rejects),
        cmocka_unit_test(who_is_not_asked_learns_nothing),
        cmocka_unit_test(what_is_wrong_with_a_decision_is_said),
        cmocka_unit_test(not_by_who_submitted_it),
        cmocka_unit_test(a_person_with_two_tokens_is_one),
        cmocka_unit_test(not_by_the_author_of_a_schedule),
        cmocka_unit_test(a_schedule_of_nobody_is_stored_again),
        cmocka_unit_test(with_another_input_it_is_asked_anew),
        cmocka_unit_test(nobody_decides_in_time),
        cmocka_unit_test(others_are_asked_after_a_while),
        cmocka_unit_test(a_group_is_told_that_it_is_asked),
        cmocka_unit_test(a_group_is_told_of_all),
        cmocka_unit_test(an_admin_decides_in_their_place),
        cmocka_unit_test(an_admin_decides_on_many_in_their_place),
        cmocka_unit_test(what_they_allowed_stays_so),
        cmocka_unit_test(many_vote_at_once),
        cmocka_unit_test(a_server_is_killed_around_votes),
        cmocka_unit_test(a_list_comes_in_pages),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
