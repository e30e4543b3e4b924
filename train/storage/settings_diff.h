/* SPDX-License-Identifier: Apache-2.0
 *
 * settings_diff: reports the settings that differ between two lists of lines "name=value".
 */
#ifndef TRAIN_SETTINGS_DIFF_H
#define TRAIN_SETTINGS_DIFF_H

/** Calls @p note with the text "NAME is NEW, was OLD" for each name whose value differs. The value
 * of a name that a list does not have is "none". @param before, now  the lists; NULL: an empty
 * list. */
void settings_tell_changes(const char *before, const char *now,
                           void (*note)(void *context, const char *text), void *context);

#endif
