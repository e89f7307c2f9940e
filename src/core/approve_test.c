/* Steps that ask people: who may vote, when a vote decides, what becomes of votes that come early,
 * late or twice, what moves the complete-by, and when the question is asked anew. */
#include "core/core_test_kit.h"
#include "core/ready.h"
#include "core/reason.h"

static struct kit k;

static const struct kit_case of_votes[] = {
    {"enough agree", "a*", "begin a, agree a A, decided a = refused, agree a B, decided a",
     "processed a:completed"},
    {"one is enough where one is asked", "a=", "begin a, agree a A, decided a",
     "processed a:completed"},
    {"one rejects it", "a*", "begin a, agree a A, reject a B, decided a", "compensated a:failed"},
    {"at once", "a* b", "claim, start b, begin a, reject a A, decided a = accepted stop",
     "compensating a:failed b:running"},
    {"and the task stops in error", "a*#", "begin a, reject a A, decided a", "error a:failed"},
    {"or it goes on", "a*? b<a", "claim, begin a, reject a A, decided a, start b",
     "processing a:failed b:running"},
    {"persons are counted, not votes", "a*",
     "begin a, agree a A, agree a A = repeated, decided a = refused", "pending a:waiting"},
    {"nobody says one thing and then another", "a*",
     "begin a, agree a A, reject a A = refused, agree a B, reject a A = refused, decided a",
     "processed a:completed"},
    {"a repeated vote is one also after the decision",
     "a=", "begin a, agree a A, decided a, agree a A = repeated, agree a B = refused",
     "processed a:completed"},
    {"and after a rejection", "a*",
     "begin a, reject a A, decided a, reject a A = repeated, agree a A = refused, "
     "agree a B = refused",
     "compensated a:failed"},
    {"nobody votes before it is asked", "a b=<a", "claim, start a, agree b A = refused",
     "processing a:running b:waiting"},
    {"or when nothing is asked", "a b$", "begin b, agree a A = refused, agree b A = refused",
     "pending a:waiting b:waiting"},
    {"who is not asked has no vote", "a*", "begin a, agree a X = refused, reject a X = refused",
     "pending a:waiting"},
    {"others are asked when it escalates", "a*",
     "begin a, agree a H = refused, wait 5s, agree a H, agree a A, decided a",
     "processed a:completed"},
    {"and those who were stay so", "a*", "begin a, wait 6s, agree a A, reject a H, decided a",
     "compensated a:failed"},
    {"who submitted the task has no vote",
     "a=", "begin a, agree a S = refused, reject a S = refused", "pending a:waiting"},
    {"where that matters", "a*", "begin a, agree a S, agree a A, decided a",
     "processed a:completed"},
    {"in error votes are kept",
     "a# b=", "claim, start a, begin b, fail a, agree b A, decided b = refused, retry a, decided b",
     "processing a:waiting b:completed"},
    {"and while it is paused",
     "a=", "begin a, pause, agree a A, agree a B = refused, decided a = refused, resume, decided a",
     "processed a:completed"},
    {"not once it was closed", "a# b=",
     "claim, start a, begin b, fail a, close, agree b A = refused", "error a:failed b:waiting"},
    {"nor while it is undone", "a b=", "claim, start a, ok a, begin b, undo, agree b A = refused",
     "compensating a:completed b:waiting"},
    {"nor while it is about to be",
     "a! b c=", "claim, start a, start b, begin c, fail b, agree c A = refused",
     "processing/undo a:running b:failed c:waiting"},
    {"until a pivot prevents that", "a! b=",
     "claim, start a, begin b, undo, agree b A = refused, ok a = alert, agree b A, decided b",
     "processed a:completed b:completed"},
    {"nobody decides in time", "a*", "begin a, timeout-now a = refused, late a",
     "compensated a:failed"},
    {"or too few", "a*#", "begin a, agree a A, late a, agree a B = refused", "error a:failed"},
    {"or there is another output for that", "a;", "begin a, agree a A, late a",
     "processed a:completed"},
    {"which is none for a rejection", "a;", "begin a, reject a A, decided a",
     "compensated a:failed"},
    {"a vote that is decided on first is in time", "a*",
     "begin a, agree a A, wait 1m, agree a B, late a = refused, decided a",
     "processed a:completed"},
    {"without a complete-by it waits for ever", "a=", "begin a, wait 30d, timeout-now a = refused",
     "pending a:waiting"},
    {"its complete-by does not count in error", "a# b*",
     "claim, start a, begin b, fail a, late b = refused", "error a:failed b:waiting"},
    {"it is skipped", "a*", "begin a, agree a A, skip a, agree a B = refused",
     "processed a:skipped"},
    {"its output is supplied", "a* b<a", "claim, begin a, reject a A, supply a, start b",
     "processing a:completed b:running"},
    {"it has no attempts", "a=",
     "claim, begin a, start a = refused, due-now a = refused, take a k1 = refused, "
     "retry a = refused, correct a = refused",
     "processing a:waiting"},
    {"a call asks nobody", "a", "claim, decided a = refused", "processing a:waiting"},
};

