/* SPDX-License-Identifier: Apache-2.0
 *
 * option_sources: sets options that the command line lacks, from accelerate's file and from
 * variables of platforms.
 */
#ifndef LAUNCH_OPTION_SOURCES_H
#define LAUNCH_OPTION_SOURCES_H

#include "run_options.h"

/** @return a variable's value; NULL: it is not set, or empty. */
const char *options_variable(const char *name);

/** Takes from accelerate's file the options that the command line lacks. Ends the program if the
 *  file is wrong. */
void options_take_accelerate(options *o);

/** The same from DC_DL_CONFIG, by which a platform gives its workers the number of GPUs of each. */
void options_take_platform(options *o);

/** Platforms that give every node RANK and WORLD_SIZE of nodes, without LOCAL_RANK, count nodes:
 *  takes them as such. */
void options_take_node_variables(options *o);

#endif
