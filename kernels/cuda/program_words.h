/* SPDX-License-Identifier: Apache-2.0
 *
 * program_words: runs passes of a lane in which short messages are sent and received by words of 8
 * bytes, of which 4 are data and 4 a flag. A word is stored and read as a whole, so nothing orders
 * the words of a message: threads of the sender store them to a slot in the receiver's memory,
 * where each thread polls those that it needs, and folds or copies their data. A message takes one
 * trip, without a frame.
 *
 * A slot begins with a header that identifies the call. The last threads of the block compare it,
 * so that it delays no data. If it differs, results are undefined, and the call fails. An element
 * follows as one word, or as two if it has 8 bytes.
 */
#ifndef RING_CUDA_PROGRAM_WORDS_H
#define RING_CUDA_PROGRAM_WORDS_H

#include "fold_types.h"
#include "program_link.h"

enum { MOST_OPERANDS = 64 };

/** An input or output of a pass: elements in memory, or a message in a slot. */
struct pass_end {
    char *at;       /* the elements; NULL: there is a slot, or an output is not stored */
    uint64_t *slot; /* of a message by words; else NULL                                */
    uint32_t flag;  /* of its words                                                    */
    uint32_t peer;
    bool carried; /* an output in the peer's box */
    bool divided; /* an output of an average     */
    uint8_t width;
};

/** The inputs and then the outputs of a pass. */
struct pass_ends {
    uint32_t ins, count;
    bool by_words; /* there are slots among them */
    bool copies;   /* outputs that are not divided have the bits of the only input */
    pass_end of[2 * MOST_OPERANDS];
};

DEVICE void put_word(const pass_end *e, uint64_t i, uint32_t data)
{
    store_relaxed(&e->slot[i], (uint64_t)e->flag << 32 | data);
}

/* ---- Slots: only the leader calls these ------------------------------------------------- */

/** Finds the slot of the next message to or from a peer, and waits until the slot's last message
 *  was released. The flag is the low half of the message's number. Only long messages store the
 *  last words of a slot. So from time to time all its words are stored with the previous flag, and
 *  no old flag matches after the numbers wrap. @return false if the call has failed. */
DEVICE bool find_slot(lane_run *r, pass_end *e, bool is_out)
{
    device_link *l = lane_link(r, e->peer);
    const uint64_t message = (is_out ? l->words_out : l->words_in) + 1;
    const uint64_t last = is_out ? l->slot_messages[message % DEVICE_SLOTS] : 0;
    if (last > l->released) {
        if (!lane_await(r, &l->receipt->released, last, e->peer, AWAITED_RECEIPT))
            return false;
        l->released = load_relaxed(&l->receipt->released);
    }
    e->slot = slot_of(l, is_out ? &l->out : &l->in, message);
    e->flag = (uint32_t)message - 1;
    if (is_out && message % DEVICE_REFILL < DEVICE_SLOTS)
        for (uint32_t i = 0; i < DEVICE_SLOT_WORDS(l->window); i++)
            put_word(e, i, 0);
    e->flag++;
    return true;
}

/** Counts a message that was sent, or releases one that was read. A release need not order other
 *  accesses, because it only allows the peer to store words. If the peer has sent frames in this
 *  call, it must, because the peer may wait for the release of such an earlier message. */
DEVICE void finish_slot(lane_run *r, const pass_end *e, bool is_out)
{
    device_link *l = lane_link(r, e->peer);
    if (is_out) {
        l->slot_messages[++l->words_out % DEVICE_SLOTS] = ++l->messages_out;
        return;
    }
    l->words_in++;
    if (l->begun != 0)
        store_release(&l->given->released, ++l->messages_in);
    else
        store_relaxed(&l->given->released, ++l->messages_in);
}

/* ---- Headers: the last threads call these ------------------------------------------------- */

DEVICE void put_header(const lane_run *r, const pass_end *e)
{
    const uint64_t header[] = {r->number, r->call->signature};
    UNROLL
    for (uint32_t i = 0; i < DEVICE_HEADER_WORDS; i++)
        put_word(e, i, (uint32_t)(header[i / 2] >> i % 2 * 32));
}

/* @return false if the call has failed. */
DEVICE bool check_header(lane_run *r, const pass_end *e)
{
    call_label theirs = {};
    for (uint32_t polls = 1; !read_header(e->slot, e->flag, &theirs); polls++)
        if (polls % POLLS_PER_CHECK == 0) {
            if (!may_wait(r, r->peers[e->peer].rank, AWAITED_WORDS))
                return false;
            device_pause();
        }
    return !is_of_other_call(r, theirs) || lane_fail(r, RING_ERR_MISMATCH, e->peer, theirs);
}

