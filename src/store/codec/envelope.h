#ifndef STORE_CODEC_ENVELOPE_H
#define STORE_CODEC_ENVELOPE_H

/*
 * What a message is sent as: a CloudEvent around its data. Most of it is the same for all messages,
 * or follows from a few words of it; so a store may keep those, and make it again.
 */

#include "base/buf.h"
#include "store/rows/message.h"

/* All of it up to its data, of task, name, created_at, source, sequence and trace. Behind the data
 * only a brace is missing. */
void envelope_begin(struct buf *b, const struct message *m);

/* All of it: its body, or what is made of its data. */
void envelope_write(struct buf *b, const struct message *m);

/* Bytes of that, at most. */
size_t envelope_size(const struct message *m);

/* The part between the slashes: "progress" of "12/progress/charge". */
struct slice envelope_event(struct slice name);

#endif
