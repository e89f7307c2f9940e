/*
 * The row of the one task, and what decide() does to it (src/core). All of it is plain inlines:
 * each is used inside a d_step, which is one transaction of the store.
 *
 * Revisions are not counted, since counting has no end. What matters of a revision is whether the
 * copy that somebody decided on is still the row: each holder of a copy has a word that says FRESH
 * or STALE, and every write makes all other copies STALE (node_writes in intact.pml).
 */

/* ---- words ---- */

#define FORWARD 0
#define UNDO    1

/* task.state; WORK is processing or compensating, by the direction */
#define PENDING     0
#define WORK        1
#define PROCESSED   2
#define COMPENSATED 3
#define ERROR       4

/* step.state, with "has a current attempt" folded in */
#define WAITING   0
#define RUNNING   1 /* forward, its attempt is open */
#define COMPLETED 2
#define FAILED    3 /* forward */
#define UNDOING   4 /* between two tries of its compensation */
#define RETURNING 5 /* undoing, its attempt is open */
#define UNDONE    6
#define STUCK     7 /* failed, direction undo: no try of its compensation is left */

/* what a forward attempt did, as far as the row knows */
#define NOT_MADE 0
#define OPEN     1
#define NONE     2 /* answered: no effect */
#define UNKNOWN  3 /* answered: may have happened */
#define TIMEDOUT 4 /* never answered */
#define HAPPENED 5

/* a copy of the row */
#define ABSENT 0
#define FRESH  1
#define STALE  2

/* How many tries a step has in each direction: at most 2. */
#ifndef FORWARD_TRIES
#define FORWARD_TRIES 2
#endif
#ifndef UNDO_TRIES
#define UNDO_TRIES 2
#endif

/* An attempt is named by its job: step, direction, number. 0 is no job. */
#define JOB(s, d, k) (1 + (s) * 4 + (d) * 2 + (k) - 1)
#define STEP(j)      (((j) - 1) >> 2)
#define DIR(j)       ((((j) - 1) >> 1) & 1)
#define NUMBER(j)    ((((j) - 1) & 1) + 1)

/* ---- the row ---- */

/* Nodes, supervisors and instances are alike, so who comes first may as well be number 0: the run
 * begins when node 0 has claimed the task, and supervisor 0 has the lease. */
byte task_state = WORK;
bit direction = FORWARD;
byte owner = 1;      /* locked_by: 0 nobody, else node + 1 */
bit old_boot = 0;    /* ... a boot of that node which is gone */
byte state[2];       /* of each step */
byte attempt[2];     /* number of the latest, in the direction of the step */
bit instance[2];     /* to whom it was given */
byte effect[4];      /* of forward attempt k of step s: [s * 2 + k - 1] */
bit resent[8];       /* the attempt was sent again: [job - 1]; only while that can matter */
bit request[2];      /* the supervisor's: attempt of that step is overdue */
bit request_deadline;
bit deadline_passed; /* the task's complete-by was acted on */

/* ---- time ---- */

byte clock[2];      /* latest forward attempt: 1 complete-by passed, 2 margin passed too */
bit undo_late[2];   /* latest undo attempt: its complete-by passed */
bit task_late;      /* the task's complete-by passed */

/* ---- the world ---- */

bit stands[2];      /* the step's effect is there */
byte forward_key[2]; /* durable record of the service: 0 nothing, else done or barred */
bit undo_key[2];    /* ... the undo was done, or found nothing */

#define DONE   1
#define BARRED 2

/* ---- looking at the row ---- */

#define was_resent(j) resent[(j) - 1]
#define current_job(s) JOB(s, undo_began(s), attempt[s])
#define has_ended    (task_state >= PROCESSED)
#define EFF(s, k)    effect[(s) * 2 + (k) - 1]
#define is_open(s)   (state[s] == RUNNING || state[s] == RETURNING)
#define is_unknown(e) (e == UNKNOWN || e == TIMEDOUT)
#define in_doubt(s)  (is_unknown(EFF(s, 2)) || (EFF(s, 2) != HAPPENED && is_unknown(EFF(s, 1))))
#define has_effect(s) (EFF(s, 1) == HAPPENED || EFF(s, 2) == HAPPENED)
#define undo_began(s) (state[s] >= UNDOING)
#define needs_undo(s) (state[s] != UNDONE && (undo_began(s) || has_effect(s) || in_doubt(s)))
#ifndef BROKEN_HASTY /* of two who were asked, one may still be at work when the other has answered */
#define may_be_at_work(s) (was_resent(JOB(s, FORWARD, 1)) || was_resent(JOB(s, FORWARD, 2)))
#else
#define may_be_at_work(s) false
#endif
#define must_wait(s) (in_doubt(s) || EFF(s, 1) == TIMEDOUT || EFF(s, 2) == TIMEDOUT || \
                      may_be_at_work(s))

/* Is job j the current attempt of its step? */
#define is_current(j) (attempt[STEP(j)] == NUMBER(j) && \
                       state[STEP(j)] == (DIR(j) == UNDO -> RETURNING : RUNNING))

#ifdef PARALLEL
#define before_ended(s) true
#define after_settled(s) true
#else /* step 1 comes after step 0 */
#define before_ended(s) (s == 0 || state[0] == COMPLETED)
#define after_settled(s) (s == 1 || !(is_open(1) || needs_undo(1)))
#endif

#ifdef BROKEN_MARGIN
#define has_waited(s) true
#else
#define has_waited(s) (!must_wait(s) || clock[s] == 2)
#endif
#ifdef BROKEN_ORDER
#define may_undo(s) true
#else
#define may_undo(s) after_settled(s)
#endif

