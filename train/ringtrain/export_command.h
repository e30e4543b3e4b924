/* SPDX-License-Identifier: Apache-2.0
 *
 * export_command: `ringtrain export CHECKPOINT --out FILE`: the parameters of a checkpoint as one
 * safetensors file, read and written piece by piece.
 */
#ifndef TRAIN_EXPORT_COMMAND_H
#define TRAIN_EXPORT_COMMAND_H

/** @param argv  from the word "export" on. @return the exit status, as ringtrain's; a wrong command
 *  line ends the program with 2. */
int export_command(int argc, char **argv);

#endif
