#ifndef BASE_BESIDE_H
#define BASE_BESIDE_H

/*
 * The calling thread does what others do not wait for: parsing of large bodies, handshakes, reading
 * for people. On a machine whose processors are all busy it gives way to the threads that serve and
 * commit. Cheap to call again; there is no way back.
 */
void thread_is_beside(void);

#endif
