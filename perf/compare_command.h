/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_command: `ringperf compare`: libring beside other libraries, by the Python program
 * compare/compare.py, which is installed with ringperf.
 */
#ifndef PERF_COMPARE_COMMAND_H
#define PERF_COMPARE_COMMAND_H

/** Replaces the process by that program. @param argv  from the word "compare" on, NULL at the end.
 *  @return only on failure: ringperf's exit status, after one line on standard error. */
int compare_command(int argc, char **argv);

#endif
