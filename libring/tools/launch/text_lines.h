/* SPDX-License-Identifier: Apache-2.0
 *
 * text_lines: reads files that have one entry per line.
 */
#ifndef LAUNCH_TEXT_LINES_H
#define LAUNCH_TEXT_LINES_H

#include "base.h"

#include <stdio.h>

/** Cuts blanks at both ends. @return the beginning of the rest. */
char *lines_trim(char *text);

/** Calls @p take for each line, trimmed, except empty ones and those that begin with '#'.
 *  @param path  the name of the file: an error begins with it and the line's number.
 *  @return RING_ERR_CONFIG, after the first line that take() refuses, or that is no text. */
ring_status lines_each(FILE *file, const char *path, ring_status (*take)(void *context, char *line),
                       void *context);

#endif
