/* The table of scenarios. docs/agent-check.md shows it; a test compares the two. */

#include "agent_check/plays.h"

#define P true                        /* needs a process of its own */
#define R true, false, play_completes /* a rule */

/* clang-format off */
const struct check_scenario check_scenarios[] = {
    {"completes", "does what it is asked, and hands in the result",
     "nothing else can be tried", "The call", CHECK_ANY, false, false, play_completes},
    {"unknown-members", "ignores members that it does not know, and tokens in stop that it does not hold",
     "a newer server would break it", "The call", CHECK_ANY, false, false, play_unknown_members},
    {"pieces", "reads answers that come in chunks",
     "a proxy may send them so", "The call", CHECK_ANY, false, false, play_pieces},
    {"parked", "leaves a parked call alone until its wait is over",
     "calls that are given up too soon lose the requests that they bring", "When the server is away", CHECK_ANY, false, false, play_parked},
    {"idle", "lets its calls wait for work, or pauses between them",
     "an agent that asks in a circle takes the server's time from all others", "The call", CHECK_ANY, false, false, play_idle},
    {"repeat", "ignores a repeat of a request that it holds",
     "it would take effect twice", "Lost requests", CHECK_ANY, false, false, play_repeat},
    {"no-such-action", "answers with a permanent error what it cannot do",
     "the task would wait for nothing", "Results", CHECK_ANY, false, false, play_no_such_action},
    {"stop", "still answers a request that it is told to stop",
     "the undo would have to wait for the deadline", "Stop", CHECK_ANY, false, false, play_stop},

    {"result-cut", "hands a result in again when the connection ends without an answer",
     "what was done would be done again, or undone", "Results", CHECK_ANY, false, false, play_result_cut},
    {"result-503", "hands a result in again after 503",
     "a server that starts would lose it", "Results", CHECK_ANY, false, false, play_result_503},
    {"result-500", "hands a result in again after 500",
     "a proxy may answer so for a server that is away", "Results", CHECK_ANY, false, false, play_result_500},
    {"result-garbage", "hands a result in again when the answer is no JSON",
     "something else than the server has answered", "Results", CHECK_ANY, false, false, play_result_garbage},
    {"result-truncated", "hands a result in again when the answer is not whole",
     "half an answer acknowledges nothing", "Results", CHECK_ANY, false, false, play_result_truncated},
    {"no-outcome", "keeps a result until an answer has an outcome for it",
     "an answer with status 200 alone acknowledges nothing", "Results", CHECK_ANY, false, false, play_no_outcome},
    {"late", "lets go of a result that is answered late",
     "it would hand it in for ever", "Results", CHECK_ANY, false, false, play_late},
    {"unknown-outcome", "lets go of a result that is answered unknown",
     "it would hand it in for ever", "Results", CHECK_ANY, false, false, play_unknown_outcome},
    {"unreadable", "hands in an error for a result that is answered 422 alone, and the others as they are",
     "one bad output would keep back all others", "Results", CHECK_ANY, false, false, play_unreadable},
    {"holding-answered", "says that it is holding what it has answered, until an answer has an outcome for it",
     "the request would be sent again and again", "Lost requests", CHECK_ANY, false, false, play_holding_answered},
    {"retry-after", "hands results in no sooner than Retry-After says",
     "a server that is short of something would never recover", "When the server is away", CHECK_ANY, false, false, play_retry_after},
    {"retry-after-429", "asks for work no sooner than Retry-After says",
     "a server that is short of something would never recover", "When the server is away", CHECK_ANY, false, false, play_retry_after_429},
    {"backoff", "pauses between calls that fail, longer and longer",
     "all agents at once would keep a server from starting", "When the server is away", CHECK_ANY, false, false, play_backoff},
    {"server-restart", "waits for a server that cannot be reached, and hands in what it has",
     "a restart of the server would cost its work", "When the server is away", CHECK_ANY, false, false, play_server_restart},

    {"deadline-passed", "says nothing about a request without time left, and goes on with others",
     "somebody else may be at work on it", "Deadlines", CHECK_ANY, false, false, play_deadline_passed},
    {"deadline-sent", "counts the time left from the sending of its call",
     "a slow network would give it time that is over", "Deadlines", CHECK_ANY, false, false, play_deadline_sent},
    {"deadline-waited", "adds waited_ms, the time that its call was parked",
     "it would give up what it has time for", "Deadlines", CHECK_ANY, false, false, play_deadline_waited},
    {"clocks", "goes by time_left_ms, whatever the server's clock says",
     "clocks of two machines need not agree", "Deadlines", CHECK_ANY, false, false, play_clocks},

    {"same-key", "answers another attempt of a step with the output of the first",
     "the step would take effect twice", "Each effect once", CHECK_ANY, false, false, play_same_key},
    {"undo", "undoes, and answers an undo that is asked again with the same output",
     "it would be undone twice", "Each effect once", CHECK_UNDO, false, false, play_undo},
    {"undo-first", "answers null to an undo that comes first, and refuses the forward request then",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_UNDO, false, false, play_undo_first},
    {"forward-after-undo", "refuses a forward request of a step that was undone",
     "a server restored from a backup would build on what is not there", "Each effect once", CHECK_UNDO, false, false, play_forward_after_undo},

    {"killed", "holds nothing after it was killed, and does then what comes again",
     "what the process before had in work would be lost until its deadline", "Lost requests", CHECK_ANY, false, P, play_killed},
    {"record-killed", "answers what it did before it was killed with the output of then",
     "a record that is in memory alone keeps nothing from being done twice", "Each effect once", CHECK_ANY, false, P, play_record_killed},
    {"undo-killed", "refuses after it was killed what was undone before",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_UNDO, false, P, play_undo_killed},
    {"effect-killed", "has each effect once, at whatever moment it was killed",
     "an effect whose record is written apart from it would be there twice, or not at all", "Each effect once", CHECK_EFFECTS, false, P, play_effect_killed},
    {"undo-races", "leaves no effect when an undo comes at whatever moment of its forward request",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_EFFECTS_UNDO, false, false, play_undo_races},
    {"sigterm", "hands in all results after SIGTERM, and ends",
     "each of its restarts would cost attempts", "Ending well", CHECK_ANY, false, P, play_sigterm},
    {"refused", "says so when its token is refused, and ends with another status than 0 or tries again later",
     "nobody would know why nothing happens", "When the server is away", CHECK_ANY, false, P, play_refused},
    {"another-installation", "names the installation of the first answer in each call, and neither works for another one at that address nor is silent about it",
     "a task could be begun in one installation and ended in another", "One installation", CHECK_ANY, false, P, play_another_installation},
    {"many", "does fifty requests, whatever its places",
     "some would get lost between its calls", "Places", CHECK_ANY, false, false, play_many},
    {"nodes-found", "works for the nodes that it is told of, and answers where it was asked",
     "it would stand still when one node goes", "Several nodes", CHECK_ANY, false, false, play_nodes_found},

    {"echo", "hands on inputs and outputs as they are, whatever JSON they are",
     "what a step says would not be what the next one hears", "Results", CHECK_KNOWN, false, false, play_echo},
    {"fail", "tells errors with all of their members",
     "the server could not decide what comes next", "Results", CHECK_KNOWN, false, false, play_fail},
    {"count-once", "takes one effect, however many attempts there are",
     "effects would come twice", "Each effect once", CHECK_KNOWN, false, false, play_count_once},
    {"count-steps", "takes two effects for two steps of a task",
     "the second step would never be done", "Each effect once", CHECK_KNOWN, false, false, play_count_steps},
    {"count-anew", "takes another effect for a step that is done anew, under another key (`TASK/STEP~2`)",
     "what an operator has done anew would not be done", "Each effect once", CHECK_KNOWN, false, false, play_count_anew},
    {"count-undo", "takes an effect back once",
     "it would be undone twice", "Each effect once", CHECK_KNOWN, false, false, play_count_undo},
    {"deadline-begun", "begins nothing that has no time left",
     "it would take effect after it was given up", "Deadlines", CHECK_KNOWN, false, false, play_deadline_begun},
    {"deadline-slow", "says nothing once the deadline has passed",
     "somebody else may be at work on it", "Deadlines", CHECK_KNOWN, false, false, play_deadline_slow},
    {"undo-at-work", "undoes a request that is still at work once that has ended, or keeps it from taking effect",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_KNOWN, false, false, play_undo_at_work},
    {"places", "asks for as many as it can begin at once, and begins them",
     "the time of requests would run while they wait in the agent", "Places", CHECK_KNOWN, false, false, play_places},
    {"holding-at-work", "says that it is holding what it is at work on",
     "the request would be sent again and again", "Lost requests", CHECK_KNOWN, false, false, play_holding_at_work},
    {"repeat-in-work", "goes on with what is in work when the request comes again",
     "it would be at work twice", "Lost requests", CHECK_KNOWN, false, false, play_repeat_in_work},
    {"beats", "sends the beats of a long request, with its progress",
     "nobody would see how far it is", "Heartbeats", CHECK_KNOWN, false, false, play_beats},
    {"beats-lost", "goes on with work and beats when beats fail",
     "losing one does no harm", "Heartbeats", CHECK_KNOWN, false, false, play_beats_lost},
    {"beat-stop", "heeds a stop that comes with the answer to a beat",
     "what nobody wants any more would go on", "Heartbeats", CHECK_KNOWN, false, false, play_beat_stop},
    {"beat-acknowledged", "goes on while its beats are acknowledged, however long it takes",
     "long work would never end", "Heartbeats", CHECK_KNOWN, false, false, play_beat_acknowledged},
    {"beat-deadline", "gives up in silence when no beat is acknowledged for heartbeat_ms",
     "the server has given the request to somebody else", "Heartbeats", CHECK_KNOWN, false, false, play_beat_deadline},
    {"tries", "tells how many calls to its service an attempt took",
     "an unreliable service would not be seen", "Results", CHECK_KNOWN, false, false, play_tries},
    {"resume", "tells where to go on, and hands it to the next attempt",
     "long work would begin at its beginning", "Results", CHECK_KNOWN, false, false, play_resume},
    {"elsewhere", "can leave a result to somebody else, and has a free place then",
     "what a person decides would take places", "Results", CHECK_KNOWN, false, false, play_elsewhere},
    {"nodes-holding", "tells each node all that it holds",
     "a node that takes over would send again what is in work", "Several nodes", CHECK_KNOWN, false, false, play_nodes_holding},
    {"nodes-same", "takes a request that comes from two nodes for one",
     "it would be at work twice", "Several nodes", CHECK_KNOWN, false, false, play_nodes_same},
    {"nodes-gone", "hands a result in at another node when the one that asked is gone",
     "it would be lost with the node", "Several nodes", CHECK_KNOWN, false, false, play_nodes_gone},

    {"form", "makes calls as they are documented: paths, members, types, limits",
     "a server refuses others", "The call", CHECK_ANY, R},
    {"holding", "says what it is holding in each call that asks for work",
     "nothing that was lost would be sent again", "Lost requests", CHECK_ANY, R},
    {"instance", "has one name for its process, the same after a restart",
     "the server could not know what was lost", "The call", CHECK_ANY, R},
    {"bearer", "sends INTACT_TOKEN with each call",
     "a server refuses others", "When the server is away", CHECK_ANY, R},
};
/* clang-format on */
const size_t check_scenario_count = COUNT_OF(check_scenarios);

const struct check_scenario *check_scenario_find(const char *name)
{
    for (size_t i = 0; i < check_scenario_count; i++)
        if (strcmp(check_scenarios[i].name, name) == 0)
            return &check_scenarios[i];
    return NULL;
}

const char *check_level_text(enum check_level level)
{
    switch (level) {
    case CHECK_ANY:
        return "any";
    case CHECK_UNDO:
        return "undo";
    case CHECK_KNOWN:
        return "known";
    case CHECK_EFFECTS:
    case CHECK_EFFECTS_UNDO:
        return "effects";
    }
    UNREACHABLE();
}
