/* SPDX-License-Identifier: Apache-2.0
 * The words of both ends: how far each is. */
#include "verbs_words.h"

static uint64_t check_of_words(const uint64_t words[WORDS])
{
    uint64_t x = 0x9e3779b97f4a7c15u;
    for (int i = 0; i < WORD_CHECK; i++)
        x = (x ^ words[i]) * 0xff51afd7ed558ccdu, x ^= x >> 32;
    return x;
}

/* They only grow, and half of what is being written fails the check: then the ones before hold. */
void verbs_look_at_words(verbs_link *l)
{
    uint64_t seen[WORDS];
    if (atomic_load_explicit(&l->in->words[WORD_CHECK], memory_order_relaxed) ==
        l->heard_words[WORD_CHECK])
        return;
    for (int i = 0; i < WORDS; i++)
        seen[i] = atomic_load_explicit(&l->in->words[i], memory_order_acquire);
    if (seen[WORD_CHECK] != check_of_words(seen))
        return;
    for (int i = 0; i < WORD_CHECK; i++)
        if (seen[i] > l->heard_words[i])
            l->heard_words[i] = seen[i];
    l->heard_words[WORD_CHECK] = seen[WORD_CHECK];
}

/* Its handle, if the peer sleeps and nobody has woken it since; for whom room is no news, only if
 * it waits for room. */
uint32_t verbs_sleeper(verbs_link *l, bool is_room)
{
    const uint64_t asleep = l->heard_words[WORD_ASLEEP];
    if (asleep == l->roused || (is_room && asleep % 2 == 0))
        return 0;
    l->roused = asleep;
    return l->peer_handle[l->active];
}

static bool words_are_over(verbs_link *l, const queue_pair *q)
{
    l->words_over |= queue_pair_is_done(q, l->words_sent);
    return l->words_over;
}

/* Words are short, so that a copy of them goes with the request, or they would have to stay as they
 * are until it is over: where requests carry nothing, one is under way at a time. */
static bool may_tell(verbs_link *l, queue_pair *q)
{
    if (q->inlined < sizeof l->words && !words_are_over(l, q)) {
        completions_poll(q->port->device);
        if (!words_are_over(l, q))
            return false;
    }
    return queue_pair_has_room(q, 1);
}

static void post_words(verbs_link *l, queue_pair *q, bool signals)
{
    const bool inlined = q->inlined >= sizeof l->words;
    l->words[WORD_CHECK] = check_of_words(l->words);
    if (!inlined)
        memcpy(l->out->words, l->words, sizeof l->words);
    queue_request r = {.opcode = IBV_WR_RDMA_WRITE,
                       .local = inlined ? l->words : l->out->words,
                       .local_key = l->out_mr[l->active]->lkey,
                       .bytes = sizeof l->words,
                       .remote = l->peer_inbox + offsetof(verbs_inbox, words),
                       .remote_key = l->peer_key[l->active],
                       .inlined = inlined,
                       .signals = signals || !inlined,
                       .wakes = verbs_sleeper(l, true)};
    if (r.wakes != 0)
        r.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    l->words_due = !queue_pair_post(q, &r);
    if (l->words_due) {
        l->roused = 0; /* nobody was woken */
        return;
    }
    l->words_sent = q->posted;
    l->words_over = false;
}

void verbs_announce(verbs_link *l)
{
    queue_pair *q = &l->queue[l->active];
    if (l->state != RING_OK)
        return;
    l->announced_taken = l->words[WORD_TAKEN];
    l->announced_bytes = l->bytes_taken;
    l->words_due = true;
    if (may_tell(l, q))
        post_words(l, q, false);
}

bool verbs_words_arrived(verbs_link *l)
{
    queue_pair *q = &l->queue[l->active];
    if (l->state != RING_OK)
        return true;
    if (l->words_due || l->announced_taken != l->words[WORD_TAKEN])
        verbs_announce(l);
    completions_poll(q->port->device);
    if (l->words_due)
        return false;
    if (!words_are_over(l, q) && q->unsignalled > 0 && may_tell(l, q))
        post_words(l, q, true); /* nothing would tell of the end of those before */
    return words_are_over(l, q);
}
