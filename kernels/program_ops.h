/* SPDX-License-Identifier: Apache-2.0
 *
 * program_ops: defines the ops of a program, which is a flat list of ops on ranges of elements and
 * on messages. A program contains no addresses and no links, so the host's engine and the kernel
 * that runs programs on a GPU read the same lists. C and C++ include this.
 */
#ifndef RING_PROGRAM_OPS_H
#define RING_PROGRAM_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The values equal those of plan_kind and plan_buffer (plan.h). */
enum { OP_SEND, OP_RECV, OP_COPY, OP_FOLD, OP_WAIT };
enum { OPERAND_SRC, OPERAND_DST, OPERAND_WIRE, OPERAND_SCRATCH };

enum { OPERAND_LOCAL = -1 };

typedef struct operand {
    int32_t peer;     /* into program.peers, or OPERAND_LOCAL        */
    uint8_t buffer;   /* plan_buffer                                 */
    uint8_t width;    /* bytes of an element                         */
    bool accumulator; /* elements are accumulators                   */
    bool finish;      /* output: divided and rounded                 */
    uint32_t message; /* the peer's message, counted from 0 in each run of the plan  */
    int32_t block;    /* v-forms: the block of the buffer, where it has several      */
    size_t offset;    /* bytes into the local, or the peer's, buffer                 */
} operand;

typedef struct program_op {
    uint8_t kind; /* plan_kind */
    bool eager;
    bool trailing; /* WAIT: only waits follow it */
    uint16_t ins, outs;
    uint32_t first;    /* the first of its operands: inputs, then outputs        */
    uint32_t messages; /* WAIT: messages sent up to here, in one run of the plan */
    size_t count;      /* elements in all slices                                 */
} program_op;

typedef struct program_peer {
    int32_t rank;
    uint32_t sends, recvs; /* messages in one run of the plan */
} program_peer;

#endif
