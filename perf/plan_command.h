/* SPDX-License-Identifier: Apache-2.0
 *
 * plan_command: `ringperf plan COLLECTIVE --ranks N`: draws and proves every rank's plan, without a
 * communicator.
 */
#ifndef PERF_PLAN_COMMAND_H
#define PERF_PLAN_COMMAND_H

/** @param argv  from the word "plan" on. @return the exit status, as ringperf's; a wrong command
 *  line ends the program with 2. */
int plan_command(int argc, char **argv);

#endif
