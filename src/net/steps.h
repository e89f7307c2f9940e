#ifndef NET_STEPS_H
#define NET_STEPS_H

/*
 * Whether the path of a URL could lead elsewhere than it seems to: it has "." or ".." as a part, in
 * any encoding. Servers and proxies differ in what they decode first, so an encoded slash and a
 * backslash separate parts, too, and what is behind a ";" is left out: "..;x" is ".." to some.
 */

#include "base/base.h"

bool path_has_steps(struct slice path);

/* The value of a hexadecimal digit; -1: it is none. */
int hex_digit(char c);

#endif
