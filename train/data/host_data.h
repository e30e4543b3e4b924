/* SPDX-License-Identifier: Apache-2.0
 *
 * host_data: reads a data set once for all ranks of a host. Of the ranks that use the same folder,
 * one reads and unpacks the files into anonymous shared memory, and the others map this memory
 * read-only. The kernel frees it when the last rank unmaps it.
 */
#ifndef TRAIN_HOST_DATA_H
#define TRAIN_HOST_DATA_H

#include "dataset.h"

/** Collective: reads as dataset_read() does, and fails on all ranks if it fails on one. A rank that
 *  cannot map the shared memory, for example in its own container, reads the files itself. */
ring_status host_data_read(ring_comm *comm, const char *folder, dataset_part part,
                           train_dataset *dataset);

#endif
