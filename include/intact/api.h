#ifndef INTACT_API_H
#define INTACT_API_H

/* What the other headers share: which functions can be seen outside of the library. */

#if defined(__GNUC__)
    #define INTACT_API __attribute__((visibility("default")))
#else
    #define INTACT_API
#endif

#endif
