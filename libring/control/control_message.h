/* SPDX-License-Identifier: Apache-2.0
 *
 * control message: defines the messages on the control channel, which follow the handshake. They
 * are plain data of one size, so a connection needs no framing; docs/wire-protocol.md has their
 * layout.
 */
#ifndef RING_CONTROL_MESSAGE_H
#define RING_CONTROL_MESSAGE_H

#include "control.h"

/** The kinds of messages. "Down" and "up" are directions in the tree, whose top is rank 0. Messages
 *  "to all" are notes, see bulletin.h. */
enum control_kind {
    CONTROL_CARD = 1,  /* to rank 0: the joining rank's card, and the time that it will wait */
    CONTROL_TERMS,     /* down: settings that must be equal on all ranks; the cards follow */
    CONTROL_CARDS,     /* down: `count` cards, beginning with the one of `rank` */
    CONTROL_SEATED,    /* to rank 0: the sender has all cards, and uses only the tree after this */
    CONTROL_READY,     /* up: the sender and all ranks below it have reached barrier `count` */
    CONTROL_GO,        /* down: all ranks have reached barrier `count` */
    CONTROL_PROPOSAL,  /* up: a reason to end a communicator, which the top decides on */
    CONTROL_VERDICT,   /* to all: how a communicator ended */
    CONTROL_BEAT,      /* to a neighbour: the sender is alive */
    CONTROL_STATEMENT, /* to all: the `count`-th statement of `rank` about a call */
    CONTROL_LOST,      /* to all: `rank` has ended or is silent; `count` is the enum loss */
    CONTROL_VOTE,      /* to all: `rank` votes to continue in round `count`; 0: it resigns */
    CONTROL_DECISION,  /* to all: the ranks that continue, decided in round `count` */
    CONTROL_LEFT,      /* to all: `count` ranks that have left */
    CONTROL_GOODBYE,   /* from a leaving rank to its neighbours */
    CONTROL_MOVED,     /* to a leaving rank, from a rank below it that no longer needs it */
    CONTROL_PRESENT,   /* to all: `rank` has arrived at round `count` of a roll */
    CONTROL_ROLL,      /* to all: the ranks that had arrived when round `count` was closed */
    CONTROL_KINDS
};

enum {
    CONTROL_CARDS_MOST = 2,
    CONTROL_LEFT_MOST = 122,
    CONTROL_SHRINK_MOST = 8 * (CONTROL_TEXT - 8)
};
enum { CONTROL_ROLL_TEXT = CONTROL_TEXT - 32, CONTROL_ROLL_MOST = 8 * CONTROL_ROLL_TEXT };
/** The ways in which a rank can be lost: it does not answer, but may be alive; or it has ended. */
enum loss { LOSS_NONE, LOSS_SILENT, LOSS_ENDED };

typedef struct control_message {
    uint64_t communicator; /* the id of the communicator that the message is about */
    uint32_t kind;         /* an enum control_kind */
    int32_t rank;          /* the rank that the message is about, or its sender */
    int32_t status;        /* a ring_status, for kinds that report an error or a decision */
    int32_t count;         /* see enum control_kind */
    union {
        struct {
            double remaining; /* s, until the deadline of the sender's start */
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
        } decision; /* if the status is RING_OK; otherwise there is a text */
        struct {
            uint64_t key;        /* identifies the roll within its communicator */
            uint64_t id;         /* of a closed round: an id for a communicator of its ranks */
            double remaining;    /* s, until the deadline of the arriving rank */
            int32_t wanted, tag; /* the number of ranks of the roll, and the caller's tag */
            union {
                unsigned char came[CONTROL_ROLL_TEXT]; /* bits: ranks of the membership */
                char text[CONTROL_ROLL_TEXT];          /* if the status is an error */
            };
        } roll;
        char text[CONTROL_TEXT];
    } body;
} control_message;

_Static_assert(sizeof(control_message) == 512, "the size of messages is part of the protocol");

enum { CONTROL_KEY = 32, CONTROL_MAC = 16 };

/** A message on the wire. Its MAC is computed with the connection's key for the direction, and
 * covers the number of the message, so that altered, dropped, repeated and injected messages are
 *  detected. */
typedef struct control_sealed {
    control_message message;
    unsigned char mac[CONTROL_MAC];
} control_sealed;

/** Read and change a set of ranks in a message: bit r % 8 of byte r / 8 is rank r. */
static inline bool control_has_bit(const unsigned char *bits, int rank)
{
    return bits[rank / 8] >> rank % 8 & 1;
}

static inline void control_set_bit(unsigned char *bits, int rank)
{
    bits[rank / 8] |= (unsigned char)(1u << rank % 8);
}

/** Computes the MAC of a message. @param number  of the earlier messages in this direction. */
void control_message_seal(control_sealed *s, const unsigned char key[CONTROL_KEY], uint64_t number);
/** @return true if the MAC fits the message, the key and the number. */
bool control_message_is_genuine(const control_sealed *s, const unsigned char key[CONTROL_KEY],
                                uint64_t number);

/** Checks a received message and makes its texts printable. Where the status must be an error, it
 *  replaces any other value by RING_ERR_INTERNAL, and an empty text by the status's name.
 *  @return false if a field is invalid in a membership of @p size ranks. */
bool control_message_check(control_message *m, int size);
/** Clears @p m, and sets kind and rank. */
void control_message_begin(control_message *m, enum control_kind kind, int rank);
/** Makes @p m a message with a status and its reason; a text that is too long is truncated. */
void control_message_reason(control_message *m, enum control_kind kind, int rank,
                            ring_status status, const char *text);

#endif
