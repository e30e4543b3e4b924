/* SPDX-License-Identifier: Apache-2.0
 *
 * option_sources: takes options that the command line does not have from accelerate's configuration
 * file, and from variables that platforms set.
 */
#ifndef LAUNCH_OPTION_SOURCES_H
#define LAUNCH_OPTION_SOURCES_H

#include "run_options.h"

/** @return the value of a variable; NULL if it is not set or empty. */
const char *options_variable(const char *name);

/** Takes options from accelerate's configuration file (--config_file), if it is given. Ends the
 *  program if the file is wrong. */
void options_take_accelerate(options *o);

/** Takes the number of ranks on each node from DC_DL_CONFIG, in which a platform gives its workers
 *  their number of GPUs. */
void options_take_platform(options *o);

/** Takes the number of this node and of all nodes from RANK and WORLD_SIZE, if LOCAL_RANK is not
 *  set: some platforms set these two variables for each node instead of each rank. */
void options_take_node_variables(options *o);

#endif