#define forward_ready(s) (direction == FORWARD && state[s] == WAITING && before_ended(s))
#define undo_ready(s)    (direction == UNDO && needs_undo(s) && !is_open(s) && state[s] != STUCK \
                          && may_undo(s) && has_waited(s))
#define is_ready(s)      (task_state == WORK && (forward_ready(s) || undo_ready(s)))

#define is_overdue(s) ((state[s] == RUNNING && clock[s] >= 1) || \
                       (state[s] == RETURNING && undo_late[s]))
#define deadline_due  (task_late && !deadline_passed && direction == FORWARD && !has_ended)

/* ---- changing it ---- */

inline end_in(end)
{
    task_state = end;
    owner = 0;
    old_boot = 0;
    request[0] = 0;
    request[1] = 0;
    request_deadline = 0;
    forget_what_no_longer_matters();
    if
    :: end == PROCESSED -> REACHED(processed);
        assert(stands[0] && stands[1]) /* invariant 5, one half */
    :: end == COMPENSATED -> REACHED(compensated);
        assert(!stands[0] && !stands[1]) /* the other half; see also where an agent takes effect */
    :: else -> REACHED(error)
    fi
}

/* settle(): has the task reached its end? */
inline settle()
{
    if
    :: has_ended -> skip
    :: !has_ended && direction == FORWARD && state[0] == COMPLETED && state[1] == COMPLETED ->
        end_in(PROCESSED)
    :: !has_ended && direction == UNDO && !is_open(0) && !is_open(1) ->
        if
        :: !needs_undo(0) && !needs_undo(1) -> end_in(COMPENSATED)
        :: (needs_undo(0) && state[0] != STUCK && after_settled(0)) ||
           (needs_undo(1) && state[1] != STUCK) -> skip
        :: else -> end_in(ERROR)
        fi
    :: else
    fi
}

/* turn_back(): the one turn. What runs goes on until it answers or is overdue. */
inline turn_back()
{
    assert(direction == FORWARD); /* invariant 8 */
    REACHED(turn_back);
    direction = UNDO;
    if
    :: task_state == WORK || task_state == PENDING -> skip
    :: else -> assert(false)
    fi
}

/* Whether it was sent again matters as long as an answer to it would be looked at. What was known
 * of the attempt's time and place is forgotten; that only gives its agent more freedom, since who
 * has to wait for the time to pass waits for all of it. */
inline attempt_over(over)
{
    if
#ifndef BROKEN_HASTY
    :: undo_began(over) -> was_resent(current_job(over)) = 0
#else
    :: undo_began(over) || EFF(over, attempt[over]) != TIMEDOUT -> was_resent(current_job(over)) = 0
#endif
    :: else
    fi;
    instance[over] = 0;
    clock[over] = (clock[over] == 2 -> 2 : 0);
    undo_late[over] = 0;
    request[over] = 0
}

/* step_fails(): another try, or the end of its tries */
inline step_fails(failed, for_good)
{
    if
    :: state[failed] == RETURNING ->
        if
        :: attempt[failed] == UNDO_TRIES -> REACHED(undo_stuck); state[failed] = STUCK
        :: else -> REACHED(undo_retry); state[failed] = UNDOING
        fi
    :: else ->
        assert(state[failed] == RUNNING);
        if
        :: for_good || attempt[failed] == FORWARD_TRIES ->
            state[failed] = FAILED;
            if
            :: direction == FORWARD -> turn_back()
            :: else
            fi
        :: else -> REACHED(retry); state[failed] = WAITING
        fi
    fi
}

/* on_start() */
inline step_starts(started, by_whom)
{
    assert(!is_open(started));       /* invariant 3: at most one current attempt */
    assert(task_state == WORK);
    instance[started] = by_whom;
    if
    :: direction == FORWARD ->
        assert(before_ended(started)); /* invariant 4 */
        assert(attempt[started] < FORWARD_TRIES);
        state[started] = RUNNING;
        attempt[started]++;
        EFF(started, attempt[started]) = OPEN;
        clock[started] = 0
    :: else ->
        assert(after_settled(started)); /* invariant 4, going back */
        if
        :: !undo_began(started) -> attempt[started] = 0
        :: else
        fi;
        assert(attempt[started] < UNDO_TRIES);
        state[started] = RETURNING;
        attempt[started]++;
        undo_late[started] = 0
    fi
}

/* on_not_sent(): nobody was asked; the number is given again, which tells nobody anything */
inline step_not_sent(unsent_step)
{
    if
    :: state[unsent_step] == RUNNING ->
        EFF(unsent_step, attempt[unsent_step]) = NOT_MADE;
        state[unsent_step] = WAITING
    :: else -> state[unsent_step] = UNDOING
    fi;
    attempt_over(unsent_step);
    was_resent(current_job(unsent_step)) = 0;
    attempt[unsent_step]--
}

/* on_timeout() */
inline step_times_out(late_step)
{
    REACHED(timeout);
    assert(is_overdue(late_step)); /* invariant 6: never earlier than its complete-by */
    if
    :: state[late_step] == RUNNING ->
#ifdef BROKEN_DOUBT
        EFF(late_step, attempt[late_step]) = NONE
#else
        EFF(late_step, attempt[late_step]) = TIMEDOUT
#endif
    :: else
    fi;
    step_fails(late_step, false);
    attempt_over(late_step)
}

/* on_result(), of the current attempt. `final`: an error after which another try makes no sense */
inline step_answered(told, its_effect, final)
{
    if
    :: state[told] == RUNNING ->
        EFF(told, attempt[told]) = its_effect;
        if
        :: its_effect == HAPPENED -> state[told] = COMPLETED
        :: else -> step_fails(told, final)
        fi
    :: else ->
        if
        :: its_effect == HAPPENED -> state[told] = UNDONE
        :: else -> step_fails(told, false)
        fi
    fi;
    attempt_over(told)
}
