/*
 * Notices and locks: two tasks of one lock, which one task at a time may hold; others send notices
 * to them; two nodes read notices, decide on them, and give the lock to whoever waits. README.md
 * says what is modelled, and which function each transition stands for.
 *
 * As in task.pml, a copy of a row is fresh or stale, and each write makes all other copies stale.
 * Every option is one d_step: one transaction of the store, or one thing that happens in one node.
 */

/* How often each fault may happen in a run; tools/model sets them. */
#ifndef CRASHES
#define CRASHES 0
#endif
#ifndef LAPSES /* the lease of a node that lives runs out: it was stopped */
#define LAPSES 0
#endif
#ifndef UNKNOWNS /* a commit of which the node is not told */
#define UNKNOWNS 0
#endif
/* How many notices each task is sent (at most 2), and how many it takes to its end. */
#ifndef NOTICES
#define NOTICES 2
#endif
#ifndef NEEDS
#define NEEDS NOTICES
#endif
/* 2: they are of different senders, and become visible in any order. */
#ifndef SENDERS
#define SENDERS 1
#endif

/* Says once that this transition was reached; no part of the state. */
#define REACHED(name) \
    c_code { static int said; if (!said) { said = 1; printf("reached %s\n", #name); } }

#define ABSENT 0
#define FRESH  1
#define STALE  2

#define UP   1
#define DOWN 0
#define GONE 2 /* never comes back; the other one then stays */

/* ---- the store ---- */

/* A task. It rests in the store while it waits for the lock or for a notice. */
#define NEW    0
#define QUEUED 1
#define HOLDS  2
#define ENDED  3

byte state[2] = NEW;
byte owner[2] = 0;  /* locked_by: 0 nobody, else node + 1 */
bit old_boot[2];    /* ... a boot of that node which is gone */
byte taken[2];      /* notices that it has taken */

/* The table of notices: bit k of a task is its notice k, the numbers are in the order of sending. */
#define ALL ((1 << NOTICES) - 1)
#define FIRST(set) ((set) & -(set))
byte notices[2];

/* The row of the lock. */
byte held = 0;
bit look = 0; /* somebody may be able to take it */

/* ---- what must be true of it, and is no part of the program ---- */

byte sent[2];    /* notices */
byte decided[2]; /* ... of which a change was made */
byte refused[2]; /* ... that came too late */

#define count_of(set) (((set) & 1) + ((set) >> 1))
#define all_done (state[0] == ENDED && state[1] == ENDED && \
                  (decided[0] | refused[0]) == ALL && (decided[1] | refused[1]) == ALL)

/* ---- nodes ---- */

byte crashes = CRASHES;
byte lapses = LAPSES;
byte unknowns = UNKNOWNS;

byte node[2] = UP;
bit lease[2] = 1;     /* it has not run out */
byte copy[4] = ABSENT; /* of a task, in a node: [AT(n, t)] */
byte inbox[4];        /* notices of that task that the node has read */
#ifdef BROKEN_AFTER
byte to_delete[4];
#endif
#ifdef BROKEN_CURSOR
byte cursor[4];       /* notices up to there were read */
#endif
#ifdef BROKEN_ROOM
bit saw_room[2];
#endif
#ifdef BROKEN_QUEUE
bit saw_nobody[2];
#endif
#if defined(BROKEN_DROP) || defined(BROKEN_EARLY)
byte dropping[2];     /* task + 1 */
#endif

#define AT(n, t)       ((n) * 2 + (t))
#define is_owner(n, t) (owner[t] == (n) + 1 && !old_boot[t])

/* Any change of a task's row. */
inline row_written(by, which)
{
    if
    :: copy[AT(1 - by, which)] == FRESH -> copy[AT(1 - by, which)] = STALE
    :: else
    fi
}

inline takes_over(taker, which)
{
    row_written(taker, which);
    owner[which] = taker + 1;
    old_boot[which] = 0;
    copy[AT(taker, which)] = FRESH
}

inline forgets(who, which)
{
    inbox[AT(who, which)] = 0;
    copy[AT(who, which)] = ABSENT
}

/* L6 */
inline holds_now(which)
{
    assert(state[1 - which] != HOLDS);
    state[which] = HOLDS
}

inline given_back()
{
    held--;
#ifndef BROKEN_LOOK
    look = 1
#endif
}

inline ended(which)
{
    state[which] = ENDED;
    owner[which] = 0;
    old_boot[which] = 0
}

/* The change that is decided on notices, and what is true of it: L1. */
inline change_made(by, which, names)
{
    row_written(by, which);
    assert((decided[which] & (names)) == 0); /* no notice is decided on twice */
    assert(((decided[which] | refused[which]) & (names)) == 0);
#if SENDERS == 1
    assert(((names) & 1) || (decided[which] & 1)); /* notice 0 comes before notice 1 */
#endif
    decided[which] = decided[which] | (names);
    taken[which] = taken[which] + count_of(names);
#ifdef BROKEN_AFTER
    to_delete[AT(by, which)] = names;
#else
    notices[which] = notices[which] & ~(names);
#endif
    if
    :: state[which] == HOLDS -> /* it goes on, at this node */
        owner[which] = by + 1;
        old_boot[which] = 0
    :: else
    fi
}

#if defined(BROKEN_GONE) || defined(BROKEN_READ)
#define are_there(t, names) true
#else
#define are_there(t, names) ((notices[t] & (names)) == (names))
#endif

/* Of the notices that it has read, the first or all. */
#define decides(n, t, names) \
    d_step { node[n] == UP && copy[AT(n, t)] == FRESH && inbox[AT(n, t)] != 0 && \
             state[t] != ENDED -> \
        if \
        :: are_there(t, names) -> REACHED(notice_decided); \
            change_made(n, t, names); \
            inbox[AT(n, t)] = inbox[AT(n, t)] & ~(names); \
            if \
            :: is_owner(n, t) || inbox[AT(n, t)] != 0 -> skip \
            :: else -> copy[AT(n, t)] = ABSENT \
            fi \
        :: else -> REACHED(notice_gone); \
            forgets(n, t) \
        fi }

#define decides_unknowingly(n, t) \
    d_step { unknowns > 0 && node[n] == UP && copy[AT(n, t)] == FRESH && inbox[AT(n, t)] != 0 && \
             state[t] != ENDED && are_there(t, inbox[AT(n, t)]) -> REACHED(notice_unknown); \
        unknowns--; \
        change_made(n, t, inbox[AT(n, t)]); \
        forgets(n, t) }

/* Whose they are decides who reads them first; after a while it is anybody, and time may pass at
 * any moment. */
#ifdef BROKEN_CURSOR
#define unread(n, t) (notices[t] & ~cursor[AT(n, t)])
#define pass(n, t)   cursor[AT(n, t)] = (inbox[AT(n, t)] >= 2 -> 3 : inbox[AT(n, t)])
#else
#define unread(n, t) notices[t]
#define pass(n, t)   skip
#endif
#ifdef BROKEN_READ
#define take_away(t) notices[t] = 0
#else
#define take_away(t) skip
#endif

#define reads(n, t) \
    d_step { node[n] == UP && state[t] != NEW && inbox[AT(n, t)] == 0 && unread(n, t) != 0 -> \
        REACHED(notice_read); \
        inbox[AT(n, t)] = unread(n, t); \
        pass(n, t); \
        take_away(t) }

#define loads(n, t) \
    d_step { node[n] == UP && copy[AT(n, t)] == ABSENT && state[t] != ENDED && \
             (inbox[AT(n, t)] != 0 || is_owner(n, t)) -> REACHED(notice_load); \
        copy[AT(n, t)] = FRESH }

/* Then notices in memory are dropped, and read again. */
#define conflicts(n, t) \
    d_step { node[n] == UP && copy[AT(n, t)] == STALE -> REACHED(notice_conflict); \
        forgets(n, t) }

/* A task that has ended takes none. Whoever refuses one that is gone refuses nothing. */
#define settles(n, t) \
    d_step { node[n] == UP && state[t] == ENDED && inbox[AT(n, t)] != 0 -> REACHED(notice_settled); \
        refused[t] = refused[t] | (inbox[AT(n, t)] & notices[t]); \
        assert((decided[t] & refused[t]) == 0); \
        notices[t] = notices[t] & ~inbox[AT(n, t)]; \
        forgets(n, t) }

/* ---- the life of a task ---- */

#define may_end(n, t) (node[n] == UP && copy[AT(n, t)] == FRESH && is_owner(n, t) && \
                       state[t] == HOLDS && taken[t] >= NEEDS)

#if defined(BROKEN_DROP) /* the end is recorded first, and the lock given back by another commit */
#define ends(n, t) \
    d_step { may_end(n, t) && dropping[n] == 0 -> \
        row_written(n, t); ended(t); dropping[n] = t + 1; copy[AT(n, t)] = ABSENT } \
    :: d_step { node[n] == UP && dropping[n] == t + 1 -> \
        given_back(); dropping[n] = 0 }
#elif defined(BROKEN_EARLY) /* ... or the other way round */
#define ends(n, t) \
    d_step { may_end(n, t) && dropping[n] == 0 -> \
        given_back(); dropping[n] = t + 1 } \
    :: d_step { may_end(n, t) && dropping[n] == t + 1 -> \
        row_written(n, t); ended(t); dropping[n] = 0; copy[AT(n, t)] = ABSENT }
#else
#define ends(n, t) \
    d_step { may_end(n, t) -> REACHED(lock_dropped); \
        row_written(n, t); \
        ended(t); \
        given_back(); \
        inbox[AT(n, t)] = 0; \
        copy[AT(n, t)] = ABSENT }
#endif

/* Nothing is to be done before a notice comes. */
#define rests(n, t) \
    d_step { node[n] == UP && copy[AT(n, t)] == FRESH && is_owner(n, t) && taken[t] < NEEDS && \
             inbox[AT(n, t)] == 0 -> REACHED(notice_awaited); \
        row_written(n, t); \
        owner[t] = 0; \
        copy[AT(n, t)] = ABSENT }

#define claims_boot(n, t) \
    d_step { node[n] == UP && owner[t] == n + 1 && old_boot[t] -> REACHED(lock_boot); \
        takes_over(n, t) }
#define claims_node(n, t) \
    d_step { node[n] == UP && lease[n] && owner[t] == 2 - n && \
             (!lease[1 - n] || (old_boot[t] && node[1 - n] == UP)) -> REACHED(lock_node); \
        takes_over(n, t) }

/* ---- the lock ---- */

#define nobody_waits (state[0] != QUEUED && state[1] != QUEUED)
#define looks(n)     (node[n] == UP && lease[n] && look)

inline lock_given(by, which)
{
    holds_now(which);
    held++;
    look = 0; /* it is full */
    takes_over(by, which)
}

/* Each of these is a transaction that has the lock's row from its begin. */
#ifdef BROKEN_ROOM /* the room is seen in one transaction, and taken in another */
#define claims_lock(n, t) \
    d_step { looks(n) && !saw_room[n] && state[t] == QUEUED && held == 0 -> saw_room[n] = 1 } \
    :: d_step { node[n] == UP && saw_room[n] && state[t] == QUEUED -> \
        saw_room[n] = 0; lock_given(n, t) }
#else
#define claims_lock(n, t) \
    d_step { looks(n) && state[t] == QUEUED && held == 0 -> REACHED(lock_taken); \
        lock_given(n, t) }
#endif

#ifdef BROKEN_QUEUE /* the queue is read before the lock's row is had */
#define finds_nobody(n) \
    d_step { looks(n) && !saw_nobody[n] && (nobody_waits || held > 0) -> saw_nobody[n] = 1 } \
    :: d_step { node[n] == UP && saw_nobody[n] -> saw_nobody[n] = 0; look = 0 }
#else
#define finds_nobody(n) \
    d_step { looks(n) && (nobody_waits || held > 0) -> REACHED(lock_seen); \
        look = 0 }
#endif

/* ---- who takes part ---- */

inline node_dies(dead)
{
    node[dead] = DOWN;
    forgets(dead, 0);
    forgets(dead, 1);
#ifdef BROKEN_AFTER
    to_delete[AT(dead, 0)] = 0;
    to_delete[AT(dead, 1)] = 0;
#endif
#ifdef BROKEN_CURSOR
    cursor[AT(dead, 0)] = 0;
    cursor[AT(dead, 1)] = 0;
#endif
#ifdef BROKEN_ROOM
    saw_room[dead] = 0;
#endif
#ifdef BROKEN_QUEUE
    saw_nobody[dead] = 0;
#endif
#if defined(BROKEN_DROP) || defined(BROKEN_EARLY)
    dropping[dead] = 0;
#endif
    if
    :: owner[0] == dead + 1 -> old_boot[0] = 1
    :: else
    fi;
    if
    :: owner[1] == dead + 1 -> old_boot[1] = 1
    :: else
    fi
}

proctype Node(bit n)
{
end:
    do
    :: reads(n, 0)
    :: reads(n, 1)
    :: loads(n, 0)
    :: loads(n, 1)
    :: conflicts(n, 0)
    :: conflicts(n, 1)
    :: decides(n, 0, FIRST(inbox[AT(n, 0)]))
    :: decides(n, 0, inbox[AT(n, 0)])
    :: decides(n, 1, FIRST(inbox[AT(n, 1)]))
    :: decides(n, 1, inbox[AT(n, 1)])
    :: decides_unknowingly(n, 0)
    :: decides_unknowingly(n, 1)
    :: settles(n, 0)
    :: settles(n, 1)
#ifdef BROKEN_AFTER
    :: d_step { node[n] == UP && to_delete[AT(n, 0)] != 0 ->
        notices[0] = notices[0] & ~to_delete[AT(n, 0)]; to_delete[AT(n, 0)] = 0 }
    :: d_step { node[n] == UP && to_delete[AT(n, 1)] != 0 ->
        notices[1] = notices[1] & ~to_delete[AT(n, 1)]; to_delete[AT(n, 1)] = 0 }
#endif

    :: ends(n, 0)
    :: ends(n, 1)
    :: rests(n, 0)
    :: rests(n, 1)
    :: claims_boot(n, 0)
    :: claims_boot(n, 1)
    :: claims_node(n, 0)
    :: claims_node(n, 1)
    :: claims_lock(n, 0)
    :: claims_lock(n, 1)
    :: finds_nobody(n)

    :: d_step { node[n] == UP && crashes > 0 && !all_done -> REACHED(notice_node_dies);
        crashes--;
        node_dies(n) }
    :: d_step { !all_done && node[n] == DOWN -> REACHED(notice_node_starts);
        node[n] = UP;
        lease[n] = 1 }
    :: d_step { !all_done && node[n] == DOWN && node[1 - n] != GONE -> REACHED(notice_node_gone);
        node[n] = GONE }
    :: d_step { node[n] == UP && !lease[n] -> lease[n] = 1 }
    od
}

/* Applications: they submit, and send. Nobody asks whether the lock is free, or who has it. */
#define submits(t) \
    d_step { state[t] == NEW -> REACHED(lock_queued); \
        state[t] = QUEUED; \
        look = 1 }

#if SENDERS == 1
#define may_send(t, k) (state[t] != NEW && (k == 0 || (sent[t] & 1)))
#else
#define may_send(t, k) (state[t] != NEW)
#endif
#define sends(t, k) \
    d_step { k < NOTICES && may_send(t, k) && !(sent[t] & (1 << k)) -> REACHED(notice_sent); \
        sent[t] = sent[t] | (1 << k); \
        notices[t] = notices[t] | (1 << k) }

proctype World()
{
end:
    do
    :: submits(0)
    :: submits(1)
    :: sends(0, 0)
    :: sends(0, 1)
    :: sends(1, 0)
    :: sends(1, 1)
    :: d_step { !all_done && lease[0] && node[0] != UP -> lease[0] = 0 }
    :: d_step { !all_done && lease[1] && node[1] != UP -> lease[1] = 0 }
    :: d_step { !all_done && lease[0] && node[0] == UP && lapses > 0 -> REACHED(notice_lapse);
        lapses--;
        lease[0] = 0 }
    :: d_step { !all_done && lease[1] && node[1] == UP && lapses > 0 -> lapses--; lease[1] = 0 }
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
ltl ends_all { <> all_done }
#endif
