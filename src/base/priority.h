#ifndef BASE_PRIORITY_H
#define BASE_PRIORITY_H

/*
 * Which threads get the processor when a machine is busy. Both act on the calling thread, and are
 * cheap to call again; there is no way back.
 */

/* What it does is waited for by everybody: the event loop, the store's thread. When there is work
 * for it, it need not wait until the thread that runs at that moment has used up its time (about
 * 3 ms). Linux 6.12 or newer; elsewhere nothing changes. */
void thread_is_prompt(void);

/* What it does is waited for by nobody else: parsing of large bodies, handshakes, reading for
 * people. It gives way to the threads that serve and commit. */
void thread_is_beside(void);

#endif
