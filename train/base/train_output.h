/* SPDX-License-Identifier: Apache-2.0
 * output: a program whose standard output was not written completely has failed. */
#ifndef TRAIN_OUTPUT_H
#define TRAIN_OUTPUT_H

/** From now on the end of the program, --help included, checks standard output: a failure
 *  is one line on standard error and EXIT_FAILURE. */
void output_check_at_exit(void);

#endif
