/* SPDX-License-Identifier: Apache-2.0
 *
 * host_data: a data set that the ranks of a host share. One of those that name the same folder
 * reads and unpacks it into memory that the others map, read-only; it has no name and goes with the
 * last of them.
 */
#ifndef TRAIN_HOST_DATA_H
#define TRAIN_HOST_DATA_H

#include "dataset.h"

/** Collective. As dataset_read(); fails on all ranks if it fails on one. Where memory cannot be
 *  shared (ranks in containers of their own), a rank reads the files itself. */
ring_status host_data_read(ring_comm *comm, const char *folder, dataset_part part,
                           train_dataset *dataset);

#endif