static const struct kit_case of_questions[] = {
    {"with another input it is asked anew", "a*",
     "begin a, agree a A, correct, agree a B = refused, begin a, agree a B, decided a = refused, "
     "agree a A, decided a",
     "processed a:completed"},
    {"also if nobody voted", "a=",
     "begin a, correct, agree a A = refused, begin a, agree a A1 = refused, "
     "agree a A2, decided a",
     "processed a:completed"},
    {"in error, too", "a# b=",
     "claim, start a, begin b, agree b A, fail a, correct, retry a, begin b, decided b = refused",
     "processing a:waiting b:waiting"},
    {"and while it is paused",
     "a=", "begin a, agree a A, pause, correct, resume, decided a = refused, begin a",
     "pending a:waiting"},
    {"a vote is for the question that was asked",
     "a=", "begin a, agree a A2 = refused, agree a A1, decided a", "processed a:completed"},
    {"a decision stands", "a= b<a", "claim, begin a, agree a A, decided a, correct, start b",
     "processing a:completed b:running"},
    {"the same input is no other",
     "a=", "correct, begin a, agree a A, correct = repeated, decided a", "processed a:completed"},
    {"a rejected one is asked anew", "a*#",
     "begin a, reject a A, decided a, retry a, begin a, agree a A1 = refused, agree a A2, agree a "
     "B, "
     "decided a",
     "processed a:completed"},
    {"from there on", "a* b<a",
     "claim, begin a, agree a A, agree a B, decided a, from a, agree a A = refused, begin a, "
     "decided a = refused, agree a A2, agree a B2, decided a, start b",
     "processing a:completed b:running"},
    {"each has votes of its own",
     "a= b=", "begin a, begin b, agree b A, agree a A, decided a, from a, decided b",
     "pending a:waiting b:completed"},
};

static void votes(void **state)
{
    (void)state;
    kit_run(of_votes, COUNT_OF(of_votes));
    kit_run(of_questions, COUNT_OF(of_questions));
}

static void what_is_left_says_what_happened(void **state)
{
    (void)state;

    kit_make(&k, "a rejection", "a*#");
    kit_play(&k, "begin a, agree a A, reject a B, decided a");
    CHECK(slice_is(k.steps[0].error.code, "rejected"), "the code");
    CHECK(slice_is(k.steps[0].error.message, "too much"), "the comment");
    CHECK(k.t.vote_count == 2 && !step_in_doubt(&k.steps[0]), "the votes");
    kit_make(&k, "silence", "a*#");
    kit_play(&k, "begin a, late a");
    CHECK(slice_is(k.steps[0].error.code, "not_approved"), "the code");
    CHECK(slice_is(k.steps[0].error.message, "nobody decided by the step's complete-by"), "why");
    kit_make(&k, "too few", "a*#");
    kit_play(&k, "begin a, agree a A, late a");
    CHECK(slice_is(k.steps[0].error.message, "too few people agreed by the step's complete-by"),
          "why");
    kit_make(&k, "an output", "a;");
    kit_play(&k, "begin a, late a");
    CHECK(slice_is(k.steps[0].output.json, "{\"approved\":false}"), "default");
}

static void the_question_is_kept_as_it_was_asked(void **state)
{
    (void)state;

    kit_make(&k, "a question", "a=");
    CHECK(!k.steps[0].input.json.ptr, "not asked yet");
    kit_play(&k, "begin a");
    CHECK(slice_is(k.steps[0].input.json, "\"is it right?\""), "as asked");
    kit_play(&k, "agree a A, correct");
    CHECK(!k.steps[0].input.json.ptr && k.t.vote_count == 0, "it is void");
    CHECK(k.steps[0].generation == 1, "the next one is another");
}

static void what_moves_the_complete_by(void **state)
{
    const struct lost_time none = {0};
    int64_t by = KIT_BEGIN + GRAPH_SIGNAL_MS;
    (void)state;

    kit_make(&k, "a complete-by", "a*");
    kit_play(&k, "begin a");
    CHECK(task_wake_at(&k.t) == by, "the supervisor comes then");
    CHECK(signal_overdue_at(&k.t, 0, &none) == by, "it is overdue then");
    kit_play(&k, "wait 1s, pause");
    CHECK(task_wake_at(&k.t) == 0, "its clock stands");
    kit_play(&k, "wait 1m, resume");
    CHECK(task_wake_at(&k.t) == by + 60000, "the pause does not count");
    kit_play(&k, "correct, begin a");
    CHECK(task_wake_at(&k.t) == k.now + GRAPH_SIGNAL_MS, "who is asked anew has all the time");
}

