/*
 * The protocol of Intact: claim, fencing, lease, complete-by and undo, for one task of two steps,
 * two schedulers, two supervisors, two instances of agents. README.md says what is modelled, what
 * is bounded, and which function each transition stands for. REACHED(name) marks a transition that
 * has to be reached in some good run; its name is its row in the README's table.
 *
 * Every option is one d_step: one transaction of the store, or one thing that happens in one
 * process.
 */

/* How often each fault may happen in a run; tools/model sets them. */
#ifndef SCHEDULER_CRASHES
#define SCHEDULER_CRASHES 0
#endif
#ifndef NODE_LAPSES /* the lease of a node that lives runs out: it was stopped */
#define NODE_LAPSES 0
#endif
#ifndef SUPERVISOR_CRASHES
#define SUPERVISOR_CRASHES 0
#endif
#ifndef LEADER_LAPSES
#define LEADER_LAPSES 0
#endif
#ifndef AGENT_CRASHES
#define AGENT_CRASHES 0
#endif
#ifndef LOSSES
#define LOSSES 0
#endif
#ifndef OVERTAKES /* a request is sent again although its instance has it */
#define OVERTAKES 0
#endif
#ifndef SUCCESSORS /* a process is followed by one of the same name while it still works */
#define SUCCESSORS 0
#endif
#ifndef UNSENT
#define UNSENT 0
#endif
#ifndef FAILURES /* answers with an error */
#define FAILURES 0
#endif
#ifndef DEADLINES /* 1: the complete-by of the task may pass */
#define DEADLINES 0
#endif

