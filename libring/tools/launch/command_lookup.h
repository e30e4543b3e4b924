/* SPDX-License-Identifier: Apache-2.0
 * command_lookup: finds the executable file of a program, and describes why a program cannot be
 * started. */
#ifndef LAUNCH_COMMAND_LOOKUP_H
#define LAUNCH_COMMAND_LOOKUP_H

#include "base.h"

/** Stores the path of this program. @return false, and errno, if the system does not give it. */
bool command_own_path(char *out, size_t size);
/** Finds a program. A path is used as it is; a bare name is looked for in PATH, then in the folder
 *  of this program. @param[out] out  the path.
 *  @return false, and errno, if there is no such file that may be run. */
bool command_find(const char *name, char *out, size_t size);

/** @return true for the names of Python scripts and of other launchers, which users of these
 *  launchers may give in place of a program. */
bool command_is_python(const char *name);

/** Describes why @p name cannot be started, and the remedy.
 *  @param error  errno of command_find() or spawn_start(). */
void command_describe_error(const char *name, int error, char *out, size_t size);
/** @return ringrun's exit code for such an error. */
int command_error_code(int error);

#endif
