/* SPDX-License-Identifier: Apache-2.0
 *
 * compare_command: implements `ringperf compare`, which compares libring with other libraries. It
 * executes the Python program compare/compare.py, which is installed with ringperf.
 */
#ifndef PERF_COMPARE_COMMAND_H
#define PERF_COMPARE_COMMAND_H

/** Replaces the process by compare.py. @param argv  the words from "compare" on, NULL at the end.
 *  @return only on failure: ringperf's exit status, after one line on standard error. */
int compare_command(int argc, char **argv);

#endif
