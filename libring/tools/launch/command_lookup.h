/* SPDX-License-Identifier: Apache-2.0
 * command_lookup: finding the program for a word, and the reasons why it cannot be started. */
#ifndef LAUNCH_COMMAND_LOOKUP_H
#define LAUNCH_COMMAND_LOOKUP_H

#include "base.h"

/** The path of this program. @return false, with errno, if the system does not tell. */
bool command_own_path(char *out, size_t size);
/** Finds a program: a path as it is; a bare name in PATH, then beside this program.
 *  @return false with errno if there is none that may be run. */
bool command_find(const char *name, char *out, size_t size);

/** @return true for names that users of other launchers write in the program's place: scripts and
 *  those launchers. */
bool command_is_python(const char *name);

/** Why @p name cannot be started, and the remedy; the matching exit code.
 *  @param error  errno of command_find() or spawn_start(). */
void command_describe_error(const char *name, int error, char *out, size_t size);
int command_error_code(int error);

#endif
