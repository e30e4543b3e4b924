/* SPDX-License-Identifier: Apache-2.0
 * Reading a configuration from a text and remembering what was noted. */
#ifndef TESTS_TRAIN_PARSING_H
#define TESTS_TRAIN_PARSING_H

#include <config.h>
#include <string.h>

typedef struct parsed {
    ring_status status;
    train_config config;
    char notes[2048]; /* one a line */
} parsed;

static inline void keep_note(void *context, const char *text)
{
    parsed *into = context;
    strncat(into->notes, text, sizeof into->notes - strlen(into->notes) - 2);
    strcat(into->notes, "\n");
}

static inline parsed parse_with(const char *text, config_options options)
{
    parsed result = {.status = RING_OK};
    result.status = config_parse("c.json", text, strlen(text), &options, keep_note, &result,
                                 &result.config);
    return result;
}

static inline parsed parse(const char *text)
{
    return parse_with(text, (config_options){0});
}

#endif
