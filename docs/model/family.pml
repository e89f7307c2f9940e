/*
 * Families: a parent with one step that starts a child, the child, and the next child if the step
 * is retried, on two nodes that die. README.md says what is modelled, and which function each
 * transition stands for.
 *
 * Every option is one d_step: one transaction of the store, or one thing that happens in one node.
 * A change is decided and committed in one of them: a decision on a stale copy has no effect
 * (notices.pml). So a node has nothing in memory but what it has read: a notice or a submission.
 */

/* How often each fault may happen in a run; tools/model sets them. */
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef UNKNOWNS /* a commit of which the node is not told */
#define UNKNOWNS 0
#endif
#ifndef FAILURES /* of a child, or its cancellation by an operator: it turns back */
#define FAILURES 0
#endif
#ifndef STOPS /* in error; an operator helps */
#define STOPS 0
#endif
#ifndef UNDOS /* of the parent, by an operator */
#define UNDOS 1
#endif
#ifndef LATE_ONES /* the step's complete-by passes */
#define LATE_ONES 0
#endif
#ifndef RETRIES /* of the step, each with another child; the step is then one of on_failure: hold */
#define RETRIES 0
#endif
/* PIVOT: the child has a pivot, and so is one of the parent.
 * ANY_ORDER: notices overtake each other, which those of one task do not. */
#ifdef PIVOT
#define is_pivot 1
#else
#define is_pivot 0
#endif

