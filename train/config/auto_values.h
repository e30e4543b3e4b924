/* SPDX-License-Identifier: Apache-2.0
 *
 * auto_values: decides which value replaces "auto". DeepSpeed itself has no such value: Hugging
 * Face's Trainer and accelerate replace it before they call DeepSpeed. Here their defaults are
 * used; values that depend on ranks, network or data are filled in by config_fill_automatic() once
 * those are known.
 */
#ifndef TRAIN_AUTO_VALUES_H
#define TRAIN_AUTO_VALUES_H

#include "config.h"

/** @return the value that replaces "auto" at @p path, written as in a file; "": it follows from the
 *  optimizer; NULL: there is no fixed value. */
const char *automatic_value(const char *path);

/** @return true if config_fill_automatic() will replace "auto" at @p path, and report it. */
bool automatic_later(train_config *config, const char *path);

/** @return true if "auto" at @p path means the default: in some sections DeepSpeed ignores keys
 * that are "auto". */
bool automatic_default(const char *path);

/** Sets the optimizer of a file without one, which relies on its front end's. */
void automatic_optimizer(optimizer_config *optimizer);

#endif
