/* SPDX-License-Identifier: Apache-2.0
 *
 * cipher: the stream of a tcp link as encrypted and authenticated records, in place of sendmsg()
 * and readv(). A record is
 *
 *     length (4) | tag of the length (16) | ciphertext (length) | tag of the ciphertext (16)
 *
 * The length is readable and authenticated, so that a changed one is never used. The nonces count
 * records, one count a direction under a key of its own: a record that is changed, dropped, doubled
 * or moved does not open.
 */
#ifndef RING_TCP_CIPHER_H
#define RING_TCP_CIPHER_H

#include "transport.h"

#include <sys/uio.h>

typedef struct tcp_cipher tcp_cipher;

/** @return NULL without memory. */
tcp_cipher *tcp_cipher_new(const transport_keys *keys);
/** Wipes the keys. NULL is fine. */
void tcp_cipher_free(tcp_cipher *c);

/** Seals a part of @p parts, and hands it to the kernel.
 *  @return bytes of @p parts, from the first on, of which the kernel has all; -1: errno. After
 *          EAGAIN the next call begins with the same bytes: some of them are sealed already. */
ssize_t tcp_cipher_send(tcp_cipher *c, int fd, const struct iovec *parts, size_t count);
/** Fills @p parts.
 *  @return bytes; 0: the peer has closed the connection; -1: errno, EBADMSG if a record does not
 *          open. */
ssize_t tcp_cipher_receive(tcp_cipher *c, int fd, const struct iovec *parts, size_t count);
/** @return true if tcp_cipher_receive() has bytes without a system call. */
bool tcp_cipher_holds(const tcp_cipher *c);
/** @return true if a part of a record is here. */
bool tcp_cipher_is_amid(const tcp_cipher *c);
size_t tcp_cipher_memory(void);

#endif
