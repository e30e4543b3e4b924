/* SPDX-License-Identifier: Apache-2.0
 *
 * settings_diff: reports which settings differ between two lists of lines "name=value".
 */
#ifndef TRAIN_SETTINGS_DIFF_H
#define TRAIN_SETTINGS_DIFF_H

/** Tells @p note "NAME is NEW, was OLD" for each name whose value differs; "none" where a list does
 *  not have it. @param before, now  each may be NULL: an empty list. */
void settings_tell_changes(const char *before, const char *now,
                           void (*note)(void *context, const char *text), void *context);

#endif
