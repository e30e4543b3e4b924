/* SPDX-License-Identifier: Apache-2.0
 * report_command: implements "ringtrain report RUN…", which makes a page from the metrics of runs.
 */
#ifndef TRAIN_REPORT_COMMAND_H
#define TRAIN_REPORT_COMMAND_H

/** @param argv  begins with the word "report". @return the program's exit status. */
int report_command(int argc, char **argv);

#endif
