/* SPDX-License-Identifier: Apache-2.0
 *
 * zero_memory: parameters and gradients of one rank, as much of them as the stage of ZeRO leaves
 * it, in the types that the configuration asks for, in memory that the ranks of a host share.
 *
 *     stage    parameters              gradients               masters, optimiser's states
 *     0        all                     all                     all
 *     1        all                     all                     own
 *     2        all                     own, 2 live buckets     own
 *     3        own, 2 live buckets     own, 2 live buckets     own
 *
 * But for buckets that stay whole: their parameters are all there in stage 3, too.
 * Nodes compute with float32. Where something else is kept, they read and write live buckets, and
 * bucket_casts.h goes between.
 */
#ifndef TRAIN_ZERO_MEMORY_H
#define TRAIN_ZERO_MEMORY_H

#include "precision.h"
#include "step_schedule.h"

typedef enum array_layout {
    LAYOUT_WHOLE,   /* [partition->elements] */
    LAYOUT_OWN,     /* [partition->own] */
    LAYOUT_KEPT,    /* [partition->kept] whole buckets, and the own part of the others */
    LAYOUT_LIVE,    /* [partition->live] */
    LAYOUT_GATHERED /* [partition->gathered] */
} array_layout;

/** A number for each parameter. */
typedef struct zero_array {
    ring_dtype type;
    array_layout layout;
    bool used;    /* else it is not there */
    bool outside; /* whoever planned it places it: it takes no memory here (offload.h) */
    unsigned char *data;
} zero_array;

typedef struct zero_memory {
    const train_partition *partition; /* borrowed */
    int stage, rank;
    zero_array params, grads; /* kept all the time */
    zero_array own_masters;   /* float32, kept beside parameters of 16 bits */
    zero_array live_gathered, live_params, live_grads, live_wire;
    /* Each is one of those above. */
    const zero_array *gathered;    /* all of a bucket's parameters, in their type, */
    const zero_array *node_params; /* and in float32, what nodes read; see the functions below */
    const zero_array *node_grads;  /* float32, what nodes write */
    const zero_array *wire;        /* whole buckets of gradients as they travel */
    const zero_array *masters;     /* float32, what the optimiser updates */
} zero_memory;

/** Says which arrays there are, without memory for them; do not move @p memory meanwhile. */
void zero_memory_plan(zero_memory *memory, const train_partition *partition,
                      const precision_config *precision, int stage, int rank);

/** Allocates what is planned but for arrays outside, which have their place, and places the tensors
 *  of @p model there. Free with zero_memory_free() whatever the result; do not move it meanwhile.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status zero_memory_allocate(zero_memory *memory, train_model *model);
void zero_memory_free(zero_memory *memory);

/** Places the tensors of @p model where model_init() can fill them: all of this rank's parameters
 *  in float32. @param[out] all  for zero_memory_keep(). @return RING_OK or RING_ERR_MEMORY. */
ring_status zero_memory_open(const zero_memory *memory, train_model *model, float **all);

/** Keeps what is this rank's of these, and places the tensors for nodes again. */
void zero_memory_keep(zero_memory *memory, train_model *model, float *all);

/** Fills the parameters. @param all  [partition->elements] by the offsets of the partition. */
void zero_memory_fill(zero_memory *memory, const float *all);

/** @return where all of the bucket's parameters are, in their type, and in float32: in
 *  memory->gathered and node_params, or where they are kept, if they stay whole. */
const zero_array *zero_gathered(const zero_memory *memory, int bucket);
const zero_array *zero_node_params(const zero_memory *memory, int bucket);

/** @return the whole bucket, [count], in an array that has more of it than a part. */
void *zero_bucket(const zero_memory *memory, const zero_array *array, int bucket);

/** @return whether no more than this rank's part of the bucket is there. */
bool zero_has_part(const zero_memory *memory, const zero_array *array, int bucket);

/** @return this rank's part of the bucket, [part]. */
void *zero_part(const zero_memory *memory, const zero_array *array, int bucket);

/** @return what this rank updates of the bucket, [zero_owned_count()]: the whole of it in stage 0,
 *  then its part. */
void *zero_owned(const zero_memory *memory, const zero_array *array, int bucket);
size_t zero_owned_count(const zero_memory *memory, int bucket);

/** @return bytes of parameters, of gradients and of masters that are held all the time, of all
 *  three, and of live buckets; of a plan, too. */
size_t zero_param_bytes(const zero_memory *memory);
size_t zero_grad_bytes(const zero_memory *memory);
size_t zero_master_bytes(const zero_memory *memory);
size_t zero_kept_bytes(const zero_memory *memory);
size_t zero_live_bytes(const zero_memory *memory);

#endif
