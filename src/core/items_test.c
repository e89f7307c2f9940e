/* Tests of steps with for_each: which items begin, what their ends mean, which are undone, and what
 * operators can do (items.h). The kit stores what comes to rest, as a store would, and compares the
 * sums with the rows after each event. */
#include "core/core_test_kit.h"

#include "core/items.h"
#include "core/ready.h"

/* clang-format off */
static const struct kit_case forward[] = {
    {"an empty list completes the step", "a{2} b<a",
     "claim, begin a 0, start b", "processing a:completed b:running"},
    {"as many as there are places begin, in order", "a{2}",
     "claim, begin a 3, start a.0, start a.1, start a.2 = refused",
     "processing a:waiting(running running -)"},
    {"the end of one frees its place", "a{2}",
     "claim, begin a 3, start a.0, start a.1, ok a.1, start a.2",
     "processing a:waiting(running completed running)"},
    {"the step completes with the last item", "a{2} b<a",
     "claim, begin a 3, start a.0, start a.1, ok a.1, start a.2, ok a.2, start b = refused, ok a.0, "
     "start b", "processing a:completed(completed completed completed) b:running"},
    {"the task ends with it", "a{1}",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1",
     "processed a:completed(completed completed)"},
    {"a list begins once", "a{1}", "claim, begin a 2, begin a 3 = refused",
     "processing a:waiting(- -)"},
    {"an item between two tries keeps its place", "a2{1}",
     "claim, begin a 2, start a.0, again a.0, start a.0 = refused, wait 1s, start a.0, ok a.0, "
     "start a.1", "processing a:waiting(completed running)"},
    {"so does one that was not sent", "a{1}",
     "claim, begin a 2, start a.0, notsent a.0, start a.0, ok a.0, start a.1, ok a.1",
     "processed a:completed(completed completed)"},
    {"what is not stored yet does not keep a place", "a{1}",
     "claim, slow, begin a 3, start a.0, ok a.0, start a.1, ok a.1, store, start a.2, ok a.2",
     "processed a:completed(completed completed completed)"},
    {"but each slot only holds one", "a{1}",
     "claim, slow, begin a 3, start a.0, ok a.0, start a.1, ok a.1",
     "processing a:waiting(completed completed -)"},
    {"steps before it come first", "a b{1}<a",
     "claim, begin b 1 = refused, start a, ok a, begin b 1, start b.0, ok b.0",
     "processed a:completed b:completed(completed)"},
    {"an operator skipped the step before it", "a b{1}<a",
     "claim, skip a, begin b 1, start b.0, ok b.0", "processed a:skipped b:completed(completed)"},
    {"items of two steps run beside each other", "a{1} b{1}",
     "claim, begin a 1, begin b 1, start a.0, start b.0, ok b.0, ok a.0",
     "processed a:completed(completed) b:completed(completed)"},
    {"an item has rounds", "a-%{1} b<a",
     "claim, begin a 2, start a.0, ok a.0, no a.0, start a.1 = refused, wait 4s, start a.0, ok a.0, "
     "yes a.0, start a.1, ok a.1, yes a.1", "processing a:completed(completed completed) b:waiting"},
    {"the list cannot be evaluated", "a#{1}", "claim, bad a", "error a:failed"},
    {"and then, after a retry, can", "a#{1}",
     "claim, bad a, retry a, claim, begin a 1, start a.0, ok a.0",
     "processed a:completed(completed)"},
    {"the input of an item cannot be evaluated", "a#{1}",
     "claim, begin a 2, bad a.0", "error a:failed(failed -)"},
    {"an `if` is the step's, not an item's", "a{1}",
     "claim, begin a 1, start a.0, notsent a.0, cond a.0 = refused, correct a.0, cond a.0 = refused",
     "processing a:waiting(waiting)"},
    {"the step is skipped by its `if`", "a{1} b<a", "claim, cond a, start b",
     "processing a:skipped b:running"},
    {"but not once the list is known", "a{1} b<a", "claim, begin a 1, cond a = refused",
     "processing a:waiting(-) b:waiting"},
};

