/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign: recognizes options and arguments of DeepSpeed and similar programs that ringtrain does
 * not have, and refuses each with a message that says what to write instead.
 */
#ifndef TRAIN_FOREIGN_H
#define TRAIN_FOREIGN_H

/** Ends the program if @p word, an unknown option without its dashes, is an option of another
 *  trainer's script or launcher. */
void foreign_option(const char *word);

/** Ends the program if @p word, which is not an option, is a Python script or a file of gpt-neox.
 */
void foreign_word(const char *word);

/** Ends the program if @p path, the value of @p option, has the name of a YAML file. */
void foreign_config(const char *option, const char *path);

#endif
