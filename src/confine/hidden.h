#ifndef CONFINE_HIDDEN_H
#define CONFINE_HIDDEN_H

/*
 * From now on no other process of our user can look into this one (ptrace, /proc/PID/mem, fd and
 * environ), and it leaves no core file: it holds tokens, keys and inputs of tasks. Root still can.
 * INTACT_DUMPABLE=1 in the environment leaves it as it is, for debuggers, strace and perf. Programs
 * that it starts decide for themselves.
 */
void process_hide(void);

#endif
