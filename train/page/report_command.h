/* SPDX-License-Identifier: Apache-2.0
 * report_command: implements "ringtrain report RUN…", which makes a page from the metrics of runs.
 */
#ifndef TRAIN_REPORT_COMMAND_H
#define TRAIN_REPORT_COMMAND_H

/** Runs the command. @param argv  begins with the word "report". @return the exit status of the
 *  program. A wrong command line ends the program with status 2. */
int report_command(int argc, char **argv);

#endif
