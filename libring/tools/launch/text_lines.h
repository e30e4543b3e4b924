/* SPDX-License-Identifier: Apache-2.0
 *
 * text_lines: reads text files that have one entry per line, such as hostfiles.
 */
#ifndef LAUNCH_TEXT_LINES_H
#define LAUNCH_TEXT_LINES_H

#include "base.h"

#include <stdio.h>

/** Removes white space at both ends, in place. @return the first character that is left. */
char *lines_trim(char *text);

/** Calls @p take for each trimmed line, except empty lines and lines that begin with '#'. Ends at
 *  the first line for which take() fails.
 *  @param path  the name of the file: an error begins with it and the number of the line.
 *  @return RING_ERR_CONFIG if take() has failed, or if the file is not text or cannot be read. */
ring_status lines_each(FILE *file, const char *path, ring_status (*take)(void *context, char *line),
                       void *context);

#endif
