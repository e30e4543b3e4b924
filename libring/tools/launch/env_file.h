/* SPDX-License-Identifier: Apache-2.0
 *
 * env_file: reads .deepspeed_env, in which users of DeepSpeed keep variables for all hosts of a
 * job.
 */
#ifndef LAUNCH_ENV_FILE_H
#define LAUNCH_ENV_FILE_H

#include "grow.h"

/** Adds the lines "NAME=VALUE" of .deepspeed_env to the exports: of the file in the home folder,
 *  then of the file in the current folder, which has precedence. If DS_ENV_FILE is set, it names
 *  the only file. Empty lines and lines that begin with '#' are ignored. Prints the names of the
 *  files on standard error.
 *  @return RING_OK, also if there is no such file; RING_ERR_CONFIG if a line is wrong, or if the
 *  file of DS_ENV_FILE cannot be read. */
ring_status env_file_take(texts *exports);

#endif
