#ifndef PICTURE_XML_H
#define PICTURE_XML_H

/* Text of any bytes as text of an XML 1.0 document, inside an element or a quoted attribute. */

#include "base/buf.h"

/* Escapes what XML would take for markup. What XML cannot hold becomes U+FFFD: bytes that are not
 * UTF-8, control characters, U+FFFE and U+FFFF. */
void xml_text(struct buf *b, struct slice text);

#endif
