/* SPDX-License-Identifier: Apache-2.0
 *
 * env_file: .deepspeed_env, in which DeepSpeed's users keep the variables that other hosts need.
 */
#ifndef LAUNCH_ENV_FILE_H
#define LAUNCH_ENV_FILE_H

#include "grow.h"

/** Adds the lines NAME=VALUE of .deepspeed_env in the home folder and in this one, which wins, or
 *  of the file that DS_ENV_FILE names instead; empty lines and those that begin with # are ignored.
 *  Prints the file's name on standard error.
 *  @return RING_OK, also without such a file; RING_ERR_CONFIG: a line of another form. */
ring_status env_file_take(texts *exports);

#endif