static const struct kit_case failures[] = {
    {"stop: after the first failure no other begins", "a#{2}",
     "claim, begin a 4, start a.0, start a.1, fail a.0, start a.2 = refused, ok a.1",
     "error a:failed(failed completed - -)"},
    {"the step fails when nothing of it runs", "a#{2}",
     "claim, begin a 4, start a.0, start a.1, fail a.0",
     "processing a:waiting(failed running - -)"},
    {"what waits for another try does not get it", "a2#{2}",
     "claim, begin a 3, start a.0, start a.1, again a.1, fail a.0",
     "error a:failed(failed failed -)"},
    {"what was not sent does", "a2#{2}",
     "claim, begin a 3, start a.0, start a.1, notsent a.1, fail a.0, start a.1, ok a.1",
     "error a:failed(failed completed -)"},
    {"with on_failure: undo the task goes back", "a{2}",
     "claim, begin a 3, start a.0, start a.1, fail a.0, ok a.1, bring a.1, start a.1, ok a.1",
     "compensated a:undone(failed undone -)"},
    {"with on_failure: continue it goes on", "a?{2} b<a",
     "claim, begin a 3, start a.0, start a.1, fail a.0, ok a.1, start b",
     "processing a:failed(failed completed -) b:running"},
    {"continue: all are tried", "a{1.} b<a",
     "claim, begin a 3, start a.0, fail a.0, start a.1, ok a.1, start a.2, fail a.2, start b",
     "processing a:completed(failed completed failed) b:running"},
    {"tolerate: up to that share", "a#{1:}",
     "claim, begin a 3, start a.0, fail a.0, start a.1, ok a.1, start a.2, ok a.2",
     "processed a:completed(failed completed completed)"},
    {"and no more", "a#{1:}",
     "claim, begin a 4, start a.0, fail a.0, start a.1, fail a.1, start a.2 = refused",
     "error a:failed(failed failed - -)"},
    {"a share of less than one item is none", "a#{1:}",
     "claim, begin a 2, start a.0, fail a.0", "error a:failed(failed -)"},
    {"a pivot: before the first success a failure stops it", "a!{1}",
     "claim, begin a 2, start a.0, fail a.0", "compensated a:failed(failed -)"},
    {"after it the others begin, whatever fails", "a!{1}",
     "claim, begin a 3, start a.0, ok a.0, start a.1, fail a.1, start a.2, ok a.2",
     "error a:failed(completed failed completed)"},
    {"a result that comes late is a success, too", "a!{2}",
     "claim, begin a 3, start a.0, start a.1, timeout a.0, ok a.0 f1 = late, timeout a.1, start a.2, "
     "ok a.2", "error a:failed(failed failed completed)"},
    {"the task cannot be undone then", "a!{1}",
     "claim, begin a 2, start a.0, ok a.0, undo = refused",
     "processing a:waiting(completed -)"},
    {"a pivot whose items are in doubt stops in error", "a!{2}",
     "claim, begin a 3, start a.0, start a.1, doubt a.0, fail a.1", "error a:failed(failed failed -)"},
    {"a try resolves the doubt", "a2!{2}",
     "claim, begin a 3, start a.0, start a.1, lost a.0, fail a.1, wait 1s, start a.0, ok a.0, "
     "start a.2, ok a.2", "error a:failed(completed failed completed)"},
    {"or may leave it", "a2!{2}",
     "claim, begin a 3, start a.0, start a.1, lost a.0, undo, fail a.1, wait 1s, start a.0, "
     "fail a.0", "error a:failed(failed failed -)"},
    {"a pivot that is to be undone waits for its items", "a!{2}",
     "claim, begin a 3, start a.0, start a.1, undo, start a.2 = refused, fail a.0, fail a.1",
     "compensated a:failed(failed failed -)"},
    {"or goes on, with an alert", "a!{2}",
     "claim, begin a 3, start a.0, start a.1, undo, ok a.0 = alert, start a.2",
     "processing a:waiting(completed running running)"},
    {"more failures of a pivot than there are places", "a!{1}",
     "claim, begin a 4, start a.0, ok a.0, start a.1, fail a.1, start a.2, fail a.2, start a.3, "
     "fail a.3, skip a.2 = alert, skip a",
     "processed a:skipped(completed failed skipped failed)"},
    {"a pivot without items leaves the way back open", "a!{1} b<a",
     "claim, begin a 0, start b, undo = stop, fail b", "compensated a:completed b:failed"},
    {"of which no item completed, too", "a!{1.} b<a",
     "claim, begin a 2, start a.0, fail a.0, start a.1, fail a.1, start b, fail b",
     "compensated a:completed(failed failed) b:failed"},
    {"unless one is in doubt", "a!{1.} b<a",
     "claim, begin a 2, start a.0, doubt a.0, start a.1, fail a.1, start b, fail b",
     "error a:completed(failed failed) b:failed"},
    {"or one completed", "a!{1.} b<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, fail a.1, start b, undo = refused, fail b",
     "error a:completed(completed failed) b:failed"},
    {"or an operator said what it did", "a!#{1} b<a",
     "claim, begin a 2, start a.0, fail a.0, supply a, claim, start b, undo = refused, fail b",
     "error a:completed(failed -) b:failed"},
};

