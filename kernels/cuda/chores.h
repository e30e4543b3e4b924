/* SPDX-License-Identifier: Apache-2.0
 *
 * chores: clears, copies, marks and looks at words of arenas when communicators are made and
 * destroyed.
 */
#ifndef RING_CUDA_CHORES_H
#define RING_CUDA_CHORES_H

#include "device.h"
#include "program_args.h"

DEVICE void look(const device_chore *c)
{
    uint64_t all = 1;
    for (uint64_t i = 0; i < c->bytes / sizeof *c->from; i++)
        all = load_acquire(&c->from[i]) != 0 ? all : 0;
    store_release(c->to, all);
}

DEVICE void look_at_links(const device_chore *c)
{
    const device_link *links = (const device_link *)c->from;
    uint64_t all = 1;
    for (uint64_t i = 0; i < c->bytes / sizeof *links; i++) /* a rank has no link to itself */
        if (links[i].receipt != NULL && links[i].apart != DEVICE_FAR &&
            load_acquire(&links[i].receipt->released) < links[i].messages_out)
            all = 0;
    store_release(c->to, all);
}

/* All threads call it. */
DEVICE void do_chore(const device_chore *c)
{
    const uint64_t words = c->bytes / sizeof *c->to;
    const bool leads = thread_index() == 0;
    if (c->kind == CHORE_MARK && leads)
        store_release(c->to, 1);
    if (c->kind == CHORE_LOOK && leads)
        look(c);
    if (c->kind == CHORE_DRAIN && leads)
        look_at_links(c);
    for (uint64_t i = thread_index(); c->kind <= CHORE_COPY && i < words; i += thread_count())
        c->to[i] = c->kind == CHORE_COPY ? c->from[i] : 0;
}

/** All threads of the only block call it. */
DEVICE void do_chores(const chore_args *args)
{
    for (uint32_t i = 0; i < args->count; i++) {
        do_chore(&args->chores[i]);
        block_barrier();
    }
}

#endif
