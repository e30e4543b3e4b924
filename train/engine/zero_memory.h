/* SPDX-License-Identifier: Apache-2.0
 *
 * zero_memory: holds the parameters and gradients that the stage of ZeRO assigns to one rank, in
 * the types that the configuration asks for. The memory is shared by the ranks of a host.
 *
 *     ZeRO stage  parameters              gradients               masters, optimiser's states
 *     0           all                     all                     all
 *     1           all                     all                     own
 *     2           all                     own, 2 live buckets     own
 *     3           own, 2 live buckets     own, 2 live buckets     own
 *
 * But for persistent buckets: their parameters are all there in stage 3, too.
 *
 * There is an array for each role, unless another role's array serves it as well:
 *
 *     role         type         layout                      served by
 *     PARAMS       parameters'  FULL; stage 3: KEPT
 *     GATHERED     parameters'  stage 3: GATHERED           else PARAMS
 *     NODE_PARAMS  float32      of 16 bits: LIVE            else GATHERED
 *     MASTERS      float32      with masters: FULL or OWN   else NODE_PARAMS or PARAMS
 *     GRADS        gradients'   FULL; stages 2 and 3: OWN
 *     NODE_GRADS   float32      of 16 bits or split: LIVE   else GRADS
 *     WIRE         as sent      of another type: FULL       else GRADS, NODE_GRADS where split
 *                               or LIVE
 *
 * Nodes compute with float32. Where something else is kept, they read and write live buckets, and
 * bucket_casts.h goes between. Arrays never move between zero_memory_allocate() and
 * zero_memory_free().
 */
#ifndef TRAIN_ZERO_MEMORY_H
#define TRAIN_ZERO_MEMORY_H

#include "precision.h"
#include "update_schedule.h"

/** A number for each parameter. */
typedef struct zero_array {
    ring_dtype type;
    array_layout layout;
    bool outside; /* the caller of zero_memory_plan() places it: no memory here (offload.h) */
    unsigned char *data;
} zero_array;

typedef enum zero_role {
    ZERO_PARAMS,      /* parameters that are kept all the time */
    ZERO_GATHERED,    /* all of a bucket's parameters; see zero_gathered() */
    ZERO_NODE_PARAMS, /* parameters that nodes read; see zero_node_params() */
    ZERO_MASTERS,     /* parameters that the optimiser updates */
    ZERO_GRADS,       /* gradients that are kept all the time */
    ZERO_NODE_GRADS,  /* gradients that nodes write */
    ZERO_WIRE,        /* all of a bucket's gradients, as they travel */
    ZERO_ROLES
} zero_role;

typedef struct zero_memory {
    const train_partition *partition; /* borrowed */
    int zero_stage, rank;
    zero_array arrays[ZERO_ROLES];   /* of a role that another one's array serves: nothing */
    zero_role served_by[ZERO_ROLES]; /* the role whose array it is; itself, if it has one */
} zero_memory;

/** @return the array of a role. */
static inline const zero_array *zero_array_of(const zero_memory *memory, zero_role role)
{
    return &memory->arrays[memory->served_by[role]];
}

/** @return whether the two are the same memory. */
static inline bool zero_is_same(const zero_memory *memory, zero_role one, zero_role other)
{
    return memory->served_by[one] == memory->served_by[other];
}

/** @return whether the role has an array of its own. */
static inline bool zero_has_own(const zero_memory *memory, zero_role role)
{
    return memory->served_by[role] == role;
}

/** Says which arrays there are, without memory for them. */
void zero_memory_plan(zero_memory *memory, const train_partition *partition,
                      const precision_config *precision, int zero_stage, int rank);

/** Allocates what is planned but for arrays outside, which have their place, and places the tensors
 *  of @p model there. Free with zero_memory_free() whatever the result.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status zero_memory_allocate(zero_memory *memory, train_model *model);
void zero_memory_free(zero_memory *memory);

/** Places the tensors of @p model where model_init() can fill them: all of this rank's parameters
 *  in float32. @param[out] all  for zero_memory_keep(). @return RING_OK or RING_ERR_MEMORY. */
ring_status zero_memory_open(const zero_memory *memory, train_model *model, float **all);

/** Keeps what is this rank's of these, and places the tensors for nodes again. */
void zero_memory_keep(zero_memory *memory, train_model *model, float *all);

/** Fills the parameters. @param all  [partition->elements[LAYOUT_FULL]] by the offsets of the
 * partition. */
void zero_memory_fill(zero_memory *memory, const float *all);

/** @return the array that has all of the bucket's parameters, in their type, and in float32: of the
 *  roles GATHERED and NODE_PARAMS; that of PARAMS for persistent buckets, unless nodes read a copy.
 */
const zero_array *zero_gathered(const zero_memory *memory, int bucket);
const zero_array *zero_node_params(const zero_memory *memory, int bucket);

/** @return all of the bucket, [count], in an array that has more of it than a part. */
void *zero_bucket(const zero_memory *memory, const zero_array *array, int bucket);

/** @return whether no more than this rank's part of the bucket is there. */
bool zero_has_part(const zero_memory *memory, const zero_array *array, int bucket);

/** @return this rank's part of the bucket, [part]. */
void *zero_part(const zero_memory *memory, const zero_array *array, int bucket);

/** @return what this rank updates of the bucket, [zero_owned_count()]: all of it in stage 0 of
 *  ZeRO, else its part. */
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