static const struct kit_case undos[] = {
    {"later items first", "a{1} b#<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, bring a.1, bring a.0 = refused, "
     "start a.1, ok a.1, bring a, start a.0, ok a.0",
     "compensated a:undone(undone undone) b:waiting"},
    {"so many at a time", "a{2} b#<a",
     "claim, begin a 3, start a.0, ok a.0, start a.1, ok a.1, start a.2, ok a.2, undo, bring a, "
     "bring a, bring a = refused, start a.1, ok a.1, bring a, start a.0",
     "compensating a:undoing(<undoing undone <completed) b:waiting"},
    {"only what took effect, or may have", "a{1.} b#<a",
     "claim, begin a 4, start a.0, ok a.0, start a.1, fail a.1, start a.2, doubt a.2, skip a.3 = "
     "unknown, start a.3, notsent a.3, skip a.3, undo, bring a, wait 20s, start a.2, ok a.2, bring a,"
     " start a.0, ok a.0", "compensated a:undone(undone failed undone skipped) b:waiting"},
    {"one in doubt is undone when nothing of it can run any more", "a{1.} b#<a",
     "claim, begin a 1, start a.0, timeout a.0, undo, bring a, start a.0 = refused, wait 5s, "
     "start a.0, ok a.0", "compensated a:undone(undone) b:waiting"},
    {"what runs at the turn comes first", "a{2} b#",
     "claim, begin a 3, start a.0, ok a.0, start a.1, start b, undo = stop, bring a = refused, "
     "ok a.1, bring a.1, bring a.0, start a.1, start a.0, ok a.1, ok a.0, fail b",
     "compensated a:undone(undone undone -) b:failed"},
    {"what waits at the turn is not tried again", "a2{2} b#",
     "claim, begin a 3, start a.0, start a.1, again a.0, notsent a.1, undo",
     "compensated a:waiting(failed failed -) b:waiting"},
    {"what is not stored yet at the turn is not passed over", "a{2} b#",
     "claim, begin a 2, start a.0, start a.1, ok a.0, slow, ok a.1, undo, bring a.0 = refused, store, "
     "bring a.1, start a.1, ok a.1, bring a.0, start a.0, ok a.0",
     "compensated a:undone(undone undone) b:waiting"},
    {"a step that failed is undone, too", "a{1}",
     "claim, begin a 3, start a.0, ok a.0, start a.1, fail a.1, bring a, start a.0, ok a.0",
     "compensated a:undone(undone failed -)"},
    {"after the steps behind it", "a{1} b<a c#<b",
     "claim, begin a 1, start a.0, ok a.0, start b, ok b, undo, bring a = refused, start b, ok b, "
     "bring a, start a.0, ok a.0",
     "compensated a:undone(undone) b:undone c:waiting"},
    {"and before those before it", "a b{1}<a c#<b",
     "claim, start a, ok a, begin b 1, start b.0, ok b.0, undo, start a = refused, bring b, "
     "start a = refused, start b.0, ok b.0, start a, ok a",
     "compensated a:undone b:undone(undone) c:waiting"},
    {"nothing is undone without an undo", "a-{1} b#<a",
     "claim, begin a 1, start a.0, ok a.0, undo", "compensated a:completed(completed) b:waiting"},
    {"nothing comes back while the task is paused", "a{1} b#<a",
     "claim, begin a 1, start a.0, ok a.0, undo, pause, bring a = refused, resume, bring a",
     "compensating a:undoing(<completed) b:waiting"},
    {"an undo is tried again", "a2{1} b#<a",
     "claim, begin a 1, start a.0, ok a.0, undo, bring a, start a.0, again a.0, wait 1s, start a.0, "
     "ok a.0", "compensated a:undone(undone) b:waiting"},
    {"an undo that fails keeps its place, and the others go on", "a{2} b#<a",
     "claim, begin a 3, start a.0, ok a.0, start a.1, ok a.1, start a.2, ok a.2, undo, bring a, "
     "start a.2, fail a.2, bring a, start a.1, ok a.1, bring a, start a.0, ok a.0",
     "error a:undoing(undone undone <failed) b:waiting"},
    {"when it has all places, the task stops", "a{1} b#<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, bring a, start a.1, fail a.1, "
     "bring a = refused", "error a:undoing(completed <failed) b:waiting"},
    {"an operator retries it", "a{1} b#<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, bring a, start a.1, fail a.1, "
     "retry a.1, claim, start a.1, ok a.1, bring a, start a.0, ok a.0",
     "compensated a:undone(undone undone) b:waiting"},
    {"or the whole task", "a{1} b#<a",
     "claim, begin a 1, start a.0, ok a.0, undo, bring a, start a.0, fail a.0, retry, claim, "
     "start a.0, ok a.0", "compensated a:undone(undone) b:waiting"},
    {"or skips it", "a{1} b#<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, bring a, start a.1, fail a.1, "
     "skip a.1, bring a, claim, start a.0, ok a.0",
     "compensated a:undone(undone undone) b:waiting"},
    {"one of two, and the task stays where it is", "a{2} b#<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, bring a, bring a, start a.1, "
     "start a.0, fail a.1, fail a.0, skip a.1", "error a:undoing(<failed <undone) b:waiting"},
    {"the input of its undo cannot be evaluated", "a{1} b#<a",
     "claim, begin a 1, start a.0, ok a.0, undo, bring a, bad a.0",
     "error a:undoing(<failed) b:waiting"},
    {"also if it had failed in doubt", "a{1.} b#<a",
     "claim, begin a 1, start a.0, doubt a.0, undo, bring a, wait 20s, bad a.0, skip a.0",
     "compensated a:undone(undone) b:waiting"},
    {"a processed task is undone", "a{1}",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, claim, bring a, start a.1, "
     "ok a.1, bring a, start a.0, ok a.0", "compensated a:undone(undone undone)"},
    {"an empty list has nothing to undo", "a{1} b#<a", "claim, begin a 0, undo",
     "compensated a:completed b:waiting"},
    {"a complete-by of the undo", "undo=25s a{1} b#<a",
     "claim, begin a 1, start a.0, ok a.0, undo, bring a, deadline",
     "error a:undoing(<completed) b:waiting"},
    {"what an operator supplied is undone", "a#{1} b#<a",
     "claim, begin a 1, start a.0, fail a.0, supply a.0, undo, bring a, claim, start a.0, ok a.0",
     "compensated a:undone(undone) b:waiting"},
    {"what was skipped in doubt is, too", "a#{1} b#<a",
     "claim, begin a 1, start a.0, doubt a.0, skip a.0, undo, bring a, claim, wait 20s, start a.0, "
     "ok a.0", "compensated a:undone(undone) b:waiting"},
};

