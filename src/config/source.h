#ifndef CONFIG_SOURCE_H
#define CONFIG_SOURCE_H

/* What a text is to be taken for. */
enum source_format {
    SOURCE_GUESS, /* what begins with "{" is JSON, all else YAML */
    SOURCE_JSON,
    SOURCE_YAML, /* also what is JSON */
};

#endif
