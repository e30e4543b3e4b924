/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap_command: `ringperf overlap`: how much of an all_reduce is hidden behind what its caller
 * does meanwhile.
 */
#ifndef PERF_OVERLAP_COMMAND_H
#define PERF_OVERLAP_COMMAND_H

/** @param argv  from the word "overlap" on. @return ringperf's exit status. */
int overlap_command(int argc, char **argv);

#endif
