#ifndef BASE_UUID_H
#define BASE_UUID_H

/* UUIDs (RFC 9562) in their text form, in small letters. */

#include "base/base.h"

enum { UUID_SIZE = 37 /* with its terminating zero */ };

/* A random UUID (version 4) out of 16 random bytes. */
void uuid_write(const unsigned char random[16], char ret[UUID_SIZE]);
/* A UUID of any version. Capital letters are valid: `uuid_read` writes small ones. */
bool uuid_read(struct slice text, char ret[UUID_SIZE]) MUST_USE;

#endif