/* Says once that this transition was reached; no part of the state. */
#define REACHED(name) \
    c_code { static int said; if (!said) { said = 1; printf("reached %s\n", #name); } }

#include "task.pml"

/* ---- faults that are left ---- */

byte scheduler_crashes = SCHEDULER_CRASHES;
byte node_lapses = NODE_LAPSES;
byte supervisor_crashes = SUPERVISOR_CRASHES;
byte leader_lapses = LEADER_LAPSES;
byte agent_crashes = AGENT_CRASHES;
byte losses = LOSSES;
byte overtakes = OVERTAKES;
byte successors = SUCCESSORS;
byte unsent = UNSENT;
byte failures = FAILURES;

#define UP   1
#define DOWN 0
#define GONE 2 /* never comes back; the other one of its kind then stays */

/* ---- schedulers ---- */

byte node[2] = UP;
byte copy[2] = ABSENT;   /* the node's copy of the row */
byte starting[2] = 0;    /* decided and not committed: 1 + step * 2 + instance, or AGAIN + job */
bit node_lease[2] = 1;   /* it has not run out */
#ifdef BROKEN_CLAIM
bit seen_pending[2];
#endif

#define AGAIN 8

/* ---- supervisors ---- */

byte supervisor[2] = UP;
byte scanned[2] = ABSENT; /* its copy of the overdue row */
byte leader = 1;          /* holder of the lease: 0 nobody, else supervisor + 1 */
bit leader_lapsed = 0;    /* the lease has run out */

/* ---- agents: each instance has one place ----
 *
 * Process p has the name of instance p & 1. Processes 2 and 3 are older ones of that name, which
 * still work, or whose last answer is still on its way; nobody asks them any more. */

#define IDLE      0
#define WORKING   1
#define SAYS_DONE 2 /* the work is over, and its answer not yet taken */
#define SAYS_NONE 3
#define SAYS_UNKNOWN 4

#define NAME(p) ((p) & 1)
#if SUCCESSORS
#define PROCESSES 4
#else
#define PROCESSES 2
#endif

byte agent[2] = UP;
byte phase[PROCESSES] = IDLE;
byte job[PROCESSES] = 0;

/* A request on its way to the instance. */
byte message[2] = 0;     /* job */
bit sender[2];           /* the node that it comes from */
bit first[2];            /* its sender never sent it before, and knows of nobody who did */
byte kept_back[2];       /* of each node: the job of a request that did not leave */

#define says_something(a) (phase[a] >= SAYS_DONE)
#define is_idle(a)        (agent[a] == UP && phase[a] == IDLE && message[a] == 0)
#if SUCCESSORS
#define somebody_says     (says_something(0) || says_something(1) || \
                           says_something(2) || says_something(3))
#else
#define somebody_says     (says_something(0) || says_something(1))
#endif
#define command_for(n)    (somebody_says || kept_back[n] != 0)

/* What an answer says of the effect. Who was asked more than once answers for one time of them. */
#ifdef BROKEN_NONE
#define none_of(p)        NONE
#else
#define none_of(p)        (was_resent(job[p]) -> UNKNOWN : NONE)
#endif
#ifdef BROKEN_LATE_NONE
#define late_none_of(p)   NONE
#else
#define late_none_of(p)   none_of(p)
#endif
#define says(p, none)     (phase[p] == SAYS_DONE -> HAPPENED : \
                           (phase[p] == SAYS_NONE -> none : UNKNOWN))
hidden byte said; /* within one transaction */

inline message_drop(gone)
{
    message[gone] = 0;
    sender[gone] = 0;
    first[gone] = 0
}

/* After the end only what agents do to the world can matter. */
inline forget_what_no_longer_matters()
{
    copy[0] = ABSENT;
    copy[1] = ABSENT;
#ifndef BROKEN_RESEND
    starting[0] = 0;
    starting[1] = 0;
#endif
    resent[0] = 0; resent[1] = 0; resent[2] = 0; resent[3] = 0;
    resent[4] = 0; resent[5] = 0; resent[6] = 0; resent[7] = 0;
    kept_back[0] = 0;
    kept_back[1] = 0;
    scanned[0] = ABSENT;
    scanned[1] = ABSENT;
    node[0] = UP;
    node[1] = UP;
    node_lease[0] = 1;
    node_lease[1] = 1;
    supervisor[0] = UP;
    supervisor[1] = UP;
    leader = 0;
    leader_lapsed = 0;
    scheduler_crashes = 0;
    node_lapses = 0;
    supervisor_crashes = 0;
    leader_lapses = 0;
    agent_crashes = 0;
    overtakes = 0;
    successors = 0;
    unsent = 0;
    failures = 0
}

/* Somebody else writes. A copy that nothing will be decided on is as good as none. */
inline copy_spoils(other)
{
    if
    :: copy[other] == FRESH ->
        copy[other] = (starting[other] == 0 && owner != other + 1 -> ABSENT : STALE)
    :: else
    fi
}

inline scans_spoil()
{
    if
    :: scanned[0] == FRESH -> scanned[0] = STALE
    :: else
    fi;
    if
    :: scanned[1] == FRESH -> scanned[1] = STALE
    :: else
    fi
}

/* Node n writes the row: before any change is made to it. */
inline node_writes(writer)
{
#ifndef BROKEN_REVISION /* there it is to fail by what comes of it */
    assert(copy[writer] == FRESH); /* invariant 1: nobody wrote since it read */
#endif
    copy_spoils(1 - writer);
    scans_spoil()
}

inline takes_ownership(taker)
{
    if
    :: !has_ended ->
        owner = taker + 1;
        old_boot = 0;
        task_state = WORK
    :: else
    fi
}

inline claims(claimer)
{
    copy[claimer] = FRESH;
    node_writes(claimer);
    takes_ownership(claimer)
}

#define is_owner(n)   (owner == n + 1 && !old_boot)
#define rests(n)      (!has_ended && node[n] == UP && starting[n] == 0)
#define has_request   (request[0] || request[1] || request_deadline)
#define somebody_to_work (agent[0] == UP || agent[1] == UP)

inline request_arrives(at, what_came)
{
#ifndef BROKEN_UNSENT /* there it is to fail by what comes of it */
    assert(DIR(what_came) == UNDO || EFF(STEP(what_came), NUMBER(what_came)) != NOT_MADE);
    assert(DIR(what_came) == FORWARD || (undo_began(STEP(what_came)) &&
           attempt[STEP(what_came)] >= NUMBER(what_came))); /* invariant 2: durable before sent */
#endif
    if
    :: phase[at] == IDLE ->
        job[at] = what_came;
        phase[at] = WORKING
    :: else -> REACHED(arrives_again) /* it is in work */
    fi
}

/* Where nothing can happen to a request on its way, a slow message is the same as a slow agent. */
#if LOSSES + OVERTAKES + UNSENT + SCHEDULER_CRASHES > 0
#define NETWORK 1
#else
#define NETWORK 0
#endif

inline sends(from, to, what, for_the_first_time)
{
    if
#if !NETWORK
    :: agent[to] == UP -> request_arrives(to, what)
#endif
    :: NETWORK && agent[to] == UP && message[to] == 0 ->
        message[to] = what;
        sender[to] = from;
        first[to] = for_the_first_time
    :: else /* the call that was to carry it is gone, or carries another */
    fi
}

#define step_of(c)  (((c) - 1) >> 1)
#define given_to(c) (((c) - 1) & 1)
#define next_number(s) (direction == UNDO && !undo_began(s) -> 1 : attempt[s] + 1)

/* One answer that is there to be taken; what the row says decides what it is worth. */
inline takes_answer(judge, by)
{
#ifdef BROKEN_LATE
    if
    :: DIR(job[by]) == FORWARD && state[STEP(job[by])] == RUNNING ->
#else
    if
    :: is_current(job[by]) ->
#endif
        assert(NUMBER(job[by]) == attempt[STEP(job[by])]); /* invariant 3 */
        node_writes(judge);
        takes_ownership(judge);
        request[STEP(job[by])] = 0;
        if
        :: phase[by] == SAYS_NONE && was_resent(job[by]) -> REACHED(none_doubted)
        :: else
        fi;
        said = says(by, none_of(by));
        step_answered(STEP(job[by]), said, (phase[by] == SAYS_NONE));
        settle()
    :: else ->
        if
        :: !has_ended && DIR(job[by]) == FORWARD &&
           EFF(STEP(job[by]), NUMBER(job[by])) == TIMEDOUT ->
            REACHED(late_result);
            node_writes(judge);
            EFF(STEP(job[by]), NUMBER(job[by])) = says(by, late_none_of(by));
#ifdef BROKEN_HASTY
            was_resent(job[by]) = 0;
#endif
            settle()
        :: else
        fi
    fi;
    if
    :: !is_owner(judge) -> copy[judge] = ABSENT
    :: else
    fi
}

inline agent_rests(rested)
{
    phase[rested] = IDLE;
    job[rested] = 0
}

#ifdef BROKEN_REVISION
#define may_commit(n) true
#else
#define may_commit(n) (copy[n] == FRESH)
#endif
#ifdef BROKEN_RESEND
#define may_resend(n) true
#else
#define may_resend(n) may_commit(n)
#endif

/* Then to give a step to number 1 would be no different from giving it to number 0. */
#define instances_alike(n) (is_idle(0) && is_idle(1) && !is_open(0) && !is_open(1) && \
                            starting[1 - n] == 0)

