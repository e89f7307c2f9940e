#ifndef INTACT_API_H
#define INTACT_API_H

/* Shared by the other headers: marks the functions that the library exports. */

#if defined(__GNUC__)
    #define INTACT_API __attribute__((visibility("default")))
#else
    #define INTACT_API
#endif

#endif