/* Says once that this transition was reached; no part of the state. */
#define REACHED(name) \
    c_code { static int said_so; if (!said_so) { said_so = 1; printf("reached %s\n", #name); } }

#define UP   1
#define DOWN 0
#define GONE 2 /* never comes back; the other one then stays */

/* ---- the store ---- */

/* What a parent knows of its child, which is what that told it (enum child_state). */
#define NONE        0
#define RUNNING     1
#define TURNED      2
#define STANDS      3
#define ERROR       4
#define STUCK       5
#define PROCESSED   6
#define COMPENSATED 7

/* What a child is told (enum child_wish). NONE: nothing. */
#define STOP 1
#define UNDO 2

/* A task. RUNS: pending, processing, or compensating: ... */
#define ABSENT  0
#define RUNS    1
#define STOPPED 2 /* in error */
#define DONE    3 /* processed */
#define UNDONE  4 /* compensated */

/* The parent. */
#define NEW       0 /* its step */
#define WAITING   1
#define COMPLETED 2
#define FAILED    3
#define UNDOING   4
#define IS_UNDONE 5

#define OF_CHILD 1 /* why it is in error: its child is, ... */
#define OF_PIVOT 2 /* ... and cannot be asked whether its pivot took effect */
#define OF_STEP  3 /* its step failed */

byte parent = RUNS;
bit back = 0;       /* ... it goes back */
bit to_undo = 0;    /* it is to be undone, if its pivot allows that */
byte why = 0;
byte step = NEW;
byte number = 0;    /* of its child, ... */
byte known = NONE;  /* ... what it knows of that, ... */
byte wish = NONE;   /* ... and has told it */

/* Children, by their numbers. */
#define MAX (RETRIES + 1)
byte child[MAX + 1] = ABSENT;
bit goes_back[MAX + 1];
bit waits[MAX + 1];  /* it is to be undone as soon as its pivot is known to have no effect */
byte asked[MAX + 1]; /* what its parent last told it */
byte pivot[MAX + 1];
#define OPEN 1      /* a request for it was sent */
#define EFFECT 2
byte told[MAX + 1] = RUNNING;

/* Tables: submissions of children, notices to each child as bits, and those to the parent. */
bit submission[MAX + 1];
byte to_child[MAX + 1];
#define TABLE 8
#define DECIDED 64 /* no part of the program */
byte to_parent[TABLE];
#define word(k, what) ((k) * 8 + (what))
#define number_of(x) (((x) & 63) >> 3)
#define state_of(x)  ((x) & 7)

/* ---- nodes ---- */

byte crashes = CRASHES;
byte unknowns = UNKNOWNS;
byte failures = FAILURES;
byte stops = STOPS;
byte undos = UNDOS;
byte late_ones = LATE_ONES;
byte retries = RETRIES;

byte node[2] = UP;
byte row, slot; /* of to_parent, within one transition */
byte held[2]; /* what it has read: 0 nothing, else ... */
bit gone[2];  /* somebody has decided on that */
#define HELD_PARENT(i)   (1 + (i))
#define HELD_CHILD(k, w) (TABLE + (k) * 2 + (w))
#define HELD_START(k)    (TABLE + 10 + (k))
#define is_of_parent(h)  ((h) >= 1 && (h) <= TABLE)

#ifdef BROKEN_TELL
byte untold[2];
#define up(n) (node[n] == UP && untold[n] == 0)
#else
#define up(n) (node[n] == UP)
#endif
#ifdef BROKEN_DELETE
byte to_delete[2];
#endif
#ifdef BROKEN_EARLY
byte telling[2];
#endif
#ifdef BROKEN_START
byte starting[2];
#endif

/* ---- what must be true ---- */

#define child_open(k)   (child[k] == RUNS || child[k] == STOPPED)
#define may_exist(k)    (child_open(k) || submission[k])
#define may_effect(k)   (submission[k] || child[k] == DONE || (child_open(k) && !goes_back[k]))
#define task_ended(s)   ((s) == DONE || (s) == UNDONE)
#define no_notice       (to_parent[0] == 0 && to_child[1] == 0 && to_child[MAX] == 0)
#define no_child        (!may_exist(1) && !may_exist(MAX))
#define all_done        (task_ended(parent) && no_child && no_notice)

inline check()
{
    assert(parent != UNDONE || (no_child && child[1] != DONE && child[MAX] != DONE)); /* L2 */
    assert(!is_pivot || !back || (!may_effect(1) && !may_effect(MAX)));               /* L3 */
    assert(parent != DONE || (child[number] == DONE && told[number] == PROCESSED))
}

/* ---- what is told, in the change that it tells of ---- */

inline put(text)
{
    slot = 0;
    do
    :: slot < TABLE && to_parent[slot] != 0 -> slot++
    :: else -> break
    od;
    assert(slot < TABLE); /* the model has room */
    to_parent[slot] = text;
    slot = 0
}

#define child_says(k) \
    (child[k] == DONE -> PROCESSED : \
    (child[k] == UNDONE -> COMPENSATED : \
    (child[k] == STOPPED -> (goes_back[k] || asked[k] != NONE -> STUCK : ERROR) : \
    (goes_back[k] -> TURNED : \
    (asked[k] == STOP && pivot[k] == EFFECT -> STANDS : RUNNING)))))

/* Any change of a child. */
inline child_changed(by, k)
{
    if
    :: told[k] != child_says(k) -> REACHED(child_tells);
        told[k] = child_says(k);
#ifdef BROKEN_TELL
        untold[by] = word(k, told[k]);
#else
        put(word(k, told[k]));
#endif
    :: else
    fi;
    check()
}

inline tell_stop()
{
    if
    :: wish == NONE -> REACHED(parent_tells_stop);
        wish = STOP;
        known = (known == ERROR -> RUNNING : known);
        to_child[number] = to_child[number] | STOP
    :: else
    fi
}

inline tell_undo()
{
    REACHED(parent_tells_undo);
    assert(child[number] == DONE); /* L4 */
    step = UNDOING;
    wish = UNDO;
    to_child[number] = to_child[number] | UNDO
}

/* ---- the parent: settle() ---- */

#define knows_open      (known != NONE && known != PROCESSED && known != COMPENSATED)
#define has_stopped(s)  ((s) == ERROR || (s) == STUCK)
#define pivot_completed (is_pivot && (step == COMPLETED || known == STANDS || known == PROCESSED))
#ifdef BROKEN_ASK
#define pivot_unknown   false
#else
#define pivot_unknown   (is_pivot && knows_open && known != TURNED)
#endif

inline stopped(reason)
{
    REACHED(parent_stops);
    parent = STOPPED;
    why = reason;
    to_undo = 0
}

inline settle_forward()
{
    if
    :: to_undo && pivot_completed -> REACHED(pivot_stands); to_undo = 0
    :: else
    fi;
    if
    :: !to_undo && step == COMPLETED -> REACHED(parent_processed); parent = DONE
    :: !to_undo && step == WAITING && has_stopped(known) -> stopped(OF_CHILD)
    :: !to_undo && step == FAILED -> stopped(OF_STEP)
    :: to_undo && pivot_unknown && known == STUCK -> stopped(OF_PIVOT)
    :: to_undo && pivot_unknown && known != STUCK -> REACHED(pivot_asked); tell_stop()
    :: to_undo && !pivot_unknown -> REACHED(parent_turns); back = 1; to_undo = 0
    :: else
    fi
}

inline settle_undo()
{
    if
    :: knows_open && step != IS_UNDONE -> tell_stop()
    :: known == PROCESSED && step == COMPLETED -> tell_undo()
    :: else
    fi;
    if
    :: known == STUCK -> stopped(OF_CHILD)
    :: known == NONE || step == IS_UNDONE || step == FAILED -> REACHED(parent_compensated);
        parent = UNDONE
    :: else
    fi
}

inline settle()
{
    if
    :: parent == RUNS && !back -> settle_forward()
    :: else
    fi;
    if
    :: parent == RUNS && back -> settle_undo()
    :: else
    fi;
    check()
}

/* ---- what a child tells: child_tells() ---- */

#define is_back(s) ((s) == TURNED || (s) == STUCK || (s) == COMPENSATED)
#define may_tell(s) \
    (known != COMPENSATED && (known != PROCESSED || wish == UNDO) && \
     (is_back(s) || !(known == TURNED || wish == UNDO || (back && is_pivot))))
#ifdef BROKEN_NUMBER
#define is_present(k) (known != NONE)
#else
#define is_present(k) ((k) == number && known != NONE)
#endif
#ifdef ANY_ORDER
#define refused() skip
#else
#define refused() assert(false)
#endif

/* In error nothing turns, but ends are decided. */
inline step_fails()
{
    step = FAILED;
    if
    :: parent == RUNS && !back && !to_undo && RETRIES == 0 -> to_undo = 1
    :: else
    fi
}

inline takes(k, s)
{
    if
    :: !is_present(k) -> REACHED(child_of_old)
    :: is_present(k) && (s == known || (s == ERROR && wish == STOP)) -> REACHED(child_repeats)
    :: is_present(k) && !(s == known || (s == ERROR && wish == STOP)) && !may_tell(s) -> refused()
    :: else -> REACHED(child_heard);
        if
        :: parent == STOPPED && why != OF_STEP && has_stopped(known) && !has_stopped(s) ->
            REACHED(parent_goes_on);
            parent = RUNS;
            to_undo = (why == OF_PIVOT);
            why = 0
        :: else
        fi;
        known = s;
        if
        :: s == PROCESSED && step == WAITING -> step = COMPLETED
        :: s == COMPENSATED && step == WAITING -> step_fails()
        :: s == COMPENSATED && step == UNDOING -> step = IS_UNDONE
        :: else
        fi;
        settle()
    fi
}

/* ---- what a child is told: parent_tells() ---- */

/* With an effect of its steps, or without. */
inline child_turns(k, at_once)
{
    goes_back[k] = 1;
    waits[k] = 0;
    child[k] = RUNS;
    if
    :: at_once -> child[k] = UNDONE
    :: else
    fi
}

inline hears_stop(by, k, at_once)
{
    if
    :: task_ended(child[k]) || asked[k] != NONE -> REACHED(stop_repeated)
    :: else -> REACHED(stop_heard);
        asked[k] = STOP;
        if
        :: goes_back[k] || pivot[k] == EFFECT -> skip
        :: !goes_back[k] && pivot[k] == NONE -> child_turns(k, at_once)
        :: !goes_back[k] && pivot[k] == OPEN -> waits[k] = (child[k] == RUNS)
        fi;
        child_changed(by, k)
    fi
}

inline hears_undo(by, k, at_once)
{
    REACHED(undo_heard);
    assert(child[k] == DONE && asked[k] != UNDO);
    asked[k] = UNDO;
    child_turns(k, at_once);
    child_changed(by, k)
}

/* ---- notices and submissions ---- */

#ifdef ANY_ORDER
#define may_read(i) true
#else
#define may_read(i) ((i) == 0)
#endif

#define reads_of_child(n, i) \
    d_step { i < TABLE && up(n) && held[n] == 0 && may_read(i) && to_parent[i] != 0 -> \
        REACHED(family_read); \
        held[n] = HELD_PARENT(i) }

/* STOP is before UNDO. The notices of a child that is not there yet wait for it. */
#define reads_of_parent(n, k, w) \
    d_step { up(n) && held[n] == 0 && child[k] != ABSENT && (to_child[k] & w) && \
             (w == STOP || !(to_child[k] & STOP)) -> \
        held[n] = HELD_CHILD(k, w) }

/* Others may have read it as well. A node that is not told decides again, and finds it gone. */
inline decided(by, is_told)
{
    assert(!gone[by]); /* L1: no notice is decided on twice, nor a submission */
    if
    :: held[1 - by] == held[by] -> gone[1 - by] = 1
    :: else
    fi;
    if
    :: is_told -> held[by] = 0
    :: else -> REACHED(family_unknown);
        unknowns--;
        gone[by] = 1
    fi
}

/* The row is deleted. */
inline shift(at)
{
    slot = at;
    do
    :: slot < TABLE - 1 -> to_parent[slot] = to_parent[slot + 1]; slot++
    :: else -> break
    od;
    to_parent[TABLE - 1] = 0;
    slot = 0;
    if /* the same rows as before */
    :: is_of_parent(held[0]) && !gone[0] && held[0] > at + 1 -> held[0]--
    :: else
    fi;
    if
    :: is_of_parent(held[1]) && !gone[1] && held[1] > at + 1 -> held[1]--
    :: else
    fi
}

#ifdef BROKEN_GONE
#define is_there(n) true
#else
#define is_there(n) (!gone[n])
#endif
#define may_decide(n, is_told) \
    (up(n) && held[n] != 0 && is_there(n) && (is_told || unknowns > 0))

#ifdef BROKEN_DELETE
#define deletes(n) to_parent[row] = to_parent[row] | DECIDED; to_delete[n] = row + 1
#else
#define deletes(n) shift(row)
#endif

/* The change that follows from a notice deletes it. */
#define decides_of_child(n, is_told) \
    d_step { may_decide(n, is_told) && is_of_parent(held[n]) -> REACHED(child_decided); \
        row = held[n] - 1; \
        assert(!(to_parent[row] & DECIDED)); \
        decided(n, is_told); \
        takes(number_of(to_parent[row]), state_of(to_parent[row])); \
        deletes(n); \
        row = 0 }

#define decides_of_parent(n, k, is_told, at_once) \
    d_step { may_decide(n, is_told) && held[n] == HELD_CHILD(k, STOP) -> \
        decided(n, is_told); \
        to_child[k] = to_child[k] & ~STOP; \
        hears_stop(n, k, at_once) } \
    :: d_step { may_decide(n, is_told) && held[n] == HELD_CHILD(k, UNDO) -> \
        decided(n, is_told); \
        to_child[k] = to_child[k] & ~UNDO; \
        hears_undo(n, k, at_once) }

#define finds_gone(n) \
    d_step { up(n) && held[n] != 0 && gone[n] -> REACHED(family_gone); \
        held[n] = 0; \
        gone[n] = 0 }

#define reads_start(n, k) \
    d_step { up(n) && held[n] == 0 && submission[k] -> REACHED(start_read); \
        held[n] = HELD_START(k) }

/* The row of a task has the id of the child as its key. */
#ifdef BROKEN_ID
#define is_new(n, k) true
#else
#define is_new(n, k) (!gone[n])
#endif
#define makes_child(n, k, is_told) \
    d_step { up(n) && held[n] == HELD_START(k) && is_new(n, k) && (is_told || unknowns > 0) -> \
        REACHED(child_made); \
        assert(child[k] == ABSENT); /* never two of one number */ \
        decided(n, is_told); \
        submission[k] = 0; \
        child[k] = RUNS; \
        check() }

/* ---- the work of a child ---- */

#define runs(n, k)    (up(n) && child[k] == RUNS)
#define forward(n, k) (runs(n, k) && !goes_back[k])

#ifdef BROKEN_EARLY /* it is told before */
#define processes(n, k) \
    d_step { forward(n, k) && pivot[k] == (is_pivot -> EFFECT : NONE) && telling[n] == 0 -> \
        telling[n] = k; put(word(k, PROCESSED)) } \
    :: d_step { up(n) && telling[n] == k && child[k] == RUNS && !goes_back[k] -> \
        telling[n] = 0; child[k] = DONE; told[k] = PROCESSED; check() }
#else
#define processes(n, k) \
    d_step { forward(n, k) && pivot[k] == (is_pivot -> EFFECT : NONE) -> REACHED(child_processed); \
        child[k] = DONE; \
        child_changed(n, k) }
#endif

/* An answer that its pivot has no effect, or the failure of another step. */
#define fails(n, k, at_once) \
    d_step { forward(n, k) && pivot[k] != EFFECT && (waits[k] || failures > 0) -> \
        REACHED(child_fails); \
        failures = (waits[k] -> failures : failures - 1); \
        pivot[k] = NONE; \
        child_turns(k, at_once); \
        child_changed(n, k) }

#define works(n, k) \
    d_step { forward(n, k) && is_pivot && pivot[k] == NONE -> \
        pivot[k] = OPEN } \
    :: d_step { forward(n, k) && pivot[k] == OPEN -> REACHED(pivot_effect); \
        pivot[k] = EFFECT; \
        waits[k] = 0; \
        child_changed(n, k) } \
    :: processes(n, k) \
    :: fails(n, k, 0) \
    :: fails(n, k, 1) \
    :: d_step { runs(n, k) && goes_back[k] -> REACHED(child_compensated); \
        child[k] = UNDONE; \
        child_changed(n, k) } \
    :: d_step { runs(n, k) && stops > 0 -> REACHED(child_stops); \
        stops--; \
        child[k] = STOPPED; \
        waits[k] = 0; \
        child_changed(n, k) } \
    :: d_step { up(n) && child[k] == STOPPED -> REACHED(child_helped); \
        child[k] = RUNS; \
        if /* what it was told counts still */ \
        :: goes_back[k] || asked[k] == NONE || pivot[k] == EFFECT -> skip \
        :: else -> waits[k] = 1; \
            if \
            :: pivot[k] == NONE -> child_turns(k, 0) \
            :: else \
            fi \
        fi; \
        child_changed(n, k) }

#define hears(n, k) \
    reads_of_parent(n, k, STOP) \
    :: reads_of_parent(n, k, UNDO) \
    :: reads_start(n, k) \
    :: makes_child(n, k, 1) \
    :: makes_child(n, k, 0) \
    :: decides_of_parent(n, k, 1, 0) \
    :: decides_of_parent(n, k, 1, 1) \
    :: decides_of_parent(n, k, 0, 0)

/* ---- the work of the parent ---- */

#define may_begin (parent == RUNS && !back && !to_undo && step == NEW)

inline begins()
{
    step = WAITING;
    number++;
    known = RUNNING;
    wish = NONE
}

#ifdef BROKEN_START /* the submission is inserted by a commit before */
#define starts(n) \
    d_step { up(n) && may_begin && starting[n] == 0 && !submission[number + 1] && \
             child[number + 1] == ABSENT -> \
        starting[n] = 1; submission[number + 1] = 1 } \
    :: d_step { up(n) && may_begin && starting[n] -> \
        starting[n] = 0; begins() }
#else
#define starts(n) \
    d_step { up(n) && may_begin -> REACHED(child_begins); \
        begins(); \
        submission[number] = 1; \
        check() }
#endif

/* ---- who takes part ---- */

inline node_dies(dead)
{
    node[dead] = DOWN;
    held[dead] = 0;
    gone[dead] = 0;
#ifdef BROKEN_TELL
    untold[dead] = 0;
#endif
#ifdef BROKEN_DELETE
    to_delete[dead] = 0;
#endif
#ifdef BROKEN_EARLY
    telling[dead] = 0;
#endif
#ifdef BROKEN_START
    starting[dead] = 0;
#endif
}

proctype Node(bit n)
{
end:
    do
    :: starts(n)
    :: reads_of_child(n, 0)
#ifdef ANY_ORDER
    :: reads_of_child(n, 1)
    :: reads_of_child(n, 2)
    :: reads_of_child(n, 3)
#endif
    :: decides_of_child(n, 1)
    :: decides_of_child(n, 0)
    :: finds_gone(n)
    :: hears(n, 1)
    :: works(n, 1)
#if RETRIES > 0
    :: hears(n, 2)
    :: works(n, 2)
#endif
#ifdef BROKEN_TELL
    :: d_step { node[n] == UP && untold[n] != 0 -> put(untold[n]); untold[n] = 0 }
#endif
#ifdef BROKEN_DELETE
    :: d_step { up(n) && to_delete[n] != 0 ->
        row = to_delete[n] - 1; shift(row); row = 0; to_delete[n] = 0 }
#endif
    :: d_step { node[n] == UP && crashes > 0 && !all_done -> REACHED(family_node_dies);
        crashes--;
        node_dies(n) }
    :: d_step { !all_done && node[n] == DOWN -> REACHED(family_node_starts);
        node[n] = UP }
    :: d_step { !all_done && node[n] == DOWN && node[1 - n] != GONE -> REACHED(family_node_gone);
        node[n] = GONE }
    od
}

/* Operators, and time. */
#define may_undo   (undos > 0 && !back && !to_undo)
#define never_back (pivot_completed || (is_pivot && known == STUCK))

proctype World()
{
end:
    do
    :: d_step { parent == RUNS && may_undo && !pivot_completed -> REACHED(parent_undo);
        undos--;
        to_undo = 1;
        settle() }
    :: d_step { parent == STOPPED && may_undo && !never_back -> REACHED(stopped_undo);
        undos--;
        parent = RUNS;
        why = 0;
        to_undo = 1;
        settle() }
    :: d_step { parent == DONE && may_undo && !is_pivot -> REACHED(processed_undo);
        undos--;
        parent = RUNS;
        back = 1;
        settle() }
    :: d_step { parent == STOPPED && why == OF_STEP && retries > 0 -> REACHED(child_again);
        retries--;
        parent = RUNS;
        why = 0;
        step = NEW;
        known = NONE;
        wish = NONE }
    :: d_step { parent == STOPPED && why == OF_STEP && retries == 0 -> /* somebody has to */
        parent = RUNS;
        why = 0;
        to_undo = 1;
        settle() }
    :: d_step { parent == RUNS && !back && step == WAITING && knows_open && wish == NONE &&
                late_ones > 0 -> REACHED(child_late);
        late_ones--;
        tell_stop();
        settle() }
#ifndef LIVENESS /* there the formula says it */
    :: d_step { timeout -> assert(all_done) } -> break /* nothing is left to happen: L7 */
#endif
    od
}

init {
    atomic {
        run Node(0); run Node(1);
        run World()
    }
}

#ifdef LIVENESS
ltl family_ends { <> [] all_done }
#endif
