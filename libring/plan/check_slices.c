/* SPDX-License-Identifier: Apache-2.0
 *
 * This part of the checker turns a plan that is run slice after slice into one longer plan, so that
 * all proofs for plans apply to it. The engine runs a plan in slices because of its kind (circular,
 * with scratch, or eager), or because a call uses several channels. Then a step over several chunks
 * becomes one step and one message for each chunk, links may still hold messages of the previous
 * slice, and all slices share the scratch and the message numbers. The longer plan repeats the
 * steps once for each slice, and treats a slice of a chunk as a chunk of its own. Only in SCRATCH
 * do the slices of a chunk share a place.
 *
 * Slices on different channels share no chunk, link, count or scratch. The slices of one channel
 * are run one after the other, so the proofs hold for channels too.
 */
#include "checker.h"

/* @return chunk @p piece of a range, in a slice of the longer plan, whose vector has all slices of
 * the first block, then all slices of the second block, and so on. */
static plan_loc piece_of_slice(const plan *p, plan_loc loc, int piece, int slice, int slices)
{
    const int parts = p->chunks / plan_blocks(p->collective, p->ranks), chunk = loc.chunk + piece;
    loc.chunk = (chunk / parts * slices + slice) * parts + chunk % parts;
    loc.chunks = 1;
    return loc;
}

static void append_piece(plan *longer, const plan_cursor *at, int piece, int slice, int slices)
{
    const plan_step *step = plan_at(at);
    plan_add_step(longer, step);
    for (int i = 0; i < step->ins; i++) {
        const plan_loc in = piece_of_slice(at->plan, plan_input(at, step, i), piece, slice, slices);
        plan_add_input(longer, &in);
    }
    for (int i = 0; i < step->outs; i++) {
        const plan_loc out = piece_of_slice(at->plan, plan_output(at, step, i), piece, slice,
                                            slices);
        plan_add_output(longer, &out);
    }
}

plan *check_slices(const plan *p, int slices)
{
    plan *longer = plan_new(p->collective, p->algorithm, p->rank, p->ranks, p->root,
                            slices * p->chunks);
    if (longer == NULL)
        return NULL;
    longer->circular = p->circular;
    for (int slice = 0; slice < slices; slice++) {
        for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
            const plan_step *step = plan_at(&at);
            const int pieces = step->ins > 0 ? plan_input(&at, step, 0).chunks : 1;
            for (int piece = 0; piece < pieces; piece++)
                append_piece(longer, &at, piece, slice, slices);
        }
    }
    if (plan_seal(longer) == RING_OK)
        return longer;
    plan_free(longer);
    return NULL;
}
