/* SPDX-License-Identifier: Apache-2.0
 *
 * reader: threads that take the next batch of a data set while this one is computed with. A
 * caller takes the same batches with and without them, bit for bit.
 */
#ifndef TRAIN_READER_H
#define TRAIN_READER_H

#include "dataset.h"

typedef struct data_reader data_reader;

/** A batch of samples. All of it is borrowed, and must not change until it is taken or
 *  dropped: by another reader_ask(), reader_drop() or reader_stop(). */
typedef struct data_batch {
    const train_dataset *dataset;
    const uint32_t *order; /* [rows] */
    size_t rows;
} data_batch;

/** Starts @p threads threads, each for a part of the rows.
 *  @param inputs  numbers that the largest batch has; 0: labels alone; @param labels  of it
 *  @return RING_OK, RING_ERR_MEMORY or RING_ERR_SYSTEM. */
ring_status reader_start(data_reader **reader, int threads, size_t inputs, size_t labels);

/** Waits for what the threads do, and ends them. NULL is allowed. */
void reader_stop(data_reader *reader);

/** Has the threads take @p next. A batch asked for before and not taken is dropped. */
void reader_ask(data_reader *reader, const data_batch *next);

/** Forgets what was asked for and not taken. NULL is allowed. */
void reader_drop(data_reader *reader);

/** As dataset_take(): at once if @p want was asked for, and then by exchanging buffers.
 *  @param inputs  a buffer as large as the reader's, not NULL unless it has labels alone; it may be
 *  another one afterwards, and so may @p labels. */
ring_status reader_take(data_reader *reader, const data_batch *want, float **inputs,
                        uint32_t **labels);

#endif
