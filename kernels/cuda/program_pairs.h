/* SPDX-License-Identifier: Apache-2.0
 *
 * program_pairs: runs sends and receives that start together, and copies within the rank.
 *
 * The messages to a peer form a track, and so do those from it. In each round, a block advances
 * each track by one frame if that frame can be sent or has arrived, so messages of different tracks
 * may be listed in any order. Each track has a thread that polls it and notifies the peer; all
 * threads copy the bytes of all tracks. A message is read in the sender's memory by the receiver,
 * or carried in the receiver's box if the ranks are in different processes.
 *
 * Messages do not take numbers of collectives, because only two ranks know of them. Their frames
 * have the number of bytes instead, and on each link they are matched in order.
 */
#ifndef RING_CUDA_PROGRAM_PAIRS_H
#define RING_CUDA_PROGRAM_PAIRS_H

#include "copy_range.h"
#include "program_link.h"

/** The most bytes that a track copies in a round if they are not carried. Other tracks wait. */
enum { PAIR_STEP_BYTES = 256 << 10 };

enum track_state {
    TRACK_GOES_ON,
    TRACK_DRAINS, /* waits until the peer has released all messages */
    TRACK_OVER,
    TRACK_DIFFERS /* the peer's frame is of another message or call */
};

struct pair_track {
    device_pair pair; /* the current message */
    device_link *link;
    uint32_t next, end;   /* the messages that follow */
    uint64_t bytes, done; /* of the message in this lane */
    char *to;             /* in the current round: copies */
    const char *from;
    uint64_t step;
    bool moves; /* a frame is sent or taken in the current round */
    track_state state;
};

/** The block's tracks, in shared memory. Between the barriers before and after the copies of a
 *  round all threads read them; at other times each track belongs to one thread. */
struct pairs_run {
    lane_run run;
    uint32_t tracks, polls;
    bool fails; /* reported by lane_end() */
    pair_track of[DEVICE_TRACKS];
};

/* ---- A track --------------------------------------------------------------------------- */

