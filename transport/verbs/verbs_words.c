/* SPDX-License-Identifier: Apache-2.0
 * Exchanges the status words: writes those of this end into the peer's inbox, and reads those that
 * the peer has written. */
#include "verbs_words.h"

static uint64_t check_of_words(const uint64_t words[WORDS])
{
    uint64_t x = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < WORD_CHECK; i++)
        x = (x ^ words[i]) * 0xff51afd7ed558ccdu, x ^= x >> 32;
    return x;
}

/* If the words are only partly written, their checksum is wrong, and the previous words stay valid.
 * Words only grow, so smaller values are ignored. */
void verbs_look_at_words(verbs_link *l)
{
    uint64_t seen[WORDS];
    if (atomic_load_explicit(&l->in->words[WORD_CHECK], memory_order_relaxed) ==
        l->peer.words[WORD_CHECK])
        return;
    for (int i = 0; i < WORDS; i++)
        seen[i] = atomic_load_explicit(&l->in->words[i], memory_order_acquire);
    if (seen[WORD_CHECK] != check_of_words(seen))
        return;
    for (int i = 0; i < WORD_CHECK; i++)
        if (seen[i] > l->peer.words[i])
            l->peer.words[i] = seen[i];
    l->peer.words[WORD_CHECK] = seen[WORD_CHECK];
}

uint32_t verbs_sleeper(verbs_link *l, bool is_room)
{
    const uint64_t asleep = l->peer.words[WORD_ASLEEP];
    if (asleep == l->sleep.roused || (is_room && asleep % 2 == 0))
        return 0;
    l->sleep.roused = asleep;
    return l->peer.handle[l->rail.active];
}

/* @return true if the request that wrote the latest words is complete. */
static bool words_are_over(verbs_link *l, const queue_pair *q)
{
    l->recv.words_over |= queue_pair_is_done(q, l->recv.words_sent);
    return l->recv.words_over;
}

/* @return true if the words can be written now. They are normally copied into the request (inline).
 * If the adapter cannot do that, the copy in the outbox must not change until the request is
 * complete, so only one such request is in flight at a time. */
static bool may_write_words(verbs_link *l, queue_pair *q)
{
    if (q->inlined < sizeof l->recv.words && !words_are_over(l, q)) {
        completions_poll(q->port->device);
        if (!words_are_over(l, q))
            return false;
    }
    return queue_pair_has_room(q, 1);
}

static void post_words(verbs_link *l, queue_pair *q, bool signals)
{
    const bool inlined = q->inlined >= sizeof l->recv.words;
    l->recv.words[WORD_CHECK] = check_of_words(l->recv.words);
    if (!inlined)
        memcpy(l->out->words, l->recv.words, sizeof l->recv.words);
    queue_request r = {.opcode = IBV_WR_RDMA_WRITE,
                       .local = inlined ? l->recv.words : l->out->words,
                       .local_key = l->rail.out_mr[l->rail.active]->lkey,
                       .bytes = sizeof l->recv.words,
                       .remote = l->peer.inbox + offsetof(verbs_inbox, words),
                       .remote_key = l->peer.key[l->rail.active],
                       .inlined = inlined,
                       .signals = signals || !inlined,
                       .wakes = verbs_sleeper(l, true)};
    if (r.wakes != 0)
        r.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    l->recv.words_due = !queue_pair_post(q, &r);
    if (l->recv.words_due) {
        l->sleep.roused = 0; /* the wake-up was not sent */
        return;
    }
    l->recv.words_sent = q->posted;
    l->recv.words_over = false;
}

void verbs_announce(verbs_link *l)
{
    queue_pair *q = &l->rail.queue[l->rail.active];
    if (l->state != RING_OK)
        return;
    l->recv.announced_taken = l->recv.words[WORD_TAKEN];
    l->recv.announced_bytes = l->recv.bytes_taken;
    l->recv.words_due = true;
    if (may_write_words(l, q))
        post_words(l, q, false);
}

bool verbs_words_arrived(verbs_link *l)
{
    queue_pair *q = &l->rail.queue[l->rail.active];
    if (l->state != RING_OK)
        return true;
    if (l->recv.words_due || l->recv.announced_taken != l->recv.words[WORD_TAKEN])
        verbs_announce(l);
    completions_poll(q->port->device);
    if (l->recv.words_due)
        return false;
    if (!words_are_over(l, q) && q->unsignalled > 0 && may_write_words(l, q))
        post_words(l, q, true); /* the previous request did not ask for a completion */
    return words_are_over(l, q);
}