static void what_waits_is_not_ready(void **state)
{
    struct ready ready[GRAPH_STEPS];
    (void)state;

    kit_make(&k, "ready", "a= b*");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 2, "both are to begin");
    kit_play(&k, "begin a, begin b");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 0, "both ask");
    CHECK(task_awaits_signal(&k.g.w, &k.t, k.now), "they wait");
    CHECK(!step_awaits_signal(&k.g.w, &k.t, 0, k.now), "for no signal");
    kit_play(&k, "agree a A");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 1 && ready[0].step == 0, "one was decided");
    CHECK(step_awaits_votes(&k.g.w, &k.t, 0, k.now), "which is to be done");
    kit_play(&k, "decided a, pause");
    CHECK(!task_awaits_signal(&k.g.w, &k.t, k.now), "nothing is decided while it is paused");
}

static enum obstacle obstacle(char person, bool agrees, uint32_t asking)
{
    return vote_obstacle(&k.g.w, &k.t, 0, kit_ballot(person, agrees, asking), k.now);
}

static void who_may_not_vote_is_told_why(void **state)
{
    (void)state;

    kit_make(&k, "obstacles", "a=");
    CHECK(obstacle('A', true, 0) == OBSTACLE_VOTE_UNASKED, "not yet");
    kit_play(&k, "begin a");
    CHECK(obstacle('X', true, 0) == OBSTACLE_VOTE_GROUP, "of no group");
    CHECK(obstacle('S', true, 0) == OBSTACLE_VOTE_SUBMITTER, "the submitter");
    CHECK(obstacle('A', true, 2) == OBSTACLE_VOTE_ANEW, "another question");
    CHECK(obstacle('A', true, 1) == OBSTACLE_NONE, "this one");
    k.t.submitter = k.t.owner = SLICE_NONE;
    CHECK(obstacle('A', true, 0) == OBSTACLE_VOTE_SUBMITTER, "it may have been anybody");
    k.t.owner = SLICE("A");
    CHECK(obstacle('A', true, 0) == OBSTACLE_VOTE_SUBMITTER, "a person of the token's name");
    k.t.owner = SLICE("till");
    kit_play(&k, "agree a A");
    CHECK(obstacle('A', false, 0) == OBSTACLE_VOTE_OTHER, "the opposite");
    CHECK(obstacle('A', true, 0) == OBSTACLE_NONE, "the same");
    CHECK(obstacle('B', true, 0) == OBSTACLE_ENDED, "it was decided");
    kit_play(&k, "decided a");
    CHECK(obstacle('B', true, 0) == OBSTACLE_STATE, "the task has ended");
    kit_make(&k, "obstacles", "a$");
    kit_play(&k, "begin a");
    CHECK(obstacle('A', true, 0) == OBSTACLE_VOTE_UNASKED, "a signal asks nobody");
}

static bool asks(const char *script)
{
    kit_make(&k, script, "a! b= c#");
    kit_play(&k, script);
    return step_is_asking(&k.g.w, &k.t, 1);
}

/* For lists and alerts: as long as votes count. */
static void who_is_asked(void **state)
{
    (void)state;

    CHECK(!asks("claim, start a"), "not yet");
    CHECK(asks("claim, start a, begin b"), "now");
    CHECK(asks("claim, begin b, pause"), "also in a pause");
    CHECK(asks("claim, start c, begin b, fail c"), "and in error");
    CHECK(!asks("claim, start c, begin b, fail c, close"), "until it is closed");
    CHECK(!asks("claim, begin b, agree b A"), "it is decided");
    CHECK(!asks("claim, start a, begin b, undo"), "it is to be undone");
    CHECK(asks("claim, start a, begin b, undo, ok a = alert"), "until its pivot took effect");
    CHECK(!asks("claim, start c, begin b, undo = accepted stop"), "it is being undone");
    CHECK(!step_is_asking(&k.g.w, &k.t, 0), "a call asks nobody");
}

static bool needs_admin(enum event_kind verb, int step)
{
    return operator_needs_admin(&k.g.w, &k.t, verb, step);
}

