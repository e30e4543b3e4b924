/* SPDX-License-Identifier: Apache-2.0
 *
 * reader: reads the next batch of a data set in threads while the current one is computed with. The
 * batches are the same with and without threads, bit for bit.
 */
#ifndef TRAIN_READER_H
#define TRAIN_READER_H

#include "dataset.h"

typedef struct data_reader data_reader;

/** A batch of samples. All of it is borrowed, and must not change until it is taken, or dropped by
 *  another reader_ask(), reader_drop() or reader_stop(). */
typedef struct data_batch {
    const train_dataset *dataset;
    const uint32_t *order; /* [rows] */
    size_t rows;
} data_batch;

/** Starts @p threads threads, each for a part of the rows.
 *  @param inputs  numbers of the largest batch; 0: labels only
 *  @param labels  labels of the largest batch
 *  @return RING_OK, RING_ERR_MEMORY or RING_ERR_SYSTEM. */
ring_status reader_start(data_reader **reader, int threads, size_t inputs, size_t labels);

/** Waits until the threads have ended their round, and joins them. NULL is allowed. */
void reader_stop(data_reader *reader);

/** Makes the threads read @p next. A batch that was requested before and not taken is dropped. */
void reader_ask(data_reader *reader, const data_batch *next);

/** Drops a batch that was requested and not taken. NULL is allowed. */
void reader_drop(data_reader *reader);

/** As dataset_take(). If @p want was requested, it exchanges buffers instead of reading.
 *  @param inputs  a buffer as large as the reader's; NULL only if that has labels only. It and
 *  @p labels may be other buffers afterwards. */
ring_status reader_take(data_reader *reader, const data_batch *want, float **inputs,
                        uint32_t **labels);

#endif