#define decides(n, s, a) \
    d_step { rests(n) && copy[n] == FRESH && is_owner(n) && is_ready(s) && is_idle(a) && \
             (a == 0 || !instances_alike(n)) -> \
        REACHED(decide_start); \
        starting[n] = 1 + s * 2 + a; \
        SEND_EARLY(n, s, a) }

#ifdef BROKEN_SEND
#define SEND_EARLY(n, s, a) sends(n, a, JOB(s, direction, next_number(s)), 1)
#define SEND_DURABLE(n) skip
#else
#define SEND_EARLY(n, s, a) skip
#define SEND_DURABLE(n) \
    sends(n, given_to(starting[n]), \
          JOB(step_of(starting[n]), direction, attempt[step_of(starting[n])]), 1)
#endif

/* Its instance does not hold what it was given. Where a call was overtaken by what happened since,
 * that may be untrue by now. */
#define sends_again(n, s) \
    d_step { rests(n) && copy[n] == FRESH && is_owner(n) && is_open(s) && !is_overdue(s) && \
             is_idle(instance[s]) -> \
        REACHED(decide_send_again); \
        starting[n] = AGAIN + current_job(s) }
#define sends_needlessly(n, s) \
    d_step { overtakes > 0 && \
             rests(n) && copy[n] == FRESH && is_owner(n) && is_open(s) && !is_overdue(s) && \
             agent[instance[s]] == UP && phase[instance[s]] != IDLE -> \
        REACHED(send_needlessly); \
        overtakes--; \
        starting[n] = AGAIN + current_job(s) }
#define resending(n) (starting[n] - AGAIN)

/* A resend is on record before it leaves. */
inline written_down(resender)
{
    node_writes(resender);
    was_resent(resending(resender)) = 1
}