/* Otherwise an operator would have something else done than what people allowed. */
static void what_people_allowed_only_an_admin_changes(void **state)
{
    (void)state;

    kit_make(&k, "in their place", "a= b<a c<b d");
    CHECK(needs_admin(EVENT_SKIP, 0) && needs_admin(EVENT_SUPPLY, 0), "that is a decision");
    CHECK(!needs_admin(EVENT_SKIP, 1) && !needs_admin(EVENT_RETRY, 0), "that is none");
    CHECK(!needs_admin(EVENT_CORRECT, -1), "nothing was allowed: it is asked with that input");
    CHECK(needs_admin(EVENT_CORRECT, 1) && needs_admin(EVENT_CORRECT, 2), "nobody is asked that");
    CHECK(!needs_admin(EVENT_CORRECT, 3), "that does not need their approval");
    kit_play(&k, "claim, begin a, agree a A");
    CHECK(!needs_admin(EVENT_CORRECT, -1), "they have not decided");
    kit_play(&k, "decided a");
    CHECK(needs_admin(EVENT_CORRECT, -1) && needs_admin(EVENT_CORRECT, 1), "they have");
    CHECK(!needs_admin(EVENT_CORRECT, 3), "not on that");
    kit_play(&k, "from a");
    CHECK(!needs_admin(EVENT_CORRECT, -1), "they are asked anew");
    k.steps[0].state = STEP_SKIPPED;
    CHECK(!needs_admin(EVENT_CORRECT, -1) && !needs_admin(EVENT_CORRECT, 1), "nobody is asked");
    k.steps[0].output.json = SLICE("{\"overridden\":true}");
    CHECK(needs_admin(EVENT_CORRECT, -1) && needs_admin(EVENT_CORRECT, 1), "an admin has decided");
    kit_make(&k, "a rejection", "a*? b<a");
    kit_play(&k, "claim, begin a, reject a A, decided a");
    CHECK(!needs_admin(EVENT_CORRECT, -1), "nothing was allowed");
}

static void a_task_has_so_many_at_most(void **state)
{
    static struct vote many[VOTES_MAX];
    (void)state;

    kit_make(&k, "many", "a=");
    kit_play(&k, "begin a");
    for (size_t i = 0; i < VOTES_MAX; i++)
        many[i] = (struct vote){.person = SLICE("Z"), .at = 1, .step = 1, .agrees = true};
    k.t.votes = many;
    k.t.vote_cap = VOTES_MAX;
    k.t.vote_count = VOTES_MAX - 1;
    CHECK(obstacle('A', true, 0) == OBSTACLE_NONE, "one more");
    k.t.vote_count = VOTES_MAX;
    CHECK(obstacle('A', true, 0) == OBSTACLE_VOTE_FULL, "no more");
    CHECK(!task_needs_vote_room(&k.t), "and no room for more");
}

/* What is stored may be damaged. */
static void damaged_votes_are_found(void **state)
{
    (void)state;

    kit_make(&k, "damage", "a* b$");
    kit_play(&k, "begin a, begin b, agree a A, agree a B");
    CHECK(task_valid(&k.g.w, &k.t), "as it is");
    k.votes[1].person = SLICE("A");
    CHECK(!task_valid(&k.g.w, &k.t), "a person votes once");
    k.votes[1].person = SLICE("B");
    k.votes[1].step = 1;
    CHECK(!task_valid(&k.g.w, &k.t), "a signal asks nobody");
    k.votes[1].step = 0;
    k.votes[1].at = 0;
    CHECK(!task_valid(&k.g.w, &k.t), "it came at some time");
    k.votes[1].at = 1;
    k.votes[1].agrees = false;
    CHECK(task_valid(&k.g.w, &k.t), "a rejection");
    k.votes[0].agrees = false;
    CHECK(!task_valid(&k.g.w, &k.t), "there is one at most");
    k.votes[0].agrees = k.votes[1].agrees = true;
    k.votes[2] = (struct vote){.person = SLICE("C"), .at = 1, .agrees = true};
    k.t.vote_count = 3;
    CHECK(!task_valid(&k.g.w, &k.t), "nobody votes after the decision");
    k.t.vote_count = 2;
    k.steps[0].input.json = SLICE_NONE;
    CHECK(!task_valid(&k.g.w, &k.t), "what was asked has a question");
    k.steps[0].begun_at = k.steps[0].complete_by = 0;
    CHECK(!task_valid(&k.g.w, &k.t), "nobody votes on what was not asked");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(votes),
        cmocka_unit_test(what_is_left_says_what_happened),
        cmocka_unit_test(the_question_is_kept_as_it_was_asked),
        cmocka_unit_test(what_moves_the_complete_by),
        cmocka_unit_test(what_waits_is_not_ready),
        cmocka_unit_test(who_may_not_vote_is_told_why),
        cmocka_unit_test(who_is_asked),
        cmocka_unit_test(what_people_allowed_only_an_admin_changes),
        cmocka_unit_test(a_task_has_so_many_at_most),
        cmocka_unit_test(damaged_votes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
