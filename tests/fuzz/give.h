/* SPDX-License-Identifier: Apache-2.0
 * give: bytes as a file, as lines, or as what a peer has sent. */
#ifndef TEST_FUZZ_GIVE_H
#define TEST_FUZZ_GIVE_H

#include "fuzz.h"

enum { GIVE_FILES = 2, GIVE_LINES = 256 };

/** A file of these bytes, until the next call for the same @p place.
 *  @return its path. */
const char *give_file(size_t place, const void *bytes, size_t size);
/** The same as a descriptor, which stays this function's. */
int give_fd(size_t place, const void *bytes, size_t size);
/** A folder that goes when the program ends. @param inside  folders that it has, NULL-terminated.
 *  @return its path. */
const char *give_folder(const char *const *inside);
/** In such a folder a name for the file of @p place. */
void give_link(const char *folder, const char *name, size_t place);

/** Text as a list of its lines, ended by NULL. Free with give_free(). */
typedef struct give_lines {
    char *text;
    char *line[GIVE_LINES + 1];
} give_lines;
give_lines give_text(const unsigned char *bytes, size_t size);
void give_free(give_lines *lines);

/** Two ends of a local connection; what end 1 sends has come to end 0 at once. */
void give_pair(int ends[2]);
/** @return false if the other end has no room for all. */
bool give_sent(int end, const void *bytes, size_t size);
void give_close(int ends[2]);

#endif
