/* SPDX-License-Identifier: Apache-2.0
 *
 * program_ops: defines the ops of a program, which is a flat list of ops on ranges of elements and
 * on messages. A program contains no addresses and no links, so the host's engine and the kernel
 * that runs programs on a GPU can execute the same lists. C and C++ files include this.
 */
#ifndef RING_PROGRAM_OPS_H
#define RING_PROGRAM_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The values equal those of plan_kind and plan_buffer (plan.h). Only programs of accelerators have
 *  OP_SCALE, which multiplies its input by the factor of RING_PREMUL_SUM. */
enum { OP_SEND, OP_RECV, OP_COPY, OP_FOLD, OP_WAIT, OP_SCALE };
enum { OPERAND_SRC, OPERAND_DST, OPERAND_WIRE, OPERAND_SCRATCH };

/** operand.peer of an operand in a buffer of this rank. */
enum { OPERAND_LOCAL = -1 };

/** An input or output of an op: a range of elements in a buffer, or a message. */
typedef struct operand {
    int32_t peer;     /* index in the program's peers, or OPERAND_LOCAL                */
    uint8_t buffer;   /* OPERAND_SRC, …                                                */
    uint8_t width;    /* bytes of an element                                           */
    bool accumulator; /* elements are of the accumulator type                          */
    bool finish;      /* this output is divided and rounded                            */
    uint32_t message; /* number of the peer's message, from 0 in each run of the plan  */
    int32_t block;    /* v-forms: number of the block in a buffer that has several     */
    size_t offset;    /* bytes from the start of the local, or the peer's, buffer      */
} operand;

typedef struct program_op {
    uint8_t kind; /* OP_SEND, … */
    bool eager;
    bool trailing;      /* OP_WAIT: only waits follow it                               */
    uint16_t ins, outs; /* numbers of inputs and outputs                               */
    uint32_t first;     /* index of its first operand: inputs, then outputs            */
    uint32_t messages;  /* OP_WAIT: waits until the peer has released this many messages of this run
                           of the plan */
    size_t count;       /* number of elements in all slices                            */
} program_op;

/** A peer with which a program exchanges messages. */
typedef struct program_peer {
    int32_t rank;
    uint32_t sends, recvs; /* numbers of messages in one run of the plan */
} program_peer;

#endif