#if defined(BROKEN_RESENT) /* it is not */
#define write_resend(n) skip
#elif defined(BROKEN_RESEND) /* it leaves even where others wrote meanwhile */
#define write_resend(n) if :: copy[n] == FRESH -> written_down(n) :: else fi
#else
#define write_resend(n) written_down(n)
#endif

#define takes(n, p) \
    d_step { rests(n) && copy[n] == FRESH && says_something(p) -> \
        takes_answer(n, p); \
        agent_rests(p) }

/* A process dies with all it knew. What it had sent may be on its way, or die with it. */
inline node_dies(dead)
{
    node[dead] = DOWN;
    copy[dead] = ABSENT;
    starting[dead] = 0;
    if
    :: owner == dead + 1 -> old_boot = 1
    :: else
    fi;
    kept_back[dead] = 0;
    if /* nobody will tell whether it left */
    :: message[0] != 0 && sender[0] == dead -> first[0] = 0
    :: else
    fi;
    if
    :: message[1] != 0 && sender[1] == dead -> first[1] = 0
    :: else
    fi
}

inline requests_die(dying)
{
    if
    :: message[0] != 0 && sender[0] == dying -> message_drop(0)
    :: else
    fi;
    if
    :: message[1] != 0 && sender[1] == dying -> message_drop(1)
    :: else
    fi
}

#ifdef BROKEN_UNSENT
#define others_sent(j) false
#else
#define others_sent(j) was_resent(j)
#endif

proctype Scheduler(bit n)
{
end:
    do
#ifdef BROKEN_CLAIM
    :: d_step { rests(n) && node_lease[n] && task_state == PENDING && owner == 0 &&
                !seen_pending[n] ->
        seen_pending[n] = 1; copy[n] = FRESH }
    :: d_step { rests(n) && seen_pending[n] ->
        seen_pending[n] = 0; node_writes(n); takes_ownership(n) }
#else
    :: d_step { rests(n) && node_lease[n] && task_state == PENDING && owner == 0 &&
                (has_request || somebody_to_work) -> REACHED(claim);
        claims(n) }
#endif
    :: d_step { rests(n) && owner == n + 1 && old_boot -> REACHED(claim_boot);
        claims(n) }
#ifndef BROKEN_LEASE
    :: d_step { rests(n) && node_lease[n] && owner == 2 - n &&
                (!node_lease[1 - n] || (old_boot && node[1 - n] == UP)) -> REACHED(claim_node);
        claims(n) }
#endif
    :: d_step { node[n] == UP && !node_lease[n] -> REACHED(renew_lease);
        node_lease[n] = 1 }

    /* reading */
    :: d_step { rests(n) && copy[n] == ABSENT && command_for(n) -> REACHED(load);
        copy[n] = FRESH }
    :: d_step { rests(n) && copy[n] == STALE -> REACHED(conflict);
        copy[n] = (is_owner(n) -> FRESH : ABSENT) }

    /* from ready to running: decided on the copy, then committed, and sent when that is durable */
    :: decides(n, 0, 0)
    :: decides(n, 0, 1)
    :: decides(n, 1, 0)
    :: decides(n, 1, 1)
    :: d_step { node[n] == UP && starting[n] != 0 && starting[n] <= AGAIN && may_commit(n) ->
        REACHED(commit_start);
        node_writes(n);
        step_starts(step_of(starting[n]), given_to(starting[n]));
        SEND_DURABLE(n);
        starting[n] = 0 }
    :: d_step { node[n] == UP && starting[n] != 0 && copy[n] == STALE -> REACHED(start_conflict);
        starting[n] = 0 }

    /* what an instance has lost: written down, then sent */
    :: sends_again(n, 0)
    :: sends_again(n, 1)
#if OVERTAKES
    :: sends_needlessly(n, 0)
    :: sends_needlessly(n, 1)
#endif
    :: d_step { node[n] == UP && starting[n] > AGAIN && may_resend(n) -> REACHED(commit_send_again);
        write_resend(n);
        sends(n, instance[STEP(resending(n))], resending(n), 0);
        starting[n] = 0 }

    /* results: any node takes any */
    :: d_step { rests(n) && copy[n] == FRESH && says_something(0) -> REACHED(result);
        takes_answer(n, 0);
        agent_rests(0) }
    :: takes(n, 1)
#if SUCCESSORS
    :: d_step { rests(n) && copy[n] == FRESH && says_something(2) -> REACHED(result_of_old);
        takes_answer(n, 2);
        agent_rests(2) }
    :: takes(n, 3)
#endif
    :: d_step { rests(n) && copy[n] == FRESH && says_something(0) && losses > 0 ->
        REACHED(outcome_lost);
        losses--;
        takes_answer(n, 0) }
    :: d_step { rests(n) && copy[n] == FRESH && says_something(1) && losses > 0 ->
        losses--;
        takes_answer(n, 1) }

    /* what the supervisor asked for */
    :: d_step { rests(n) && copy[n] == FRESH && is_owner(n) && has_request -> REACHED(request_done);
        node_writes(n);
        if
        :: request[0] && is_open(0) -> step_times_out(0)
        :: else
        fi;
        if
        :: request[1] && is_open(1) -> step_times_out(1)
        :: else
        fi;
        if
        :: request_deadline ->
            deadline_passed = 1;
            if
            :: direction == FORWARD -> turn_back()
            :: else
            fi
        :: else
        fi;
        request[0] = 0;
        request[1] = 0;
        request_deadline = 0;
        settle() }

    /* a request that did not leave; unless somebody else sent it again */
    :: d_step { rests(n) && copy[n] == FRESH && kept_back[n] != 0 ->
        if
        :: is_current(kept_back[n]) && !others_sent(kept_back[n]) -> REACHED(not_sent);
            node_writes(n);
            takes_ownership(n);
            step_not_sent(STEP(kept_back[n]));
            settle()
        :: else -> REACHED(not_sent_refused)
        fi;
        kept_back[n] = 0 }
    :: d_step { rests(n) && copy[n] == FRESH && is_owner(n) && !is_open(0) && !is_open(1) &&
                !somebody_to_work && !has_request -> REACHED(release);
        node_writes(n);
        owner = 0;
        task_state = PENDING;
        copy[n] = ABSENT }

    /* death */
    :: d_step { node[n] == UP && scheduler_crashes > 0 && !has_ended -> REACHED(scheduler_dies);
        scheduler_crashes--;
        node_dies(n) }
    :: d_step { node[n] == UP && scheduler_crashes > 0 && !has_ended &&
                ((message[0] != 0 && sender[0] == n) || (message[1] != 0 && sender[1] == n)) ->
        scheduler_crashes--;
        node_dies(n);
        requests_die(n) }
    :: d_step { !has_ended && node[n] == DOWN -> REACHED(scheduler_starts);
        node[n] = UP;
        node_lease[n] = 1 }
    :: d_step { !has_ended && node[n] == DOWN && node[1 - n] != GONE -> REACHED(scheduler_gone);
        node[n] = GONE }
    od
}

