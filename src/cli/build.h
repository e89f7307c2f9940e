#ifndef CLI_BUILD_H
#define CLI_BUILD_H

/* "0.1.0+48f1708a0b1c": the version, and which build of it this is (tools/build-id), if that is
 * known. In a file of its own, so that a commit makes nothing else be compiled anew. */
extern const char *const build_version;

#endif
