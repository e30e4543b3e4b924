/* SPDX-License-Identifier: Apache-2.0
 *
 * cipher: transfers the stream of a tcp link as encrypted and authenticated records; it replaces
 * sendmsg() and readv(). A record is
 *
 *     length (4) | tag of the length (16) | ciphertext (length) | tag of the ciphertext (16)
 *
 * The length is not encrypted, but it is authenticated, so that a changed one is never used. Each
 * direction has its own key, and its nonces count the seals: a record that is changed, dropped,
 * duplicated or reordered does not open.
 */
#ifndef RING_TCP_CIPHER_H
#define RING_TCP_CIPHER_H

#include "transport.h"

#include <sys/uio.h>

typedef struct tcp_cipher tcp_cipher;

/** @return NULL if there is no memory. */
tcp_cipher *tcp_cipher_new(const transport_keys *keys);
/** Wipes the keys and frees @p c. NULL is allowed. */
void tcp_cipher_free(tcp_cipher *c);

/** Seals a prefix of @p parts and passes it to the kernel.
 *  @return the number of bytes of @p parts, from the first on, that the kernel has completely; -1:
 *          errno. After EAGAIN the next call must begin with the same bytes, because some of them
 *          are already sealed. */
ssize_t tcp_cipher_send(tcp_cipher *c, int fd, const struct iovec *parts, size_t count);
/** Fills @p parts.
 *  @return the number of bytes; 0: the peer has closed the connection; -1: errno, EBADMSG if a
 *          record does not open. */
ssize_t tcp_cipher_receive(tcp_cipher *c, int fd, const struct iovec *parts, size_t count);
/** @return true if tcp_cipher_receive() can return bytes without a system call. */
bool tcp_cipher_holds(const tcp_cipher *c);
/** @return true if part of a record has been received. */
bool tcp_cipher_is_amid(const tcp_cipher *c);
size_t tcp_cipher_memory(void);

#endif
