/* SPDX-License-Identifier: Apache-2.0
 *
 * cipher: transfers the stream of a tcp link as encrypted and authenticated records; it replaces
 * sendmsg() and readv(). A record is
 *
 *     length (4) | tag of the length (16) | ciphertext (length) | tag of the ciphertext (16)
 *
 * where the numbers are bytes. The length is not encrypted, but it is authenticated, so that a
 * changed length is never used. Each direction has its own key, and each seal uses the next nonce
 * of a counter, so a record that was changed, dropped, duplicated or reordered fails to open.
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

/** Seals the first bytes of @p parts, as many as fit into its buffer, and passes them to the
 *  kernel.
 *  @return the number of plaintext bytes that were sent; -1 with errno. After EAGAIN the next call
 *          must begin with the same bytes, because some of them are already sealed. */
ssize_t tcp_cipher_send(tcp_cipher *c, int fd, const struct iovec *parts, size_t count);
/** Receives decrypted bytes into @p parts, in order.
 *  @return the number of bytes; 0: the peer has closed the connection; -1 with errno, which is
 *          EBADMSG if a record fails to open. */
ssize_t tcp_cipher_receive(tcp_cipher *c, int fd, const struct iovec *parts, size_t count);
/** @return true if tcp_cipher_receive() can return bytes without a system call. */
bool tcp_cipher_holds(const tcp_cipher *c);
/** @return true if an incomplete record has been received, so that an end of file would cut it. */
bool tcp_cipher_is_amid(const tcp_cipher *c);
/** @return the bytes of a tcp_cipher. */
size_t tcp_cipher_memory(void);

#endif
