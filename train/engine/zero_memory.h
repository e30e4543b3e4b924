/* SPDX-License-Identifier: Apache-2.0
 *
 * zero_memory: holds the parameters and gradients that the stage of ZeRO assigns to one rank, in
 * the types that the configuration asks for. The memory is shared by the ranks of a host.
 *
 * "Own" is the part of every bucket that belongs to this rank (partition.h):
 *
 *     ZeRO stage  parameters              gradients               masters, optimiser's states
 *     0           all                     all                     all
 *     1           all                     all                     own
 *     2           all                     own, 2 live buckets     own
 *     3           own, 2 live buckets     own, 2 live buckets     own
 *
 * In stage 3, all ranks also keep all parameters of persistent buckets.
 *
 * A role has an array of its own if the condition in the second column holds; otherwise it uses the
 * array of another role. PARAMS and GATHERED have the configured type of parameters, GRADS that of
 * gradients, and WIRE the type in which gradients are sent; all others are float32.
 *
 *     role         own array if             layout                        otherwise uses
 *     PARAMS       always                   FULL; in stage 3 KEPT
 *     GATHERED     stage 3                  GATHERED                      PARAMS
 *     NODE_PARAMS  16-bit parameters        LIVE                          GATHERED
 *     MASTERS      masters are configured   FULL; in stages 1 to 3 OWN    PARAMS if float32, else
 *                                                                         NODE_PARAMS
 *     GRADS        always                   FULL; in stages 2 and 3 OWN
 *     NODE_GRADS   16-bit gradients, or     LIVE                          GRADS
 *                  stages 2 and 3
 *     WIRE         gradients are sent in    FULL; in stages 2 and 3 LIVE  GRADS; in stages 2 and 3
 *                  another type                                           NODE_GRADS
 *
 * Nodes compute in float32. If parameters or gradients are stored in another type, nodes read and
 * write live buckets, and bucket_casts.h converts them. Arrays keep their address from
 * zero_memory_allocate() to zero_memory_free().
 */
#ifndef TRAIN_ZERO_MEMORY_H
#define TRAIN_ZERO_MEMORY_H

#include "precision.h"
#include "update_schedule.h"

/** An array with one number for each parameter, or for those that its layout contains. */
typedef struct zero_array {
    ring_dtype type;
    array_layout layout;
    bool outside;        /* the caller sets data (offload.h) instead of zero_memory_allocate() */
    unsigned char *data; /* [partition->elements[layout]] */
} zero_array;

typedef enum zero_role {
    ZERO_PARAMS,      /* parameters that are stored all the time */
    ZERO_GATHERED,    /* parameters of whole buckets; use zero_gathered() */
    ZERO_NODE_PARAMS, /* parameters that nodes read; use zero_node_params() */
    ZERO_MASTERS,     /* parameters that the optimiser updates */
    ZERO_GRADS,       /* gradients that are stored all the time */
    ZERO_NODE_GRADS,  /* gradients that nodes write */
    ZERO_WIRE,        /* gradients of whole buckets, in the type in which they are sent */
    ZERO_ROLES
} zero_role;

typedef struct zero_memory {
    const nn_place *place;            /* of the arrays; the model's; borrowed */
    const train_partition *partition; /* borrowed */
    int zero_stage, rank;
    zero_array arrays[ZERO_ROLES];   /* all 0 for a role without an array of its own */
    zero_role served_by[ZERO_ROLES]; /* the role whose array each role uses, possibly its own */
} zero_memory;

/** @return the array that a role uses, possibly that of another role. */
static inline const zero_array *zero_array_of(const zero_memory *memory, zero_role role)
{
    return &memory->arrays[memory->served_by[role]];
}

/** @return whether the two roles use the same array. */
static inline bool zero_is_same(const zero_memory *memory, zero_role one, zero_role other)
{
    return memory->served_by[one] == memory->served_by[other];
}

/** @return whether the role has an array of its own. */
static inline bool zero_has_own(const zero_memory *memory, zero_role role)
{
    return memory->served_by[role] == role;
}

/** Decides which arrays exist, with their types and layouts, without allocating them.
 *  @param partition  borrowed. @param rank  this rank among the data-parallel ranks. */
void zero_memory_plan(zero_memory *memory, const train_partition *partition,
                      const precision_config *precision, int zero_stage, int rank);

/** Allocates the planned arrays, except those marked as outside, whose data must be set, and points
 *  the tensors of @p model into the arrays. Free with zero_memory_free() whatever the result.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status zero_memory_allocate(zero_memory *memory, train_model *model);
void zero_memory_free(zero_memory *memory);

/** Prepares @p model for model_init(), which needs all parameters in float32: if the engine's own
 *  array has them, it does nothing; otherwise it points the tensors into a temporary array.
 *  @param[out] all  the temporary array, for zero_memory_keep(); or NULL
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status zero_memory_open(const zero_memory *memory, train_model *model, float **all);

/** Copies the parameters that this rank keeps from the temporary array of zero_memory_open(), frees
 *  it, and points the tensors into the arrays for nodes again. */
void zero_memory_keep(zero_memory *memory, train_model *model, float *all);

/** Copies the parameters that this rank keeps.
 *  @param all  [partition->elements[LAYOUT_FULL]] all parameters in float32. */
void zero_memory_fill(zero_memory *memory, const float *all);

/** @return the array that has all parameters of the bucket in the type in which they are stored:
 * that of ZERO_PARAMS for persistent buckets, else of ZERO_GATHERED. */
const zero_array *zero_gathered(const zero_memory *memory, int bucket);

/** @return the array from which nodes read the bucket's parameters in float32: zero_gathered(), or
 * a copy of 16-bit parameters. */
const zero_array *zero_node_params(const zero_memory *memory, int bucket);

/** @return [bucket's count] the whole bucket in @p array, which must contain all of it. */
void *zero_bucket(const zero_memory *memory, const zero_array *array, int bucket);

/** @return whether @p array contains only this rank's part of the bucket. */
bool zero_has_part(const zero_memory *memory, const zero_array *array, int bucket);

/** @return [bucket's part] this rank's part of the bucket in @p array. */
void *zero_part(const zero_memory *memory, const zero_array *array, int bucket);

/** @return [zero_owned_count()] the elements of the bucket in @p array that this rank updates: all
 * of them in stage 0 of ZeRO, else its part. */
void *zero_owned(const zero_memory *memory, const zero_array *array, int bucket);
size_t zero_owned_count(const zero_memory *memory, int bucket);

/** @return bytes in memory of the arrays that are stored all the time: parameters, gradients,
 * masters and all three together. These functions need only zero_memory_plan(). */
size_t zero_param_bytes(const zero_memory *memory);
size_t zero_grad_bytes(const zero_memory *memory);
size_t zero_master_bytes(const zero_memory *memory);
size_t zero_kept_bytes(const zero_memory *memory);

/** @return bytes of the other arrays, which contain buckets in use. */
size_t zero_live_bytes(const zero_memory *memory);

#endif