DEVICE uint64_t lower(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Goes to the next message that has bytes in this lane. A message is divided into one range of
 * bytes for each of its lanes, which begin at multiples of 16. */
DEVICE void next_pair(pair_track *t, const device_pair *pairs, const lane_run *r)
{
    while (t->next < t->end && pairs[t->next].lanes <= r->lane)
        t->next++;
    if (t->next == t->end) {
        t->state = t->link != NULL && t->pair.kind == OP_SEND ? TRACK_DRAINS : TRACK_OVER;
        return;
    }
    t->pair = pairs[t->next++];
    const device_pair *m = &t->pair;
    const uint64_t share = (m->bytes / m->lanes + 16) / 16 * 16;
    const uint64_t first = lower(r->lane * share, m->bytes);
    t->state = TRACK_GOES_ON;
    t->link = &r->links[m->peer];
    t->bytes = lower(share, m->bytes - first);
    t->done = 0;
    t->pair.at += first;
    if (m->kind == OP_COPY)
        t->pair.from += first;
}

DEVICE frame_label label_of(const device_pair *m)
{
    return {DEVICE_PAIR_CALL(m->bytes), m->signature, 0};
}

/* A borrowed message has one frame, which refers to it. */
DEVICE void prepare_pair_send(pair_track *t)
{
    const device_link *l = t->link;
    const uint64_t taken = load_acquire(&l->receipt->taken);
    if (l->frames_out - taken >= l->frames)
        return;
    t->step = t->bytes - t->done;
    t->moves = true;
    if (l->apart == DEVICE_NEAR)
        return;
    t->step = lower(t->step, DEVICE_SEGMENT_BYTES(l->window));
    t->from = t->pair.at + t->done;
    t->to = link_room(l, t->step, taken);
    t->moves = t->to != NULL;
}

DEVICE void prepare_pair_recv(pair_track *t)
{
    const device_link *l = t->link;
    const device_frame *f = lane_frame(l);
    const frame_label mine = label_of(&t->pair);
    if (load_acquire(&f->stamp) < l->frames_in + 1)
        return;
    const bool referred = f->way == DEVICE_REFERRED;
    if (f->call != mine.call || f->signature != mine.signature ||
        (!referred && f->bytes > t->bytes - t->done)) {
        t->state = TRACK_DIFFERS;
        return;
    }
    t->moves = true;
    t->step = referred ? lower(t->bytes - t->done, PAIR_STEP_BYTES) : f->bytes;
    t->from = lane_payload(l, f) + (referred ? t->done : 0);
    t->to = t->pair.at + t->done;
}

/* Finds out whether the track can go on, and sets the bytes to copy. */
DEVICE void prepare_track(pair_track *t)
{
    t->moves = false;
    t->to = NULL;
    if (t->state == TRACK_DRAINS &&
        load_acquire(&t->link->receipt->released) >= t->link->messages_out)
        t->state = TRACK_OVER;
    if (t->state != TRACK_GOES_ON)
        return;
    if (t->pair.kind == OP_SEND) {
        prepare_pair_send(t);
    } else if (t->pair.kind == OP_RECV) {
        prepare_pair_recv(t);
    } else {
        t->moves = true;
        t->step = lower(t->bytes - t->done, PAIR_STEP_BYTES);
        t->from = t->pair.from + t->done;
        t->to = t->pair.at + t->done;
    }
}

/* Tells the peer what has been copied. */
DEVICE void finish_track(pair_track *t, const device_pair *pairs, const lane_run *r)
{
    if (!t->moves)
        return;
    t->done += t->step;
    const bool last = t->done == t->bytes;
    if (t->pair.kind == OP_SEND) {
        const bool carried = t->to != NULL;
        link_send(t->link, label_of(&t->pair), carried ? DEVICE_CARRIED : DEVICE_REFERRED,
                  carried ? t->to : t->pair.at, t->step, last);
    } else if (t->pair.kind == OP_RECV) {
        if (last || lane_frame(t->link)->way == DEVICE_CARRIED)
            lane_take(t->link, last);
    }
    if (last)
        next_pair(t, pairs, r);
}

/* ---- All tracks --------------------------------------------------------------------------- */

/** The state of all tracks in a round, which each thread reads. */
struct pairs_round {
    bool ends, moves;
    const pair_track *waits, *differs; /* the first one that is not over, or differs; or NULL */
};

DEVICE pairs_round look_at_tracks(const pairs_run *p)
{
    pairs_round round = {p->fails, false, NULL, NULL};
    for (uint32_t i = p->tracks; i-- > 0;) {
        const pair_track *t = &p->of[i];
        round.moves = round.moves || t->moves;
        round.waits = t->state != TRACK_OVER ? t : round.waits;
        round.differs = t->state == TRACK_DIFFERS ? t : round.differs;
    }
    round.ends = round.ends || round.differs != NULL || round.waits == NULL;
    return round;
}

DEVICE void begin_tracks(pairs_run *p, const pairs_args *args, const device_pair *pairs,
                         uint32_t lane)
{
    if (thread_index() == 0) {
        p->fails = !lane_begin(&p->run, &args->call, lane);
        p->run.number = DEVICE_PAIR_CALL(0);
        p->tracks = args->tracks;
        p->polls = 0;
    }
    block_barrier();
    for (uint32_t i = thread_index(); i < p->tracks; i += thread_count()) {
        pair_track *t = &p->of[i];
        t->next = args->first[i];
        t->end = args->first[i + 1];
        t->link = NULL;
        next_pair(t, pairs, &p->run);
    }
}

/** Runs one lane of all pairs. All threads of the block call it. */
DEVICE void run_pairs(pairs_run *p, const pairs_args *args, uint32_t lane)
{
    const device_pair *pairs = args->pairs != NULL ? args->pairs : args->few;
    const bool leads = thread_index() == 0;
    begin_tracks(p, args, pairs, lane);
    for (;;) {
        for (uint32_t i = thread_index(); i < p->tracks; i += thread_count())
            prepare_track(&p->of[i]);
        block_barrier();
        const pairs_round round = look_at_tracks(p);
        if (round.ends) {
            if (leads && !p->fails && round.differs != NULL) {
                const device_frame *f = lane_frame(round.differs->link);
                lane_end(&p->run, RING_ERR_MISMATCH, round.differs->pair.peer,
                         {f->call, f->signature});
            }
            break;
        }
        NO_UNROLL
        for (uint32_t i = 0; i < p->tracks; i++)
            if (p->of[i].moves && p->of[i].to != NULL)
                copy_range(p->of[i].to, p->of[i].from, p->of[i].step);
        block_barrier();
        for (uint32_t i = thread_index(); i < p->tracks; i += thread_count())
            finish_track(&p->of[i], pairs, &p->run);
        if (leads && !round.moves) {
            if (++p->polls % POLLS_PER_CHECK == 0)
                p->fails = !may_wait(&p->run, round.waits->pair.peer,
                                     round.waits->pair.kind == OP_RECV ? AWAITED_FRAME
                                                                       : AWAITED_RECEIPT);
            device_pause();
        }
    }
    if (leads)
        count_end(&args->call, args->lanes);
}

#endif
