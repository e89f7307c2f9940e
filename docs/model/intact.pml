/*
 * The protocol of Intact: claim, fencing, lease, complete-by and undo, for one task of two steps,
 * two schedulers, two supervisors, two instances of agents. README.md says what is modelled, what
 * is bounded, and which function each transition stands for. REACHED(name) marks a transition that has to be
 * reached in some good run; its name is its row in the README's table.
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
#ifndef DOUBLES
#define DOUBLES 0
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
byte doubles = DOUBLES;
byte unsent = UNSENT;
byte failures = FAILURES;

#define UP   1
#define DOWN 0
#define GONE 2 /* never comes back; the other one of its kind then stays */

/* ---- schedulers ---- */

byte node[2] = UP;
byte copy[2] = ABSENT;   /* the node's copy of the row */
byte starting[2] = 0;    /* decided and not committed: 1 + step * 2 + instance */
bit node_lease[2] = 1;   /* it has not run out */
#ifdef BROKEN_CLAIM
bit seen_pending[2];
#endif
#ifdef BROKEN_RESEND
byte remembered[2];      /* the open attempt as the stale copy shows it, and whose it is */
bit remembered_of[2];
#endif

/* ---- supervisors ---- */

byte supervisor[2] = UP;
byte scanned[2] = ABSENT; /* its copy of the overdue row */
byte leader = 1;          /* holder of the lease: 0 nobody, else supervisor + 1 */
bit leader_lapsed = 0;    /* the lease has run out */

/* ---- agents: each instance has one place ---- */

#define IDLE      0
#define WORKING   1
#define SAYS_DONE 2 /* the work is over, and its answer not yet taken */
#define SAYS_NONE 3
#define SAYS_UNKNOWN 4

byte agent[2] = UP;
byte phase[2] = IDLE;
byte job[2] = 0;

/* A request on its way to the instance. */
byte message[2] = 0;     /* job */
bit sender[2];           /* the node that it comes from */
bit first[2];            /* nobody else can have sent it, as far as its sender knows */
byte kept_back[2];       /* of each node: the job of a request that did not leave */

#define says_something(a) (phase[a] >= SAYS_DONE)
#define is_idle(a)        (agent[a] == UP && phase[a] == IDLE && message[a] == 0)
#define command_for(n)    (says_something(0) || says_something(1) || kept_back[n] != 0)

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
    starting[0] = 0;
    starting[1] = 0;
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
    unsent = 0;
    failures = 0
}

/* Somebody else writes. What a node knows of a request that did not leave is void then: another one
 * may have sent it since. */
inline copy_spoils(other)
{
    if
    :: copy[other] == FRESH ->
        copy[other] = STALE;
#ifndef BROKEN_RESEND
        if /* a copy that nothing will be decided on is as good as none */
        :: starting[other] == 0 && owner != other + 1 -> copy[other] = ABSENT
        :: else
        fi
#endif
#ifdef BROKEN_RESEND
        remembered[other] = 0;
        if
        :: is_open(0) -> remembered[other] = JOB(0, (state[0] == RETURNING), attempt[0]);
            remembered_of[other] = instance[0]
        :: is_open(1) -> remembered[other] = JOB(1, (state[1] == RETURNING), attempt[1]);
            remembered_of[other] = instance[1]
        :: else
        fi
#endif
    :: else
    fi;
#ifdef BROKEN_UNSENT
    skip
#else
    kept_back[other] = 0;
    if
    :: message[0] != 0 && sender[0] == other -> first[0] = 0
    :: else
    fi;
    if
    :: message[1] != 0 && sender[1] == other -> first[1] = 0
    :: else
    fi
#endif
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
    assert(DIR(what_came) == UNDO || EFF(STEP(what_came), NUMBER(what_came)) != NOT_MADE);
    assert(DIR(what_came) == FORWARD || (undo_began(STEP(what_came)) &&
           attempt[STEP(what_came)] >= NUMBER(what_came))); /* invariant 2: durable before sent */
    if
    :: phase[at] == IDLE ->
        job[at] = what_came;
        phase[at] = WORKING
    :: else /* it is in work */
    fi
}

