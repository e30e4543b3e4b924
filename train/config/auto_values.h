/* SPDX-License-Identifier: Apache-2.0
 *
 * auto_values: what "auto" means, which is no value of DeepSpeed's but a place that Hugging Face's
 * Trainer and accelerate fill in before they call it. Here their defaults are taken.
 */
#ifndef TRAIN_AUTO_VALUES_H
#define TRAIN_AUTO_VALUES_H

#include "config.h"

/** @return the value that stands for "auto" at @p path, as in a file; "": what follows from other
 *  keys, as if the key were not there; NULL: nobody fills that in. */
const char *automatic_value(const char *path);

/** The optimizer of a file that has none, because its front end brings one. */
void automatic_optimizer(optimizer_config *optimizer);

#endif
