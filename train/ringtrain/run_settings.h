/* SPDX-License-Identifier: Apache-2.0
 *
 * run_settings: the settings of a run as lines of text: those that all ranks must share.
 */
#ifndef TRAIN_RUN_SETTINGS_H
#define TRAIN_RUN_SETTINGS_H

#include "train_state.h"

/** Collective: fails on all ranks, with the first line that differs, unless they share all. */
ring_status settings_compare(const train_state *state);

#endif
