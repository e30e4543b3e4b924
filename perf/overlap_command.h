/* SPDX-License-Identifier: Apache-2.0
 *
 * overlap_command: implements `ringperf overlap`, which measures how much of an all_reduce overlaps
 * with the work of its caller.
 */
#ifndef PERF_OVERLAP_COMMAND_H
#define PERF_OVERLAP_COMMAND_H

/** @param argv  the words from "overlap" on. @return ringperf's exit status. */
int overlap_command(int argc, char **argv);

#endif
