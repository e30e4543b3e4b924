/* SPDX-License-Identifier: Apache-2.0
 *
 * auto_values: decides which value replaces "auto". DeepSpeed itself does not know "auto": Hugging
 * Face's Trainer and accelerate replace it before they call DeepSpeed. This room replaces it by
 * their defaults. config_fill_automatic() fills in values that depend on ranks, network or data.
 */
#ifndef TRAIN_AUTO_VALUES_H
#define TRAIN_AUTO_VALUES_H

#include "config.h"

/** @return the value that replaces "auto" at @p path, written as in a file; "": the optimizer's
 *  setting decides it; NULL: there is no fixed value. */
const char *automatic_value(const char *path);

/** Asks config_fill_automatic() to replace "auto" at @p path. @return false: it cannot. */
bool automatic_later(train_config *config, const char *path);

/** @return true if "auto" at @p path means the default, because DeepSpeed ignores keys that are
 *  "auto" in the section of @p path. */
bool automatic_default(const char *path);

/** Sets the optimizer for a file without one, which leaves the choice to Hugging Face's Trainer or
 * to the script. */
void automatic_optimizer(optimizer_config *optimizer);

#endif
