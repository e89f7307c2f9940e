#ifndef CONFINE_HIDDEN_H
#define CONFINE_HIDDEN_H

/*
 * Prevents other processes of the same user from inspecting this one (ptrace, /proc/PID/mem, fd and
 * environ), and core files: it holds tokens, keys and inputs of tasks. Root still can.
 * INTACT_DUMPABLE=1 in the environment disables this for debuggers, strace and perf. Started
 * programs are not affected.
 */
void process_hide(void);

#endif
