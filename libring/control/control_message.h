/* SPDX-License-Identifier: Apache-2.0
 * control message: all messages on the channel after the handshake. One size, plain data. */
#ifndef RING_CONTROL_MESSAGE_H
#define RING_CONTROL_MESSAGE_H

#include "control.h"

enum control_kind {
    CONTROL_CARD = 1, /* to rank 0: the joining rank, and how long it will wait */
    CONTROL_TERMS,    /* down: settings that all must agree on; the cards follow */
    CONTROL_CARDS,    /* down: `count` cards from that of `rank` on                 */
    CONTROL_SEATED,   /* to rank 0: all cards are here, the tree takes over */
    CONTROL_READY,    /* up: this rank and all below it are at barrier `count` */
    CONTROL_GO,       /* down: all are at barrier `count`                           */
    CONTROL_PROPOSAL, /* up: a reason to end a communicator, for the top to decide */
    CONTROL_VERDICT,  /* to all: how a communicator ended */
    CONTROL_BEAT,
    CONTROL_STATEMENT, /* to all: the `count`-th statement of `rank` about a call */
    CONTROL_LOST,      /* to all: `rank` ended or is silent, by `count` (enum loss) */
    CONTROL_VOTE,      /* to all: `rank` goes on, in round `count`; 0: it does not */
    CONTROL_DECISION,  /* to all: the ranks that go on, by round `count` */
    CONTROL_LEFT,      /* to all: `count` ranks that have left */
    CONTROL_GOODBYE,   /* from a rank that leaves */
    CONTROL_MOVED,     /* to it, from a rank below it that needs it no more */
    CONTROL_PRESENT,   /* to all: `rank` has come to round `count` of a roll */
    CONTROL_ROLL,      /* to all: the ranks that had come to round `count` of a roll */
    CONTROL_KINDS
};

enum {
    CONTROL_CARDS_MOST = 2,
    CONTROL_LEFT_MOST = 122,
    CONTROL_SHRINK_MOST = 8 * (CONTROL_TEXT - 8)
};
enum { CONTROL_ROLL_TEXT = CONTROL_TEXT - 32, CONTROL_ROLL_MOST = 8 * CONTROL_ROLL_TEXT };
enum loss { LOSS_NONE, LOSS_SILENT, LOSS_ENDED };

typedef struct control_message {
    uint64_t communicator; /* its id                                     */
    uint32_t kind;
    int32_t rank;   /* the rank that it is about, or its sender */
    int32_t status; /* of a proposal or a verdict                              */
    int32_t count;
    union {
        struct {
            double remaining; /* s, until the sender's start is over */
            double timeout, peer_timeout;
            int32_t channels, checksum, encrypt;
            char algo[32];
            int32_t reproducible;
        } terms;
        struct {
            double remaining;
            control_card card;
        } join;
        control_card cards[CONTROL_CARDS_MOST];
        int32_t ranks[CONTROL_LEFT_MOST];
        control_statement statement;
        double remaining; /* s, until the deadline of a vote */
        struct {
            uint64_t id;                                    /* of the new communicator */
            unsigned char members[CONTROL_SHRINK_MOST / 8]; /* bits: ranks of the old one */
        } decision; /* if its status is RING_OK; else a text */
        struct {
            uint64_t key;        /* of the roll, among those of the communicator            */
            uint64_t id;         /* at its end: for the communicator that its ranks may make */
            double remaining;    /* s, until the deadline of one that came                 */
            int32_t wanted, tag; /* ranks in all                                           */
            union {
                unsigned char came[CONTROL_ROLL_TEXT]; /* bits: ranks of the membership    */
                char text[CONTROL_ROLL_TEXT];          /* if its status is an error        */
            };
        } roll;
        char text[CONTROL_TEXT];
    } body;
} control_message;

_Static_assert(sizeof(control_message) == 512, "messages have one size");

enum { CONTROL_KEY = 32, CONTROL_MAC = 16 };

/** A message on the wire. The MAC is by the key of its connection and direction and counts
 *  messages, so none can be changed, left out, repeated or come from elsewhere. */
typedef struct control_sealed {
    control_message message;
    unsigned char mac[CONTROL_MAC];
} control_sealed;

/** Sets of ranks in messages. */
static inline bool control_has_bit(const unsigned char *bits, int rank)
{
    return bits[rank / 8] >> rank % 8 & 1;
}

static inline void control_set_bit(unsigned char *bits, int rank)
{
    bits[rank / 8] |= (unsigned char)(1u << rank % 8);
}

/** Completes the message, number @p number from 0 of its direction. */
void control_message_seal(control_sealed *s, const unsigned char key[CONTROL_KEY], uint64_t number);
bool control_message_is_genuine(const control_sealed *s, const unsigned char key[CONTROL_KEY],
                                uint64_t number);

/** Checks a received message, and makes its texts fit to be shown; an unknown status becomes
 *  RING_ERR_INTERNAL, an empty text the status' own.
 *  @return false if it makes no sense in a world of @p size ranks. */
bool control_message_check(control_message *m, int size);
/** Clears @p m, and sets kind and rank. */
void control_message_begin(control_message *m, enum control_kind kind, int rank);
/** A proposal or verdict. */
void control_message_reason(control_message *m, enum control_kind kind, int rank,
                            ring_status status, const char *text);

#endif