/* ---- Elements: all threads call these ----------------------------------------------------- */

/* @return false if the call has failed. */
DEVICE bool await_word(lane_run *r, const pass_end *e, uint64_t i, uint32_t *data)
{
    uint64_t word = load_relaxed(&e->slot[i]);
    for (uint32_t polls = 1; (uint32_t)(word >> 32) != e->flag; polls++) {
        if (polls % POLLS_PER_CHECK == 0) {
            if (!may_wait(r, r->peers[e->peer].rank, AWAITED_WORDS))
                return false;
            device_pause();
        }
        word = load_relaxed(&e->slot[i]);
    }
    *data = (uint32_t)word;
    return true;
}

template <class Bits> DEVICE fold_access access_of(const char *at)
{
    return (uint64_t)at % sizeof(Bits) == 0 ? FOLD_ELEMENTS : FOLD_BYTES;
}

template <class T> DEVICE bool is_wide(const pass_end *e)
{
    return e->width != sizeof(typename T::stored);
}

/* Reads the bits of element @p i. @return false if the call has failed. */
template <class T>
DEVICE bool read_element(lane_run *r, const pass_end *e, uint64_t i, uint64_t *bits)
{
    typedef typename T::raw::stored plain;
    const uint64_t word = DEVICE_HEADER_WORDS + i * (sizeof(plain) == 8 ? 2 : 1);
    const char *at = e->at + i * e->width;
    uint32_t low, high = 0;
    if (e->slot == NULL) {
        *bits = is_wide<T>(e) ? fold_load_one<uint32_t>(at, 0, access_of<uint32_t>(at))
                              : fold_load_one<plain>(at, 0, access_of<plain>(at));
        return true;
    }
    if (!await_word(r, e, word, &low) || (sizeof(plain) == 8 && !await_word(r, e, word + 1, &high)))
        return false;
    *bits = (uint64_t)high << 32 | low;
    return true;
}

template <class T> DEVICE void write_element(const pass_end *e, uint64_t i, uint64_t bits)
{
    typedef typename T::raw::stored plain;
    const uint64_t word = DEVICE_HEADER_WORDS + i * (sizeof(plain) == 8 ? 2 : 1);
    char *at = e->at + i * e->width;
    if (e->slot == NULL && is_wide<T>(e))
        fold_store_one<uint32_t>(at, 0, (uint32_t)bits, access_of<uint32_t>(at));
    else if (e->slot == NULL)
        fold_store_one<plain>(at, 0, (plain)bits, access_of<plain>(at));
    else
        put_word(e, word, (uint32_t)bits);
    if (e->slot != NULL && sizeof(plain) == 8)
        put_word(e, word + 1, (uint32_t)(bits >> 32));
}

/* Folds element @p i of the inputs to the outputs. @return false if the call has failed. */
template <class T> DEVICE bool fold_element(lane_run *r, const pass_ends *ends, uint64_t i)
{
    const device_call *call = r->call;
    uint64_t first, bits;
    if (!read_element<T>(r, &ends->of[0], i, &first))
        return false;
    typename T::value x = T::from_bits(first, is_wide<T>(&ends->of[0]));
    x = T::template enter<1>(x, call->op);
    NO_UNROLL
    for (uint32_t k = 1; k < ends->ins; k++) {
        if (!read_element<T>(r, &ends->of[k], i, &bits))
            return false;
        x = T::template combine<1>(x, T::from_bits(bits, is_wide<T>(&ends->of[k])), call->op);
    }
    NO_UNROLL
    for (uint32_t k = ends->ins; k < ends->count; k++) {
        const pass_end *e = &ends->of[k];
        bits = first;
        if (e->divided || !ends->copies)
            bits = T::to_bits(T::template finish<1>(x, e->divided ? call->ranks : 0),
                              is_wide<T>(e));
        if (e->at != NULL || e->slot != NULL)
            write_element<T>(e, i, bits);
    }
    return true;
}

/** Folds @p elements of the inputs to the outputs. All threads of the block call it.
 *  @return false if the call has failed. */
template <class T> DEVICE bool fold_words(lane_run *r, const pass_ends *ends, uint64_t elements)
{
    NO_UNROLL
    for (uint64_t i = thread_index(); i < elements; i += thread_count())
        if (!fold_element<T>(r, ends, i))
            return false;
    NO_UNROLL
    for (uint32_t k = thread_count() - 1 - thread_index(); k < ends->count; k += thread_count()) {
        const pass_end *e = &ends->of[k];
        if (e->slot != NULL && k >= ends->ins)
            put_header(r, e);
        else if (e->slot != NULL && !check_header(r, e))
            return false;
    }
    return true;
}

#endif
