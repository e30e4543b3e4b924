/* SPDX-License-Identifier: Apache-2.0
 * report_command: "ringtrain report RUN…" makes a page of metrics. */
#ifndef TRAIN_REPORT_COMMAND_H
#define TRAIN_REPORT_COMMAND_H

/** @param argv  from the word "report" on. @return the program's exit status. */
int report_command(int argc, char **argv);

#endif
