/* SPDX-License-Identifier: Apache-2.0
 *
 * nic: simulates a network adapter with a thread of this process. It only moves bytes between
 * memory that was registered with it, and in its own time: transfers are executed in any order, and
 * completed later, in any other. A wrong key, or an address outside its memory, breaks the port, as
 * it breaks a queue pair.
 */
#ifndef TEST_DOUBLES_NIC_H
#define TEST_DOUBLES_NIC_H

#include "ticket.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One end of a connection. */
typedef struct nic_port nic_port;

/** @param event  called, with the adapter's lock held, whenever bytes have arrived at the port or a
 *                transfer is complete. @return NULL if there is no memory. */
nic_port *nic_port_new(void (*event)(void *context), void *context);
uint64_t nic_port_number(const nic_port *port);
/** Connects a port: transfers are executed only between two ports that name each other. */
void nic_port_connect(nic_port *port, uint64_t peer);
/** Stops a port. When this returns, no transfer of the port or its peer is executed, and none of
 * its tickets is used. */
void nic_port_stop(nic_port *port);
void nic_port_free(nic_port *port);
/** @return the number of complete NIC_GET transfers of the port. */
uint64_t nic_port_gets(const nic_port *port);
/** @return true if a transfer of the port is not complete. */
bool nic_port_is_busy(const nic_port *port);
/** @return true if the adapter has refused a transfer of the port. */
bool nic_port_failed(const nic_port *port);

/** Registers memory. @return the key, never 0. @param owner  only its peer may use the key; NULL:
 *  any connected port may. */
uint64_t nic_register(void *base, size_t bytes, nic_port *owner);
/** Ends a registration. When this returns, the key is invalid and no transfer uses the memory. */
void nic_deregister(uint64_t key);

typedef struct nic_place {
    uint64_t key;
    size_t offset;
} nic_place;

enum { NIC_NOTICE_BYTES = 64, NIC_WORDS = 2 };

typedef struct nic_transfer {
    enum { NIC_PUT, NIC_GET, NIC_PUT_WORDS } kind;
    void *local;
    nic_place remote;
    size_t bytes;
    nic_place notice_at; /* NIC_PUT: written after all bytes, its first word last */
    unsigned char notice[NIC_NOTICE_BYTES];
    _Atomic bool *taken; /* NIC_PUT_WORDS: set to false before the words are read */
    ticket *over;        /* closed at the end, unless NULL */
} nic_transfer;

/** Copies the transfer. A failed port closes its ticket at once. */
void nic_post(nic_port *port, const nic_transfer *transfer);
/** Returns when all transfers that any thread has posted so far are complete. */
void nic_settle(void);
/** Delays the execution and the completion of all transfers from now on. */
__attribute__((visibility("default"))) void nic_delay(double seconds);

#endif