/* Where nothing can happen to a request on its way, a slow message is the same as a slow agent. */
#if LOSSES + DOUBLES + UNSENT + SCHEDULER_CRASHES > 0
#define NETWORK 1
#else
#define NETWORK 0
#endif

inline sends(from, to, what)
{
    if
#if !NETWORK
    :: agent[to] == UP -> request_arrives(to, what)
#endif
    :: NETWORK && agent[to] == UP && message[to] == 0 ->
        message[to] = what;
        sender[to] = from;
        first[to] = 1
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
        step_answered(STEP(job[by]), (phase[by] == SAYS_DONE -> HAPPENED :
                                     (phase[by] == SAYS_NONE -> NONE : UNKNOWN)));
        settle()
    :: else ->
        if
        :: !has_ended && DIR(job[by]) == FORWARD &&
           EFF(STEP(job[by]), NUMBER(job[by])) == TIMEDOUT ->
            REACHED(late_result);
            node_writes(judge);
            EFF(STEP(job[by]), NUMBER(job[by])) =
                (phase[by] == SAYS_DONE -> HAPPENED : (phase[by] == SAYS_NONE -> NONE : UNKNOWN));
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
#ifndef BROKEN_REPEAT
    if /* the same one again, on its way: it would be known, and dropped */
    :: message[rested] == job[rested] -> message_drop(rested)
    :: else
    fi;
#endif
    phase[rested] = IDLE;
    job[rested] = 0
}

#ifdef BROKEN_REVISION
#define may_commit(n) true
#else
#define may_commit(n) (copy[n] == FRESH)
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
#define SEND_EARLY(n, s, a) sends(n, a, JOB(s, direction, next_number(s)))
#define SEND_DURABLE(n) skip
#else
#define SEND_EARLY(n, s, a) skip
#define SEND_DURABLE(n) \
    sends(n, given_to(starting[n]), \
          JOB(step_of(starting[n]), direction, attempt[step_of(starting[n])]))
#endif

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
    kept_back[dead] = 0
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

#define SENT_BEFORE(a) first[a] = 0

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
    :: d_step { node[n] == UP && starting[n] != 0 && may_commit(n) -> REACHED(commit_start);
        node_writes(n);
        step_starts(step_of(starting[n]), given_to(starting[n]));
        SEND_DURABLE(n);
        starting[n] = 0 }
    :: d_step { node[n] == UP && starting[n] != 0 && copy[n] == STALE -> REACHED(start_conflict);
        starting[n] = 0 }

    /* results: any node takes any */
    :: d_step { rests(n) && copy[n] == FRESH && says_something(0) -> REACHED(result);
        takes_answer(n, 0);
        agent_rests(0) }
    :: d_step { rests(n) && copy[n] == FRESH && says_something(1) ->
        takes_answer(n, 1);
        agent_rests(1) }
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

    /* requests to agents: one that did not leave, one that got lost */
    :: d_step { rests(n) && copy[n] == FRESH && kept_back[n] != 0 -> REACHED(not_sent);
        if
        :: is_current(kept_back[n]) ->
            node_writes(n); takes_ownership(n); step_not_sent(STEP(kept_back[n])); settle()
        :: else
        fi;
        kept_back[n] = 0 }
    :: d_step { rests(n) && copy[n] == FRESH && is_owner(n) && is_open(0) && !is_overdue(0) &&
                is_idle(instance[0]) && kept_back[n] == 0 -> REACHED(send_again);
        sends(n, instance[0], JOB(0, (state[0] == RETURNING), attempt[0]));
        SENT_BEFORE(instance[0]) }
    :: d_step { rests(n) && copy[n] == FRESH && is_owner(n) && is_open(1) && !is_overdue(1) &&
                is_idle(instance[1]) && kept_back[n] == 0 ->
        sends(n, instance[1], JOB(1, (state[1] == RETURNING), attempt[1]));
        SENT_BEFORE(instance[1]) }