static const struct kit_case verbs[] = {
    {"a failed item is retried", "a#{1} b<a",
     "claim, begin a 2, start a.0, fail a.0, retry a.0, claim, start a.0, ok a.0, start a.1, ok a.1, "
     "start b", "processing a:completed(completed completed) b:running"},
    {"and fails again", "a#{1}",
     "claim, begin a 2, start a.0, fail a.0, retry a.0, claim, start a.1 = refused, start a.0, "
     "fail a.0", "error a:failed(failed -)"},
    {"with all of its tries", "a2#{2}",
     "claim, begin a 2, start a.0, start a.1, fail a.0, fail a.1, retry a.0, claim, start a.0, "
     "again a.0, wait 1s, start a.0, ok a.0", "error a:failed(completed failed)"},
    {"it is skipped", "a#{1} b<a",
     "claim, begin a 2, start a.0, fail a.0, skip a.0, claim, start a.1, ok a.1, start b",
     "processing a:completed(skipped completed) b:running"},
    {"its output is supplied", "a#{1} b<a",
     "claim, begin a 1, start a.0, fail a.0, supply a.0, claim, start b",
     "processing a:completed(completed) b:running"},
    {"one of two is skipped: the task stays where it is", "a#{2}",
     "claim, begin a 3, start a.0, start a.1, fail a.0, fail a.1, skip a.0",
     "error a:failed(skipped failed -)"},
    {"and then the other", "a#{2}",
     "claim, begin a 3, start a.0, start a.1, fail a.0, fail a.1, skip a.0, supply a.1, claim, "
     "start a.2, ok a.2", "processed a:completed(skipped completed completed)"},
    {"the step is retried: all that failed", "a#{2}",
     "claim, begin a 3, start a.0, start a.1, fail a.0, fail a.1, retry a, claim, start a.0, "
     "start a.1, start a.2 = refused, ok a.0, ok a.1, start a.2",
     "processing a:waiting(completed completed running)"},
    {"so is the task", "a#{2}",
     "claim, begin a 2, start a.0, start a.1, fail a.0, fail a.1, retry, claim, start a.0, ok a.0, "
     "start a.1, ok a.1", "processed a:completed(completed completed)"},
    {"one that waits is tried at once", "a2{1}",
     "claim, begin a 1, start a.0, again a.0, retry a.0, start a.0",
     "processing a:waiting(running)"},
    {"so are all of a task", "a2{2}",
     "claim, begin a 2, start a.0, start a.1, again a.0, again a.1, retry, start a.0, start a.1",
     "processing a:waiting(running running)"},
    {"one that waits is skipped", "a2{1}",
     "claim, begin a 2, start a.0, again a.0, skip a.0, start a.1",
     "processing a:waiting(skipped running)"},
    {"but not one that runs", "a{1}", "claim, begin a 1, start a.0, skip a.0 = refused, "
     "supply a.0 = refused, correct a.0 = refused, retry a.0 = refused, resolve a.0 = refused",
     "processing a:waiting(running)"},
    {"nor its step", "a{1}", "claim, begin a 1, start a.0, skip a = refused, supply a = refused, "
     "correct a = refused, retry a = refused, resolve a = refused, from a = refused",
     "processing a:waiting(running)"},
    {"nor one that has not begun, or has completed", "a{1}",
     "claim, begin a 2, start a.0, ok a.0, skip a.0 = refused, skip a.1 = unknown, "
     "supply a.1 = unknown, correct a.1 = unknown, retry a.1 = unknown, resolve a.1 = unknown, "
     "from a.1 = unknown, from a.0 = unknown, resolve a.0 = refused, correct a.0 = refused, "
     "retry a.0 = refused, supply a.0 = refused, ok a.0 f1 = repeated",
     "processing a:waiting(completed -)"},
    {"a step does not start anew from an item", "a{1}",
     "claim, begin a 1, start a.0, notsent a.0, from a.0 = refused", "processing a:waiting(waiting)"},
    {"an input is corrected", "a#{1}",
     "claim, begin a 1, start a.0, fail a.0, correct a.0, retry a.0, claim, start a.0, ok a.0",
     "processed a:completed(completed)"},
    {"not that of one in doubt", "a#{1}",
     "claim, begin a 1, start a.0, doubt a.0, correct a.0 = refused", "error a:failed(failed)"},
    {"unless the doubt is resolved", "a#{1}",
     "claim, begin a 1, start a.0, doubt a.0, resolve a.0 = refused, wait 20s, resolve a.0, "
     "correct a.0, undo", "compensated a:failed(failed)"},
    {"the step is not skipped while an item is in doubt", "a#{1}",
     "claim, begin a 1, start a.0, doubt a.0, skip a = refused, supply a = refused, from a = refused",
     "error a:failed(failed)"},
    {"or has an effect", "a#{1}",
     "claim, begin a 2, start a.0, ok a.0, start a.1, fail a.1, skip a = refused, supply a = refused,"
     " from a = refused", "error a:failed(completed failed)"},
    {"else it is", "a#{1} b<a", "claim, begin a 2, start a.0, fail a.0, skip a, claim, start b",
     "processing a:skipped(failed -) b:running"},
    {"also before it begins", "a{1} b<a", "claim, skip a, start b",
     "processing a:skipped b:running"},
    {"or while it waits", "a2{1} b<a",
     "claim, begin a 2, start a.0, again a.0, skip a, start b", "processing a:skipped(failed -) b:running"},
    {"its output is supplied at once", "a#{1} b<a",
     "claim, begin a 2, start a.0, fail a.0, supply a, claim, start b",
     "processing a:completed(failed -) b:running"},
    {"also if items without an undo took effect", "a-#{1} b<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, fail a.1, supply a, claim, start b",
     "processing a:completed(completed failed) b:running"},
    {"the step starts anew, with another list", "a#{1}",
     "claim, begin a 2, start a.0, fail a.0, from a, claim, begin a 1, start a.0, ok a.0",
     "processed a:completed(completed)"},
    {"so does one before it", "b a#{1}<b",
     "claim, start b, fail b", "compensated a:waiting b:failed"},
    {"the task is paused", "a{1}",
     "claim, begin a 2, start a.0, pause, ok a.0, start a.1 = refused, bad a.1 = refused, resume, "
     "start a.1", "processing a:waiting(completed running)"},
    {"a pause moves the wait for another try", "a2{1}",
     "claim, begin a 1, start a.0, again a.0, pause, wait 1m, resume, start a.0 = refused, wait 1s, "
     "start a.0", "processing a:waiting(running)"},
    {"the task's complete-by passes", "by=15s a{1}",
     "claim, begin a 2, start a.0, ok a.0, deadline, bring a, start a.0, ok a.0",
     "compensated a:undone(undone -)"},
    {"nothing begins after it", "by=15s a{1}",
     "claim, begin a 2, start a.0, ok a.0, wait 15s, start a.1 = refused",
     "processing a:waiting(completed -)"},
    {"another step fails: nothing begins until an operator helps", "a{1} b#",
     "claim, begin a 2, start a.0, start b, fail b, start a.1 = refused, ok a.0, start a.1 = refused, "
     "retry b, claim, start a.1", "processing a:waiting(completed running) b:waiting"},
};

