/* SPDX-License-Identifier: Apache-2.0
 *
 * export_command: implements `ringtrain export CHECKPOINT --out FILE`, which writes the parameters
 * of a checkpoint as one safetensors file.
 */
#ifndef TRAIN_EXPORT_COMMAND_H
#define TRAIN_EXPORT_COMMAND_H

/** @param argv  begins with the word "export". @return the program's exit status; a wrong command
 *  line ends the program with 2. */
int export_command(int argc, char **argv);

#endif
