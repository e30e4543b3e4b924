/* SPDX-License-Identifier: Apache-2.0
 *
 * run_settings: lists the settings of a run as lines of text, and compares these lists over all
 * ranks, since all ranks must have the same settings.
 */
#ifndef TRAIN_RUN_SETTINGS_H
#define TRAIN_RUN_SETTINGS_H

#include <stdio.h>

#include "trainer.h"

/** Callback that writes lines "name=value". */
typedef void settings_list_fn(void *context, FILE *out);

/** Compares the lines that @p list writes over all ranks. Collective.
 *  @return RING_OK, or on all ranks an error that names the first line that differs. */
ring_status settings_compare(const trainer *made, settings_list_fn *list, void *context);

/** Lists network, seed, configuration, normalization and maths library.
 *  @param dashes  prefix of the names of options: "--" if they are options of a program, else "" */
void settings_list(const trainer *made, const char *dashes, FILE *out);

/** Lists loss and data sets, and stores the hash of the training data for checkpoints. */
void settings_list_data(trainer *made, const char *dashes, FILE *out);

#endif