static const struct kit_case verbs_at_rest[] = {
    {"a failed one is retried, when another step stopped the task", "a#{1.} b#",
     "claim, begin a 2, start a.0, fail a.0, retry a.0 = refused, start b, fail b, retry a.0, claim, "
     "start a.0, ok a.0", "processing a:waiting(completed -) b:failed"},
    {"one that failed beyond the places", "a!#{1}",
     "claim, begin a 3, start a.0, ok a.0, start a.1, fail a.1, start a.2, fail a.2, retry a.2, claim, "
     "start a.2, ok a.2, retry a.1, claim, start a.1, ok a.1",
     "processed a:completed(completed completed completed)"},
    {"but only as many as there are places", "a!#{1}",
     "claim, begin a 3, start a.0, ok a.0, start a.1, fail a.1, start a.2, fail a.2, retry a.1, "
     "retry a.2 = refused", "processing a:waiting(completed waiting failed)"},
    {"one is skipped, another supplied", "a!#{1}",
     "claim, begin a 4, start a.0, ok a.0, start a.1, fail a.1, start a.2, fail a.2, start a.3, "
     "fail a.3, skip a.2 = alert, supply a.3 = alert, supply a.1",
     "processed a:completed(completed completed skipped completed)"},
    {"so one more may fail", "a#{1:}",
     "claim, begin a 3, start a.0, fail a.0, skip a.0, start a.1, fail a.1, start a.2, ok a.2",
     "processed a:completed(skipped failed completed)"},
    {"an input is corrected before the retry", "a!#{1}",
     "claim, begin a 3, start a.0, ok a.0, start a.1, fail a.1, start a.2, fail a.2, correct a.2, "
     "correct a.2 = repeated, retry a.2, claim, start a.2, ok a.2",
     "error a:failed(completed failed completed)"},
    {"not once the step has ended", "a#{1.} b<a",
     "claim, begin a 2, start a.0, fail a.0, start a.1, ok a.1, skip a.0 = refused, supply a.0 = "
     "refused, correct a.0 = refused, retry a.0 = refused",
     "processing a:completed(failed completed) b:waiting"},
    {"nor when it was left", "a#{1} b<a",
     "claim, begin a 1, start a.0, fail a.0, skip a, claim, supply a.0 = refused, skip a.0 = refused",
     "processing a:skipped(failed) b:waiting"},
    {"a doubt is resolved", "a{1.} b#<a",
     "claim, begin a 2, start a.0, doubt a.0, resolve a.0 = refused, wait 20s, resolve a.0, "
     "resolve a.0 = repeated, start a.1, ok a.1, undo, bring a, start a.1, ok a.1",
     "compensated a:undone(failed undone) b:waiting"},
    {"also on the way back, before its turn", "a{1.} b#<a",
     "claim, begin a 2, start a.0, doubt a.0, start a.1, ok a.1, undo, bring a, wait 20s, "
     "resolve a.0, start a.1, ok a.1", "compensated a:undone(failed undone) b:waiting"},
    {"that of a pivot, and then the task turns back", "a!{1:}",
     "claim, begin a 3, start a.0, doubt a.0, start a.1, fail a.1, undo = refused, wait 20s, "
     "resolve a.0, undo", "compensated a:failed(failed failed -)"},
    {"it is undone by hand", "a{1} b#<a",
     "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, skip a.0 = refused, undo, bring a, "
     "skip a.0, start a.1, ok a.1", "compensated a:undone(undone undone) b:waiting"},
    {"if it is the only one, so is the step", "a{1} b#<a",
     "claim, begin a 1, start a.0, ok a.0, undo, skip a.0, retry a.0 = refused, supply a.0 = refused",
     "compensated a:undone(undone) b:waiting"},
    {"not while another one runs", "a{2}",
     "claim, begin a 2, start a.0, start a.1, ok a.0, undo = stop, skip a.0, ok a.1, bring a, start "
     "a.1, ok a.1", "compensated a:undone(undone undone)"},
    {"what is not stored yet is the same", "a#{1.} b#",
     "claim, slow, begin a 2, start b, start a.0, fail a.0, fail b, retry, claim, start a.0 = unknown,"
     " start a.1", "processing a:waiting(failed running) b:waiting"},
};

