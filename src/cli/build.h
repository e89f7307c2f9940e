#ifndef CLI_BUILD_H
#define CLI_BUILD_H

/* "0.1.0+48f1708a0b1c": the version and its build (tools/build-id), if known. In a file of its own,
 * so that a commit recompiles nothing else. */
extern const char *const build_version;

#endif
