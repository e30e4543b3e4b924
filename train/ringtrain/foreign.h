/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign: words of the command lines that DeepSpeed's users come with, which mean nothing to
 * ringtrain. Each is refused by what to write instead.
 */
#ifndef TRAIN_FOREIGN_H
#define TRAIN_FOREIGN_H

/** Ends the program if @p word, an unknown option without its dashes, is a script's or a
 *  launcher's. */
void foreign_option(const char *word);

/** The same for a word that is no option: a Python script, a file of gpt-neox. */
void foreign_word(const char *word);

/** Ends the program if @p path, given as @p option, is no JSON by its name. */
void foreign_config(const char *option, const char *path);

#endif