#ifdef BROKEN_RESEND
    :: d_step { rests(n) && copy[n] == STALE && remembered[n] != 0 && is_idle(remembered_of[n]) ->
        sends(n, remembered_of[n], remembered[n]);
        SENT_BEFORE(remembered_of[n]) }
#endif

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

#ifdef BROKEN_RECORD
#define has_looked(s) true
#else
#define has_looked(s) (forward_key[s] == 0)
#endif

#define given_up(j) (DIR(j) == FORWARD -> \
    (clock[STEP(j)] > 0 || EFF(STEP(j), NUMBER(j)) != OPEN) : \
    (undo_late[STEP(j)] || !is_current(j)))

proctype Agent(bit a)
{
end:
    do
    :: d_step { agent[a] == UP && message[a] != 0 &&
                (phase[a] == IDLE || job[a] == message[a]) -> REACHED(arrives);
        request_arrives(a, message[a]);
        message_drop(a) }
    :: d_step { agent[a] == UP && message[a] != 0 && doubles > 0 &&
                phase[a] == IDLE -> REACHED(arrives_twice);
        doubles--;
        request_arrives(a, message[a]);
        first[a] = 0 }

    /* the work: nothing else comes between looking at the record and writing it */
    :: d_step { phase[a] == WORKING && DIR(job[a]) == FORWARD &&
                forward_key[STEP(job[a])] == 0 && has_time(STEP(job[a])) -> REACHED(effect);
        assert(task_state != COMPENSATED); /* invariant 5: nothing can stand afterwards */
        forward_key[STEP(job[a])] = DONE;
        stands[STEP(job[a])] = 1;
        phase[a] = SAYS_DONE }
    :: d_step { phase[a] == WORKING && DIR(job[a]) == FORWARD &&
                forward_key[STEP(job[a])] != 0 -> REACHED(effect_recorded);
        phase[a] = (forward_key[STEP(job[a])] == DONE -> SAYS_DONE : SAYS_NONE) }
    :: d_step { phase[a] == WORKING && DIR(job[a]) == UNDO -> REACHED(undo);
        assert(task_state != PROCESSED);
        if
        :: undo_key[STEP(job[a])] -> skip
        :: !undo_key[STEP(job[a])] && forward_key[STEP(job[a])] == DONE -> stands[STEP(job[a])] = 0
        :: else ->
#if !defined(TIMELY) && !defined(BROKEN_TOMBSTONE)
            REACHED(tombstone); forward_key[STEP(job[a])] = BARRED
#else
            skip
#endif
        fi;
        undo_key[STEP(job[a])] = 1;
        phase[a] = SAYS_DONE }
    /* who says "no effect" has looked at the record, whichever instance may have written it */
    :: d_step { phase[a] == WORKING && failures > 0 && !has_ended &&
                (DIR(job[a]) == UNDO || has_looked(STEP(job[a]))) -> REACHED(fails_none);
        failures--;
        phase[a] = SAYS_NONE }
    :: d_step { phase[a] == WORKING && failures > 0 && !has_ended -> REACHED(fails_unknown);
        failures--;
        phase[a] = SAYS_UNKNOWN }
    :: d_step { !has_ended && phase[a] == WORKING && given_up(job[a]) -> REACHED(gives_up);
        phase[a] = IDLE;
        job[a] = 0 }

    :: d_step { agent[a] == UP && agent_crashes > 0 && !has_ended -> REACHED(agent_dies);
        agent_crashes--;
        agent[a] = DOWN;
        phase[a] = IDLE;
        job[a] = 0;
        message_drop(a) }
    :: d_step { agent[a] == DOWN -> REACHED(agent_starts);
        agent[a] = UP }
    :: d_step { agent[a] == DOWN && agent[1 - a] != GONE -> REACHED(agent_gone);
        agent[a] = GONE }
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
        run World()
    }
}

#ifdef LIVENESS
ltl ends { <> has_ended }
#endif
