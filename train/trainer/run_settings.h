/* SPDX-License-Identifier: Apache-2.0
 *
 * run_settings: writes the settings that all ranks of a run must share, as lines of text.
 */
#ifndef TRAIN_RUN_SETTINGS_H
#define TRAIN_RUN_SETTINGS_H

#include <stdio.h>

#include "trainer.h"

/** Writes lines "name=value". */
typedef void settings_list_fn(void *context, FILE *out);

/** Collective: fails on all ranks, with the first line that differs, unless they share all. */
ring_status settings_compare(const trainer *made, settings_list_fn *list, void *context);

/** Lists network, seed, configuration, normalization and maths library.
 *  @param dashes  before the names of options: "--" on a command line, else "" */
void settings_list(const trainer *made, const char *dashes, FILE *out);

/** Lists loss and data sets, and keeps the hash of the training data for checkpoints. */
void settings_list_data(trainer *made, const char *dashes, FILE *out);

#endif