/* ---- supervisors ---- */

#define wants_request ((is_overdue(0) && !request[0]) || (is_overdue(1) && !request[1]) || \
                       (deadline_due && !request_deadline))
#define still_runs(s) (is_open(s) && !is_overdue(s))

#ifdef BROKEN_EPOCH
#define may_write(m) (scanned[m] == FRESH)
#else
#define may_write(m) (scanned[m] == FRESH && leader == m + 1)
#endif
#ifdef BROKEN_LEADER
#define lease_is_mine(m) (leader == 0 || leader == m + 1)
#else
#define lease_is_mine(m) (leader == 0 || leader == m + 1 || leader_lapsed)
#endif

proctype Supervisor(bit m)
{
end:
    do
    :: d_step { supervisor[m] == UP && scanned[m] == ABSENT && wants_request && !has_ended &&
                lease_is_mine(m) -> REACHED(scan);
        leader = m + 1;
        leader_lapsed = 0;
        scanned[m] = FRESH }
    :: d_step { supervisor[m] == UP && may_write(m) -> REACHED(request);
        assert(leader == m + 1); /* a deposed leader writes nothing */
        assert(scanned[m] == FRESH);
        copy_spoils(0);
        copy_spoils(1);
        scans_spoil();
        scanned[m] = ABSENT;
        request[0] = is_overdue(0);
        request[1] = is_overdue(1);
        request_deadline = deadline_due;
        if
        :: !still_runs(0) && !still_runs(1) ->
            REACHED(request_releases);
            owner = 0;
            old_boot = 0;
            task_state = PENDING
        :: else
        fi }
    :: d_step { supervisor[m] == UP && scanned[m] != ABSENT && !may_write(m) ->
        REACHED(request_conflict);
        scanned[m] = ABSENT }

    :: d_step { supervisor[m] == UP && supervisor_crashes > 0 && !has_ended ->
        REACHED(supervisor_dies);
        supervisor_crashes--;
        scanned[m] = ABSENT;
        supervisor[m] = DOWN }
    :: d_step { !has_ended && supervisor[m] == DOWN -> REACHED(supervisor_starts);
        supervisor[m] = UP }
    :: d_step { !has_ended && supervisor[m] == DOWN && supervisor[1 - m] != GONE ->
        REACHED(supervisor_gone);
        supervisor[m] = GONE }
    od
}

