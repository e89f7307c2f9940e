#ifndef CONFIG_SOURCE_H
#define CONFIG_SOURCE_H

/* The format of a text. */
enum source_format {
    SOURCE_GUESS, /* JSON if it begins with "{", otherwise YAML */
    SOURCE_JSON,
    SOURCE_YAML, /* includes JSON */
};

#endif
