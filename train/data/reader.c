/* SPDX-License-Identifier: Apache-2.0
 * Runs the threads in rounds. In each round they read one batch, each thread its part of the rows.
 * One lock protects the whole state. */
#include "reader.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"
#include "subnormals.h"

struct data_reader {
    pthread_mutex_t lock;
    pthread_cond_t asked, ended;
    pthread_t *threads; /* [count] */
    int count, started;
    unsigned long round; /* number of the current round, from 1; 0: no round yet */
    int working;         /* threads that have not finished the current round */
    bool ends;           /* the threads must end */
    bool holds;          /* batch was requested and not taken yet */
    data_batch batch;
    float *inputs; /* NULL: labels only */
    uint32_t *labels;
    train_failure failure; /* the first failure of the current round */
};

/* ---- The threads --------------------------------------------------------------------------- */

/* Reads rows of the batch. @param part  number of the thread, below reader->count */
static ring_status take_part(const data_reader *reader, int part)
{
    const data_batch *batch = &reader->batch;
    const train_dataset *dataset = batch->dataset;
    const size_t parts = (size_t)reader->count, i = (size_t)part, width = dataset->features;
    const size_t begin = batch->rows * i / parts, end = batch->rows * (i + 1) / parts;
    const size_t own = dataset->token_bytes > 0 ? width : 1;
    const size_t labels = dataset->source != NULL ? dataset->own_labels : own; /* of a row */
    if (begin == end)
        return RING_OK;
    return dataset_take(dataset, batch->order + begin, end - begin,
                        reader->inputs != NULL ? reader->inputs + begin * width : NULL,
                        reader->labels + begin * labels);
}

static void *read_rounds(void *context)
{
    data_reader *reader = context;
    subnormals_flush(); /* the same arithmetic as in the thread that computes */
    pthread_mutex_lock(&reader->lock);
    const int part = reader->started++;
    for (unsigned long round = 1;; round++) {
        while (reader->round < round && !reader->ends)
            pthread_cond_wait(&reader->asked, &reader->lock);
        if (reader->round < round)
            break;
        pthread_mutex_unlock(&reader->lock);
        const ring_status status = take_part(reader, part);
        pthread_mutex_lock(&reader->lock);
        train_failure_keep(&reader->failure, status);
        if (--reader->working == 0)
            pthread_cond_broadcast(&reader->ended);
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

/* Blocks all signals in the new threads, because the program's own threads handle them. */
static ring_status start_threads(data_reader *reader, int threads)
{
    sigset_t all, before;
    int error = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (reader->count < threads && error == 0) {
        error = pthread_create(&reader->threads[reader->count], NULL, read_rounds, reader);
        reader->count += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        return RING_OK;
    return train_fail(RING_ERR_SYSTEM,
                      "cannot start %d threads that read data: %s; give --workers 0", threads,
                      strerror(error));
}

/* ---- The owner's calls --------------------------------------------------------------------- */

static ring_status allocate(data_reader *reader, int threads, size_t inputs, size_t labels)
{
    static const char what[] = "the next batch";
    RING_TRY(train_alloc((void **)&reader->threads, (size_t)threads * sizeof *reader->threads,
                         "threads that read data"));
    RING_TRY(train_alloc((void **)&reader->labels, labels * sizeof *reader->labels, what));
    if (inputs == 0)
        return RING_OK;
    return train_alloc((void **)&reader->inputs, inputs * sizeof *reader->inputs, what);
}

ring_status reader_start(data_reader **reader, int threads, size_t inputs, size_t labels)
{
    data_reader *made = calloc(1, sizeof *made);
    *reader = NULL;
    if (made == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for a reader of data");
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->asked, NULL);
    pthread_cond_init(&made->ended, NULL);
    ring_status status = allocate(made, threads, inputs, labels);
    if (status == RING_OK)
        status = start_threads(made, threads);
    if (status == RING_OK)
        *reader = made;
    else
        reader_stop(made);
    return status;
}

void reader_stop(data_reader *reader)
{
    if (reader == NULL)
        return;
    pthread_mutex_lock(&reader->lock);
    reader->ends = true;
    pthread_cond_broadcast(&reader->asked);
    pthread_mutex_unlock(&reader->lock);
    for (int t = 0; t < reader->count; t++)
        pthread_join(reader->threads[t], NULL);
    pthread_mutex_destroy(&reader->lock);
    pthread_cond_destroy(&reader->asked);
    pthread_cond_destroy(&reader->ended);
    free(reader->threads);
    free(reader->inputs);
    free(reader->labels);
    free(reader);
}

/* Waits for the end of the current round. Call it under the lock. */
static void await_round(data_reader *reader)
{
    while (reader->working > 0)
        pthread_cond_wait(&reader->ended, &reader->lock);
}

void reader_ask(data_reader *reader, const data_batch *next)
{
    pthread_mutex_lock(&reader->lock);
    await_round(reader);
    reader->batch = *next;
    reader->holds = true;
    reader->failure.status = RING_OK;
    reader->working = reader->count;
    reader->round++;
    pthread_cond_broadcast(&reader->asked);
    pthread_mutex_unlock(&reader->lock);
}

void reader_drop(data_reader *reader)
{
    if (reader == NULL)
        return;
    pthread_mutex_lock(&reader->lock);
    await_round(reader);
    reader->holds = false;
    pthread_mutex_unlock(&reader->lock);
}

ring_status reader_take(data_reader *reader, const data_batch *want, float **inputs,
                        uint32_t **labels)
{
    /* These members need no lock, because only the owner's thread changes them. */
    const data_batch *batch = &reader->batch;
    if (!reader->holds || batch->dataset != want->dataset || batch->order != want->order ||
        batch->rows != want->rows)
        return dataset_take(want->dataset, want->order, want->rows,
                            reader->inputs != NULL ? *inputs : NULL, *labels);
    pthread_mutex_lock(&reader->lock);
    await_round(reader);
    reader->holds = false;
    pthread_mutex_unlock(&reader->lock);
    RING_TRY(train_failure_tell(&reader->failure));
    uint32_t *taken = reader->labels;
    reader->labels = *labels;
    *labels = taken;
    if (reader->inputs != NULL) {
        float *numbers = reader->inputs;
        reader->inputs = *inputs;
        *inputs = numbers;
    }
    return RING_OK;
}