static const struct kit_case lates[] = {
    {"it reaches an item at rest", "a{1.} b#<a",
     "claim, begin a 1, start a.0, timeout a.0, ok a.0 f1 = late, ok a.0 f1 = late, undo, bring a, "
     "start a.0, ok a.0", "compensated a:undone(undone) b:waiting"},
    {"that says that nothing happened", "a{1.} b#<a",
     "claim, begin a 1, start a.0, timeout a.0, fail a.0 f1 = late, undo",
     "compensated a:completed(failed) b:waiting"},
    {"on the way back, too", "a{1.} b#<a",
     "claim, begin a 2, start a.0, timeout a.0, start a.1, ok a.1, undo, bring a, fail a.0 f1 = late,"
     " start a.1, ok a.1", "compensated a:undone(failed undone) b:waiting"},
    {"and a pivot: the task can turn back", "a!{1:}",
     "claim, begin a 3, start a.0, timeout a.0, start a.1, fail a.1, undo = refused, "
     "fail a.0 f1 = late, undo", "compensated a:failed(failed failed -)"},
    {"it turns back by itself", "a!{1:} b",
     "claim, begin a 3, start b, start a.0, timeout a.0, start a.1, fail a.1, fail a.0 f1 = late stop, "
     "fail b", "compensated a:failed(failed failed -) b:failed"},
    {"or it goes forward", "a!{1:} b",
     "claim, begin a 3, start b, start a.0, timeout a.0, start a.1, fail a.1, ok a.0 f1 = late",
     "processing/hold a:failed(failed failed -) b:running"},
    {"a repeated answer changes nothing", "a{1.} b#<a",
     "claim, begin a 1, start a.0, fail a.0, ok a.0 f1 = repeated",
     "processing a:completed(failed) b:waiting"},
    {"nor one of an attempt that was not", "a{1.} b#<a",
     "claim, begin a 1, start a.0, fail a.0, ok a.0 f2 = unknown",
     "processing a:completed(failed) b:waiting"},
    {"the last but one of those that are undone was resolved", "a{1.} b#<a",
     "claim, begin a 3, start a.0, ok a.0, start a.1, timeout a.1, start a.2, ok a.2, wait 5s, "
     "resolve a.1, undo, bring a, start a.2, ok a.2, bring a, ok a.1 f1 = late, start a.0, ok a.0, "
     "bring a, start a.1, ok a.1", "compensated a:undone(undone undone undone) b:waiting"},
    {"nothing is left to undo: an operator is told", "c a{1.}<c b#<a",
     "claim, start c, ok c, begin a 2, start a.0, timeout a.0, start a.1, ok a.1, wait 5s, resolve a.0, "
     "undo, bring a, start a.1, ok a.1, ok a.0 f1 = late alert, start c, ok c",
     "compensated a:undone(failed undone) b:waiting c:undone"},
    {"so it is after the end", "a{1.} b#<a",
     "claim, begin a 2, start a.0, timeout a.0, start a.1, ok a.1, wait 5s, resolve a.0, undo, bring a, "
     "start a.1, ok a.1, ok a.0 f1 = late alert", "compensated a:undone(failed undone) b:waiting"},
    {"so is a pivot", "a!{1:}",
     "claim, begin a 3, start a.0, timeout a.0, start a.1, fail a.1, wait 5s, resolve a.0, undo, "
     "ok a.0 f1 = late alert", "compensated a:failed(failed failed -)"},
    {"a late result counts while the item is not stored", "a{1.} b#<a",
     "claim, slow, begin a 1, start a.0, timeout a.0, fail a.0 f1 = late, store, undo",
     "compensated a:completed(failed) b:waiting"},
    {"also that it took effect", "a{1.} b#<a",
     "claim, slow, begin a 1, start a.0, timeout a.0, ok a.0 f1 = late, store, undo, bring a, "
     "start a.0", "compensating a:undoing(<undoing) b:waiting"},
    {"it settles the doubt of one that is at hand", "a#{1}",
     "claim, begin a 1, start a.0, timeout a.0, fail a.0 f1 = late, undo",
     "compensated a:failed(failed)"},
    {"one that was resolved took effect after all, and was passed over", "a{1.} b#<a",
     "claim, slow, begin a 2, start a.0, timeout a.0, start a.1, ok a.1, ok a.0 f1 = late, store",
     "processing a:completed(failed completed) b:waiting"},
};
/* clang-format on */

