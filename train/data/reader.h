/* SPDX-License-Identifier: Apache-2.0
 *
 * reader: lets threads prepare the next batch of a data set while the caller computes with the
 * current batch. The batches are the same with and without threads, bit for bit.
 */
#ifndef TRAIN_READER_H
#define TRAIN_READER_H

#include "dataset.h"

typedef struct data_reader data_reader;

/** A batch of samples. Its members are borrowed, and must not change until the batch is taken, or
 *  dropped by another reader_ask(), by reader_drop() or by reader_stop(). */
typedef struct data_batch {
    const train_dataset *dataset;
    const uint32_t *order; /* [rows] numbers of the samples */
    size_t rows;
} data_batch;

/** Starts @p threads threads, each of which reads a part of the rows of a batch.
 *  @param inputs  inputs in the largest batch; 0: only labels are read
 *  @param labels  labels in the largest batch
 *  @return RING_OK, RING_ERR_MEMORY or RING_ERR_SYSTEM. */
ring_status reader_start(data_reader **reader, int threads, size_t inputs, size_t labels);

/** Waits until the threads have finished the current batch, and ends them. NULL is allowed. */
void reader_stop(data_reader *reader);

/** Requests that the threads read @p next. Drops an earlier request that was not taken. */
void reader_ask(data_reader *reader, const data_batch *next);

/** Drops a batch that was requested and not taken, if there is one. NULL is allowed. */
void reader_drop(data_reader *reader);

/** Takes a batch as dataset_take() does. If the batch @p want was requested, waits for the threads
 * and swaps buffers with the reader. Otherwise reads the batch at once.
 *  @param[in,out] inputs, labels  buffers as large as those of the reader; they may point to other
 *  buffers afterwards. inputs may be NULL if only labels are read. */
ring_status reader_take(data_reader *reader, const data_batch *want, float **inputs,
                        uint32_t **labels);

#endif