/* ---- agents ---- */

/* TIMELY: no agent takes effect later than complete-by plus margin; otherwise any may, always. */
#ifdef TIMELY
#define has_time(s) (clock[s] < 2)
#else
#define has_time(s) true
#endif

/* An agent without record (and timely) does what it is told, each time it is told. */
#ifndef RECORDLESS
#define RECORDLESS 0
#endif
#define given_up(j) (DIR(j) == FORWARD -> \
    (clock[STEP(j)] > 0 || EFF(STEP(j), NUMBER(j)) != OPEN) : \
    (undo_late[STEP(j)] || !is_current(j)))

proctype Agent(byte a)
{
end:
    do
    :: d_step { a < 2 && agent[NAME(a)] == UP && message[NAME(a)] != 0 &&
                (phase[a] == IDLE || job[a] == message[NAME(a)]) -> REACHED(arrives);
        request_arrives(a, message[NAME(a)]);
        message_drop(NAME(a)) }

    /* the work: nothing else comes between looking at the record and writing it */
    :: d_step { phase[a] == WORKING && DIR(job[a]) == FORWARD &&
                (forward_key[STEP(job[a])] == 0 || RECORDLESS) && has_time(STEP(job[a])) ->
        REACHED(effect);
        assert(task_state != COMPENSATED); /* invariant 5: nothing can stand afterwards */
        forward_key[STEP(job[a])] = DONE;
        stands[STEP(job[a])] = 1;
        phase[a] = SAYS_DONE }
    :: d_step { phase[a] == WORKING && DIR(job[a]) == FORWARD &&
                forward_key[STEP(job[a])] != 0 && !RECORDLESS -> REACHED(effect_recorded);
        phase[a] = (forward_key[STEP(job[a])] == DONE -> SAYS_DONE : SAYS_NONE) }
    :: d_step { phase[a] == WORKING && DIR(job[a]) == UNDO -> REACHED(undo);
        assert(task_state != PROCESSED);
        if
        :: RECORDLESS -> stands[STEP(job[a])] = 0
        :: !RECORDLESS && undo_key[STEP(job[a])] -> skip
        :: !RECORDLESS && !undo_key[STEP(job[a])] && forward_key[STEP(job[a])] == DONE ->
            stands[STEP(job[a])] = 0
        :: else ->
#if !defined(TIMELY) && !defined(BROKEN_TOMBSTONE)
            REACHED(tombstone); forward_key[STEP(job[a])] = BARRED
#else
            skip
#endif
        fi;
        undo_key[STEP(job[a])] = 1;
        phase[a] = SAYS_DONE }
    /* "no effect" is only what this process knows of this attempt */
    :: d_step { phase[a] == WORKING && failures > 0 && !has_ended -> REACHED(fails_none);
        failures--;
        phase[a] = SAYS_NONE }
    :: d_step { phase[a] == WORKING && failures > 0 && !has_ended -> REACHED(fails_unknown);
        failures--;
        phase[a] = SAYS_UNKNOWN }
    :: d_step { !has_ended && phase[a] == WORKING && given_up(job[a]) -> REACHED(gives_up);
        phase[a] = IDLE;
        job[a] = 0 }

    :: d_step { a < 2 && agent[NAME(a)] == UP && agent_crashes > 0 && !has_ended ->
        REACHED(agent_dies);
        agent_crashes--;
        agent[NAME(a)] = DOWN;
        phase[a] = IDLE;
        job[a] = 0;
        message_drop(NAME(a)) }
    :: d_step { a < 2 && agent[NAME(a)] == DOWN -> REACHED(agent_starts);
        agent[NAME(a)] = UP }
    :: d_step { a < 2 && agent[NAME(a)] == DOWN && agent[1 - NAME(a)] != GONE ->
        REACHED(agent_gone);
        agent[NAME(a)] = GONE }
#if SUCCESSORS
    /* what was on its way to the old process dies with its connections */
    :: d_step { a < 2 && agent[NAME(a)] == UP && phase[a] != IDLE && phase[2 + NAME(a)] == IDLE &&
                successors > 0 && !has_ended -> REACHED(successor_starts);
        successors--;
        phase[2 + NAME(a)] = phase[a];
        job[2 + NAME(a)] = job[a];
        phase[a] = IDLE;
        job[a] = 0;
        message_drop(NAME(a)) }
#endif
    od
}