static void items_begin_in_order(void **state)
{
    (void)state;
    kit_run(forward, COUNT_OF(forward));
}

static void what_a_failure_of_an_item_means(void **state)
{
    (void)state;
    kit_run(failures, COUNT_OF(failures));
}

static void undo_reaches_every_item_that_needs_it(void **state)
{
    (void)state;
    kit_run(undos, COUNT_OF(undos));
}

static void operators_repair_items(void **state)
{
    (void)state;
    kit_run(verbs, COUNT_OF(verbs));
}

static void operators_reach_items_at_rest(void **state)
{
    (void)state;
    kit_run(verbs_at_rest, COUNT_OF(verbs_at_rest));
}

static void late_results_count(void **state)
{
    (void)state;
    kit_run(lates, COUNT_OF(lates));
}

/* ---- details ---- */

static struct kit k;

static void check_error(const char *script, const char *code)
{
    kit_make(&k, script, "a#{2}");
    kit_play(&k, script);
    CHECK(slice_is(k.steps[0].error.code, code) && slice_is(k.t.error.code, code)
              && k.t.cause.step == 0,
          "%s: %.*s", script, (int)k.steps[0].error.code.len, k.steps[0].error.code.ptr);
}

/* `fail` has the code broken, `bad` has expression. */
static void the_step_has_the_error_of_its_first_item_that_failed(void **state)
{
    (void)state;
    check_error("claim, begin a 3, start a.0, start a.1, fail a.1, notsent a.0, bad a.0", "broken");
    check_error("claim, begin a 3, start a.0, start a.1, fail a.1, notsent a.0, bad a.0, "
                "retry a.1, claim, start a.1, ok a.1",
                "expression");
    check_error("claim, begin a 3, start a.0, start a.1, fail a.1, notsent a.0, bad a.0, "
                "retry a.1, claim, start a.1, fail a.1",
                "broken");
}

static void items_do_not_wait_for_the_same_moment(void **state)
{
    (void)state;
    kit_make(&k, "jitter", "a2{2}");
    for (uint16_t u = 1; u < 5; u++)
        k.g.steps[u].call.retry.jitter = true;
    kit_play(&k, "claim, begin a 2, start a.0, start a.1, again a.0, again a.1");
    CHECK(k.steps[1].wait_until != k.steps[2].wait_until, "each has a moment of its own");
}

static void an_item_wakes_its_task(void **state)
{
    (void)state;
    kit_make(&k, "alarm", "a{2}");
    kit_play(&k, "claim, begin a 2, start a.0, wait 1s, start a.1");
    CHECK(task_wake_at(&k.t) == KIT_BEGIN + GRAPH_STEP_MS, "the first of them");
    kit_play(&k, "ok a.0");
    CHECK(task_wake_at(&k.t) == KIT_BEGIN + GRAPH_STEP_MS + 1000, "then the other");
}

static void the_end_of_an_outage_hastens_items(void **state)
{
    struct event ev = {.kind = EVENT_HASTEN, .step = 1, .attempt = 1};
    (void)state;

    kit_make(&k, "outage", "a2{1}");
    kit_play(&k, "claim, begin a 1, start a.0, again a.0");
    CHECK(kit_event(&k, &ev) == ANSWER_ACCEPTED, "accepted");
    kit_play(&k, "start a.0");
}

