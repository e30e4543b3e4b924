/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_command: implements `ringperf plan COLLECTIVE --ranks N`, which draws and proves the plans
 * of all ranks without a communicator.
 */
#ifndef PERF_PLAN_COMMAND_H
#define PERF_PLAN_COMMAND_H

/** @param argv  the words from "plan" on. @return ringperf's exit status. A wrong command line ends
 *  the program with status 2. */
int plan_command(int argc, char **argv);

#endif
