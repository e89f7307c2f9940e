#ifndef BASE_UUID_H
#define BASE_UUID_H

/* UUIDs (RFC 9562) in their text form, in lower case. */

#include "base/base.h"

enum { UUID_SIZE = 37 /* with its terminating zero */ };

/* Makes a random UUID (version 4) from 16 random bytes. */
void uuid_write(const unsigned char random[16], char ret[UUID_SIZE]);
/* Parses a UUID of any version. Upper case is accepted and converted. */
bool uuid_read(struct slice text, char ret[UUID_SIZE]) MUST_USE;

#endif
