#ifndef CONSOLE_EMBEDDED_H
#define CONSOLE_EMBEDDED_H

/* The files of the console, which the build makes part of the program (embed). */

#include "base/base.h"

struct console_file {
    const char *path; /* "/index.html", "/assets/main-OG5S33FG.js"; NULL: the end of the table */
    const char *type;
    const char *etag;             /* of its content; each form has its own suffix */
    struct slice plain, gzip, br; /* a form that saves nothing is NONE */
};

extern const struct console_file console_files[];

#endif
