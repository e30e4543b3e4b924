/* SPDX-License-Identifier: Apache-2.0
 *
 * accelerate: the YAML or JSON file that accelerate writes, as the DeepSpeed configuration that it
 * stands for. Keys about the start of processes are ringrun's.
 */
#ifndef TRAIN_ACCELERATE_H
#define TRAIN_ACCELERATE_H

#include "config.h"
#include "entries.h"

/** Fills @p entries with the keys of DeepSpeed that @p source stands for, each at its place there.
 *  @param source  borrowed until entries_free()
 *  @param list    gets all that is wrong, what is returned too
 *  @param note    called for each key that has no effect; may be NULL
 *  @param[out] processes  ranks that the file wants; 0: it does not say.
 *  Free with entries_free() whatever the result. */
ring_status accelerate_entries(config_entries *entries, const char *name, const char *source,
                               size_t length, faults *list, config_note_fn *note, void *context,
                               long *processes);

#endif