/* The number of places that are free, and that of items that may begin. */
static void a_caller_knows_how_many_may_begin(void **state)
{
    struct ready ready[GRAPH_UNITS];
    (void)state;

    kit_make(&k, "ready", "a{3}");
    kit_play(&k, "claim, begin a 5, start a.0");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 2, "two places are free");
    CHECK(items_that_may_begin(&k.g.steps[0], &k.steps[0]) == 2, "two may begin");
    CHECK(items_next(&k.g.steps[0], &k.steps[0]) == 1, "the next one");
    kit_play(&k, "start a.1, ok a.1, ok a.0, start a.2, start a.3, start a.4");
    CHECK(task_ready(&k.g.w, &k.t, k.now, ready) == 0, "all have begun");
    CHECK(items_next(&k.g.steps[0], &k.steps[0]) == -1, "no next one");
    kit_play(&k, "ok a.2, ok a.3, ok a.4");
}

/* ---- every field fits ---- */

/* A step with two items at rest, one in doubt, and two at work, one of which waits. */
static void make_busy(void)
{
    kit_make(&k, "busy", "a2{2.}");
    kit_play(&k, "claim, begin a 5, start a.0, ok a.0, start a.1, doubt a.1, start a.2, start a.3, "
                 "again a.3");
    CHECK(task_valid(&k.g.w, &k.t), "before it is broken");
}

static void check_broken(const char *how)
{
    items_tally(&k.g.w, &k.t, 0);
    CHECK(!task_valid(&k.g.w, &k.t), "%s", how);
    make_busy();
}

static void a_wrong_state_is_found(void **state)
{
    struct items *in = &k.items[0];
    (void)state;

    make_busy();
    in->completed++;
    check_broken("one more has completed than began");
    in->failed--;
    check_broken("one less has failed");
    in->begun--;
    check_broken("one less has begun");
    in->begun = 6;
    check_broken("more have begun than there are");
    in->list.count = KIT_ITEMS + 1;
    check_broken("the list is too long");
    in->undo_below = 6;
    check_broken("one would be undone that is not there");
    k.steps[2].item = k.steps[1].item;
    check_broken("one item is in two slots");
    k.steps[1].item = 4;
    check_broken("one is at work that has not begun");
    k.steps[1].slot = SLOT_FREE;
    check_broken("a free slot has attempts");
    k.steps[3].input.json = SLICE("1");
    check_broken("a free slot has an input");
    k.steps[2].slot = SLOT_RESTING;
    check_broken("one waits at rest");
    k.steps[0].items = NULL;
    CHECK(!task_valid(&k.g.w, &k.t), "a step without sums");
    make_busy();
    k.steps[1].items = in;
    CHECK(!task_valid(&k.g.w, &k.t), "an item with sums");
    make_busy();
    k.steps[0].slot = SLOT_TAKEN;
    check_broken("a step in a slot");
    k.steps[0].begun_at = 0;
    check_broken("items of a step that has not begun");
    k.steps[0].state = STEP_COMPLETED;
    k.steps[0].output.json = SLICE("[]");
    check_broken("a step completed before its items");
    k.t.slot_count--;
    CHECK(!task_valid(&k.g.w, &k.t), "a slot is missing");
}

static void a_step_is_not_undone_before_its_items(void **state)
{
    (void)state;
    kit_make(&k, "undone", "a{1} b#<a");
    kit_play(&k,
             "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, bring a, start a.1, "
             "ok a.1");
    k.steps[0].state = STEP_UNDONE;
    CHECK(!task_valid(&k.g.w, &k.t), "one is left");
    /* What a late result said of another one excuses nothing once that is undone, too. */
    kit_make(&k, "contradicted", "a{1.} b#<a");
    kit_play(&k, "claim, begin a 2, start a.0, ok a.0, start a.1, timeout a.1, wait 5s, "
                 "resolve a.1, undo, ok a.1 f1 = late, bring a, start a.1, ok a.1");
    k.steps[0].state = STEP_UNDONE;
    CHECK(!task_valid(&k.g.w, &k.t), "one is left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_begin_in_order),
        cmocka_unit_test(what_a_failure_of_an_item_means),
        cmocka_unit_test(undo_reaches_every_item_that_needs_it),
        cmocka_unit_test(operators_repair_items),
        cmocka_unit_test(operators_reach_items_at_rest),
        cmocka_unit_test(late_results_count),
        cmocka_unit_test(the_step_has_the_error_of_its_first_item_that_failed),
        cmocka_unit_test(items_do_not_wait_for_the_same_moment),
        cmocka_unit_test(an_item_wakes_its_task),
        cmocka_unit_test(the_end_of_an_outage_hastens_items),
        cmocka_unit_test(a_caller_knows_how_many_may_begin),
        cmocka_unit_test(a_wrong_state_is_found),
        cmocka_unit_test(a_step_is_not_undone_before_its_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
