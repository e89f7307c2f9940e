/* The table of scenarios, as `intact agent check --list` shows it: name, level, text and function
 * of each. A test looks for their chapters in docs/agents.md. plays.h declares the functions, the
 * play_*.c files have them. */

#include "agents/check/plays.h"

#define P true                        /* needs a process of its own */
#define R true, false, play_completes /* a rule */

/* clang-format off */
const struct check_scenario check_scenarios[] = {
    {"completes", "executes the request, and returns the result",
     "nothing else can be tried", "The call", CHECK_ANY, false, false, play_completes},
    {"unknown-members", "ignores unknown members, and tokens in stop that it does not hold",
     "a newer server would break it", "The call", CHECK_ANY, false, false, play_unknown_members},
    {"pieces", "reads answers that come in chunks",
     "a proxy may send them so", "The call", CHECK_ANY, false, false, play_pieces},
    {"parked", "keeps a parked call open until its wait is over",
     "calls that are given up too soon lose the requests in their answers", "When the server is away", CHECK_ANY, false, false, play_parked},
    {"idle", "lets its calls wait for work, or pauses between them",
     "an agent that polls without a pause overloads the server", "The call", CHECK_ANY, false, false, play_idle},
    {"repeat", "ignores a repeated request that it holds",
     "it would take effect twice", "Lost requests", CHECK_ANY, false, false, play_repeat},
    {"no-such-action", "returns a permanent error for an unknown action",
     "the task would wait for nothing", "Results", CHECK_ANY, false, false, play_no_such_action},
    {"stop", "still returns the result of a request after a stop for it",
     "the undo would have to wait for the deadline", "Stop", CHECK_ANY, false, false, play_stop},

    {"result-cut", "returns a result again when the connection ends without an answer",
     "completed work would be repeated, or undone", "Results", CHECK_ANY, false, false, play_result_cut},
    {"result-503", "returns a result again after 503",
     "a server that starts would lose it", "Results", CHECK_ANY, false, false, play_result_503},
    {"result-500", "returns a result again after 500",
     "a proxy may answer so for an unavailable server", "Results", CHECK_ANY, false, false, play_result_500},
    {"result-garbage", "returns a result again when the answer is not JSON",
     "the answer did not come from the server", "Results", CHECK_ANY, false, false, play_result_garbage},
    {"result-truncated", "returns a result again when the answer is incomplete",
     "half an answer acknowledges nothing", "Results", CHECK_ANY, false, false, play_result_truncated},
    {"no-outcome", "keeps a result until an answer has an outcome for it",
     "status 200 alone acknowledges nothing", "Results", CHECK_ANY, false, false, play_no_outcome},
    {"late", "drops a result whose outcome is late",
     "it would return it forever", "Results", CHECK_ANY, false, false, play_late},
    {"unknown-outcome", "drops a result whose outcome is unknown",
     "it would return it forever", "Results", CHECK_ANY, false, false, play_unknown_outcome},
    {"unreadable", "returns an error for a result that is answered 422 when sent alone, and the others unchanged",
     "one bad output would block all others", "Results", CHECK_ANY, false, false, play_unreadable},
    {"holding-answered", "lists a request as held until an answer has an outcome for its result",
     "the request would be sent again and again", "Lost requests", CHECK_ANY, false, false, play_holding_answered},
    {"retry-after", "returns results no sooner than Retry-After says",
     "an overloaded server would never recover", "When the server is away", CHECK_ANY, false, false, play_retry_after},
    {"retry-after-429", "requests work no sooner than Retry-After says",
     "an overloaded server would never recover", "When the server is away", CHECK_ANY, false, false, play_retry_after_429},
    {"backoff", "waits between failed calls, with growing pauses",
     "all agents at once would keep a server from starting", "When the server is away", CHECK_ANY, false, false, play_backoff},
    {"server-restart", "waits for an unavailable server, and then returns its results",
     "a restart of the server would lose its work", "When the server is away", CHECK_ANY, false, false, play_server_restart},

    {"deadline-passed", "returns nothing for a request without time left, and continues with others",
     "another instance may be working on it", "Deadlines", CHECK_ANY, false, false, play_deadline_passed},
    {"deadline-sent", "counts the time left from the sending of its call",
     "a slow network would extend its deadline", "Deadlines", CHECK_ANY, false, false, play_deadline_sent},
    {"deadline-waited", "adds waited_ms, the time that its call was parked",
     "it would give up too early", "Deadlines", CHECK_ANY, false, false, play_deadline_waited},
    {"clocks", "uses time_left_ms, not the server's clock",
     "clocks of two machines may differ", "Deadlines", CHECK_ANY, false, false, play_clocks},

    {"same-key", "answers another attempt of a step with the output of the first",
     "the step would take effect twice", "Each effect once", CHECK_ANY, false, false, play_same_key},
    {"undo", "undoes, and answers a repeated undo with the same output",
     "it would be undone twice", "Each effect once", CHECK_UNDO, false, false, play_undo},
    {"undo-first", "answers null to an undo that comes first, and then refuses the forward request",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_UNDO, false, false, play_undo_first},
    {"forward-after-undo", "refuses a forward request of a step that was undone",
     "a server restored from a backup would rely on an effect that does not exist", "Each effect once", CHECK_UNDO, false, false, play_forward_after_undo},

    {"killed", "holds nothing after it was killed, and executes requests that come again",
     "requests of the former process would be lost until their deadline", "Lost requests", CHECK_ANY, false, P, play_killed},
    {"record-killed", "answers a request that completed before it was killed with the same output",
     "a record in memory does not prevent a second effect", "Each effect once", CHECK_ANY, false, P, play_record_killed},
    {"undo-killed", "after it was killed, refuses a request that was undone before",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_UNDO, false, P, play_undo_killed},
    {"effect-killed", "has each effect once, at whatever moment it is killed",
     "an effect written apart from its record would occur twice, or not at all", "Each effect once", CHECK_EFFECTS, false, P, play_effect_killed},
    {"undo-races", "leaves no effect when an undo comes at any moment of its forward request",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_EFFECTS_UNDO, false, false, play_undo_races},
    {"sigterm", "returns all results after SIGTERM, and ends",
     "each of its restarts would cost attempts", "Ending well", CHECK_ANY, false, P, play_sigterm},
    {"refused", "reports that its token is refused, and ends with a status other than 0 or retries later",
     "nobody would know why nothing happens", "When the server is away", CHECK_ANY, false, P, play_refused},
    {"another-installation", "names the installation of the first answer in each call, and reports another one at that address without working for it",
     "a task could start in one installation and end in another", "One installation", CHECK_ANY, false, P, play_another_installation},
    {"many", "executes fifty requests with any number of places",
     "some would get lost between its calls", "Places", CHECK_ANY, false, false, play_many},
    {"nodes-found", "works for the nodes that it learns of, and returns results to the node that sent the request",
     "it would stop when one node fails", "Several nodes", CHECK_ANY, false, false, play_nodes_found},

    {"echo", "passes inputs and outputs on unchanged, whatever JSON they are",
     "the next step would receive something else", "Results", CHECK_KNOWN, false, false, play_echo},
    {"fail", "returns errors with all of their members",
     "the server could not decide what comes next", "Results", CHECK_KNOWN, false, false, play_fail},
    {"count-once", "has one effect for all attempts",
     "effects would occur twice", "Each effect once", CHECK_KNOWN, false, false, play_count_once},
    {"count-steps", "has two effects for two steps of a task",
     "the second step would never be executed", "Each effect once", CHECK_KNOWN, false, false, play_count_steps},
    {"count-anew", "has another effect for a step that is repeated under another key (`TASK/STEP~2`)",
     "a step that an operator restarted would not be executed", "Each effect once", CHECK_KNOWN, false, false, play_count_anew},
    {"count-undo", "undoes an effect once",
     "it would be undone twice", "Each effect once", CHECK_KNOWN, false, false, play_count_undo},
    {"deadline-begun", "does not begin a request without time left",
     "it would take effect after it was given up", "Deadlines", CHECK_KNOWN, false, false, play_deadline_begun},
    {"deadline-slow", "returns nothing after the deadline has passed",
     "another instance may be working on it", "Deadlines", CHECK_KNOWN, false, false, play_deadline_slow},
    {"undo-at-work", "undoes a running request after it has ended, or prevents its effect",
     "an effect would come after its undo, and stay", "Each effect once", CHECK_KNOWN, false, false, play_undo_at_work},
    {"places", "requests as many as it can begin at once, and begins them",
     "the time of requests would run while they wait in the agent", "Places", CHECK_KNOWN, false, false, play_places},
    {"holding-at-work", "lists running requests as held",
     "the request would be sent again and again", "Lost requests", CHECK_KNOWN, false, false, play_holding_at_work},
    {"repeat-in-work", "continues a running request when it is sent again",
     "it would run twice", "Lost requests", CHECK_KNOWN, false, false, play_repeat_in_work},
    {"beats", "sends heartbeats of a long request, with its progress",
     "nobody would see the progress", "Heartbeats", CHECK_KNOWN, false, false, play_beats},
    {"beats-lost", "continues work and heartbeats when heartbeats fail",
     "losing one does no harm", "Heartbeats", CHECK_KNOWN, false, false, play_beats_lost},
    {"beat-stop", "obeys a stop in the answer to a heartbeat",
     "unwanted work would continue", "Heartbeats", CHECK_KNOWN, false, false, play_beat_stop},
    {"beat-acknowledged", "continues while its heartbeats are acknowledged, however long it takes",
     "long work would never end", "Heartbeats", CHECK_KNOWN, false, false, play_beat_acknowledged},
    {"beat-deadline", "gives up and returns nothing when no heartbeat is acknowledged for heartbeat_ms",
     "the server has given the request to another instance", "Heartbeats", CHECK_KNOWN, false, false, play_beat_deadline},
    {"tries", "reports how many calls to its service an attempt took",
     "an unreliable service would not be seen", "Results", CHECK_KNOWN, false, false, play_tries},
    {"resume", "returns resume details, and uses them in the next attempt",
     "long work would start from the beginning", "Results", CHECK_KNOWN, false, false, play_resume},
    {"elsewhere", "can leave a result to someone else, and then has a free place",
     "decisions of people would occupy places", "Results", CHECK_KNOWN, false, false, play_elsewhere},
    {"nodes-holding", "lists all that it holds to each node",
     "a node that takes over would send running requests again", "Several nodes", CHECK_KNOWN, false, false, play_nodes_holding},
    {"nodes-same", "treats a request from two nodes as one",
     "it would run twice", "Several nodes", CHECK_KNOWN, false, false, play_nodes_same},
    {"nodes-gone", "returns a result to another node when the one that sent the request is gone",
     "it would be lost with the node", "Several nodes", CHECK_KNOWN, false, false, play_nodes_gone},

    {"form", "makes calls as documented: paths, members, types, limits",
     "a server refuses others", "The call", CHECK_ANY, R},
    {"holding", "lists what it holds in each call for work",
     "no lost request would be sent again", "Lost requests", CHECK_ANY, R},
    {"instance", "has one name for its process, the same after a restart",
     "the server could not detect lost requests", "The call", CHECK_ANY, R},
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
