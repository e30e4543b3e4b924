/* SPDX-License-Identifier: Apache-2.0
 *
 * auto_values: what "auto" means, which is no value of DeepSpeed's but a place that Hugging Face's
 * Trainer and accelerate fill in before they call it. Here their defaults are taken; what follows
 * from ranks, network or data is filled in by config_fill_automatic() once those are known.
 */
#ifndef TRAIN_AUTO_VALUES_H
#define TRAIN_AUTO_VALUES_H

#include "config.h"

/** @return the value that stands for "auto" at @p path, as in a file; "": what follows from the
 *  optimizer; NULL: none is known. */
const char *automatic_value(const char *path);

/** @return true if "auto" at @p path waits for config_fill_automatic(), which will tell it. */
bool automatic_later(train_config *config, const char *path);

/** @return true if "auto" at @p path is the default: DeepSpeed leaves such keys out of some
 *  sections. */
bool automatic_default(const char *path);

/** The optimizer of a file that has none, because its front end brings one. */
void automatic_optimizer(optimizer_config *optimizer);

#endif
