/* SPDX-License-Identifier: Apache-2.0
 *
 * host_data: reads a data set once for all ranks of a host. One of the ranks that use the same
 * folder reads and unpacks it into anonymous shared memory, which the others map read-only. The
 * memory is freed with the last of them.
 */
#ifndef TRAIN_HOST_DATA_H
#define TRAIN_HOST_DATA_H

#include "dataset.h"

/** Collective. As dataset_read(); fails on all ranks if it fails on one. Where memory cannot be
 *  shared (ranks in containers of their own), a rank reads the files itself. */
ring_status host_data_read(ring_comm *comm, const char *folder, dataset_part part,
                           train_dataset *dataset);

#endif
