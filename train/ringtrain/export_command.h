/* SPDX-License-Identifier: Apache-2.0
 *
 * export_command: implements `ringtrain export CHECKPOINT --out FILE`, which writes the parameters
 * of a checkpoint to one safetensors file.
 */
#ifndef TRAIN_EXPORT_COMMAND_H
#define TRAIN_EXPORT_COMMAND_H

/** Runs the command. @param argv  begins with the word "export". @return the exit status of the
 *  program. A wrong command line ends the program with status 2. */
int export_command(int argc, char **argv);

#endif
