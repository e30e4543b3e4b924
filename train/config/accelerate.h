/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerate: translates the YAML or JSON file that Hugging Face's accelerate writes into an
 * equivalent DeepSpeed configuration. The keys that start processes are for ringrun.
 */
#ifndef TRAIN_ACCELERATE_H
#define TRAIN_ACCELERATE_H

#include "config.h"
#include "entries.h"

/** Fills @p entries with the keys of DeepSpeed that the keys in @p source stand for. Each entry has
 *  the offset of its key in the source.
 *  @param source  borrowed until entries_free()
 *  @param list    receives all errors, including the one returned
 *  @param note    called for each key that has no effect; may be NULL
 *  @param[out] processes  number of ranks in the file; 0: not given
 *  Free with entries_free() whatever the result. */
ring_status accelerate_entries(config_entries *entries, const char *name, const char *source,
                               size_t length, faults *list, config_note_fn *note, void *context,
                               long *processes);

#endif