/* ---- time, and the network ---- */

#define can_get_lost(a) (message[a] != 0)

proctype World()
{
end:
    do
    :: d_step { !has_ended && clock[0] == 0 && state[0] == RUNNING ->
        REACHED(overdue); clock[0] = 1 }
    :: d_step { !has_ended && clock[1] == 0 && state[1] == RUNNING -> clock[1] = 1 }
    :: d_step { !has_ended && direction == UNDO && clock[0] < 2 && !is_open(0) && must_wait(0) ->
        REACHED(margin); clock[0] = 2 }
    :: d_step { !has_ended && direction == UNDO && clock[1] < 2 && !is_open(1) && must_wait(1) ->
        clock[1] = 2 }
    :: d_step { !has_ended && state[0] == RETURNING && !undo_late[0] ->
        REACHED(undo_overdue); undo_late[0] = 1 }
    :: d_step { !has_ended && state[1] == RETURNING && !undo_late[1] -> undo_late[1] = 1 }
#if DEADLINES
    :: d_step { !has_ended && !task_late && direction == FORWARD ->
        REACHED(deadline); task_late = 1 }
#endif
    :: d_step { !has_ended && node_lease[0] && node[0] != UP ->
        REACHED(lease_of_dead); node_lease[0] = 0 }
    :: d_step { !has_ended && node_lease[1] && node[1] != UP -> node_lease[1] = 0 }
    :: d_step { !has_ended && node_lease[0] && node[0] == UP && node_lapses > 0 ->
        REACHED(lease_lapses);
        node_lapses--;
        node_lease[0] = 0 }
    :: d_step { !has_ended && node_lease[1] && node[1] == UP && node_lapses > 0 ->
        node_lapses--;
        node_lease[1] = 0 }
    :: d_step { !has_ended && leader != 0 && !leader_lapsed && supervisor[leader - 1] != UP ->
        REACHED(leader_dead); leader_lapsed = 1 }
    :: d_step { !has_ended && leader != 0 && !leader_lapsed && supervisor[leader - 1] == UP &&
                leader_lapses > 0 -> REACHED(leader_lapses);
        leader_lapses--;
        leader_lapsed = 1 }
    :: d_step { !has_ended && can_get_lost(0) && losses > 0 ->
        REACHED(request_lost); losses--; message_drop(0) }
    :: d_step { !has_ended && can_get_lost(1) && losses > 0 -> losses--; message_drop(1) }
    :: d_step { !has_ended && message[0] != 0 && first[0] && unsent > 0 &&
                node[sender[0]] == UP && kept_back[sender[0]] == 0 ->
        REACHED(kept_back);
        unsent--;
        kept_back[sender[0]] = message[0];
        message_drop(0) }
    :: d_step { !has_ended && message[1] != 0 && first[1] && unsent > 0 &&
                node[sender[1]] == UP && kept_back[sender[1]] == 0 ->
        unsent--;
        kept_back[sender[1]] = message[1];
        message_drop(1) }
#ifndef LIVENESS /* there the formula says it */
    :: d_step { timeout -> assert(has_ended) } -> break /* nothing is left to happen */
#endif
    od
}

init {
    atomic {
        copy[0] = FRESH;
        run Scheduler(0); run Scheduler(1);
        run Supervisor(0); run Supervisor(1);
        run Agent(0); run Agent(1);
#if SUCCESSORS
        run Agent(2); run Agent(3);
#endif
        run World()
    }
}

#ifdef LIVENESS
ltl ends { <> has_ended }
#endif
