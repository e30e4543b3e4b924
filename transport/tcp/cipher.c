/* SPDX-License-Identifier: Apache-2.0
 * Encrypts (seals) and decrypts (opens) the records of a connection. One sendmsg() or recv() passes
 * several records. Records are sealed and opened in place, so bytes are copied once on each
 * side. */
#include "cipher.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    LENGTH = sizeof(uint32_t),
    TAG = crypto_aead_aes256gcm_ABYTES,
    NONCE = crypto_aead_aes256gcm_NPUBBYTES,
    HEAD = LENGTH + TAG,
    /* Plaintext bytes of the largest record. Several records carry a long frame, so that the reader
     * opens one while the next ones are in flight. */
    PLAIN_MOST = 16384,
    RECORD_MOST = HEAD + PLAIN_MOST + TAG,
    ROOM = 5 * RECORD_MOST /* room for a header, a whole segment and the start of the next frame */
};

_Static_assert((int)crypto_aead_chacha20poly1305_ietf_ABYTES == (int)TAG &&
                   (int)crypto_aead_chacha20poly1305_ietf_NPUBBYTES == (int)NONCE,
               "both ciphers have tags of one size, and nonces of one size");

/** Key and nonce counter of one direction. */
typedef struct sealer {
    crypto_aead_aes256gcm_state aes; /* its type requires an alignment of 16 bytes */
    unsigned char key[TRANSPORT_KEY];
    transport_cipher cipher;
    uint64_t nonces; /* number of nonces used so far */
} sealer;

struct tcp_cipher {
    sealer out, in;
    unsigned char sealed[ROOM];      /* sealed records                                     */
    size_t sealed_first, sealed_end; /* sealed[sealed_first, sealed_end): not sent yet     */
    size_t sealed_plain;             /* plaintext bytes in `sealed`; they count as sent when the
                                        kernel has accepted all the records */
    unsigned char received[ROOM];    /* received bytes of the stream                       */
    size_t first, end;               /* received[first, end): not opened yet               */
    size_t length;                   /* plaintext bytes of the next record; 0: its length has
                                        not been opened yet */
    size_t plain, plain_end; /* received[plain, plain_end): opened, and not yet copied to the
                                caller. It ends before `first` */
};

/* ---- Sealing and unsealing --------------------------------------------------------- */

static void set_key(sealer *s, transport_cipher cipher, const unsigned char *key)
{
    s->cipher = cipher;
    memcpy(s->key, key, sizeof s->key);
    if (cipher == TRANSPORT_AES256GCM)
        crypto_aead_aes256gcm_beforenm(&s->aes, key);
}

static void next_nonce(sealer *s, unsigned char nonce[NONCE])
{
    memset(nonce, 0, NONCE);
    memcpy(nonce, &s->nonces, sizeof s->nonces);
    s->nonces++;
}

/* Encrypts in place. @param known  bytes that stay in plaintext, and that the tag also
 *  authenticates. */
static void seal(sealer *s, unsigned char *at, size_t bytes, const unsigned char *known,
                 size_t known_bytes, unsigned char tag[TAG])
{
    unsigned char nonce[NONCE];
    next_nonce(s, nonce);
    if (s->cipher == TRANSPORT_AES256GCM)
        crypto_aead_aes256gcm_encrypt_detached_afternm(at, tag, NULL, at, bytes, known, known_bytes,
                                                       NULL, nonce, &s->aes);
    else
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(at, tag, NULL, at, bytes, known,
                                                           known_bytes, NULL, nonce, s->key);
}

/* Decrypts in place. @return false if the bytes are not those that the peer sealed. */
static bool unseal(sealer *s, unsigned char *at, size_t bytes, const unsigned char *known,
                   size_t known_bytes, const unsigned char tag[TAG])
{
    unsigned char nonce[NONCE];
    next_nonce(s, nonce);
    if (s->cipher == TRANSPORT_AES256GCM)
        return crypto_aead_aes256gcm_decrypt_detached_afternm(at, NULL, at, bytes, tag, known,
                                                              known_bytes, nonce, &s->aes) == 0;
    return crypto_aead_chacha20poly1305_ietf_decrypt_detached(at, NULL, at, bytes, tag, known,
                                                              known_bytes, nonce, s->key) == 0;
}

/* ---- Creating and freeing ---------------------------------------------------------- */

tcp_cipher *tcp_cipher_new(const transport_keys *keys)
{
    tcp_cipher *c = NULL;
    if (posix_memalign((void **)&c, _Alignof(tcp_cipher), sizeof *c) != 0)
        return NULL;
    memset(c, 0, offsetof(tcp_cipher, sealed));
    c->sealed_first = c->sealed_end = c->sealed_plain = 0;
    c->first = c->end = c->length = c->plain = c->plain_end = 0;
    set_key(&c->out, keys->cipher, keys->out);
    set_key(&c->in, keys->cipher, keys->in);
    return c;
}

void tcp_cipher_free(tcp_cipher *c)
{
    if (c != NULL)
        sodium_memzero(c, sizeof *c);
    free(c);
}

size_t tcp_cipher_memory(void)
{
    return sizeof(tcp_cipher);
}

/* ---- Sending ----------------------------------------------------------------------- */

/** A position in the caller's parts. */
typedef struct reader {
    const struct iovec *parts;
    size_t count, offset; /* offset: bytes of parts[0] that were read */
} reader;

/* @return the number of copied bytes; fewer than @p most only at the end of the parts. */
static size_t read_parts(reader *r, unsigned char *to, size_t most)
{
    size_t done = 0;
    while (done < most && r->count > 0) {
        const size_t bytes = min_size(r->parts->iov_len - r->offset, most - done);
        if (bytes > 0)
            memcpy(to + done, (const char *)r->parts->iov_base + r->offset, bytes);
        done += bytes;
        r->offset += bytes;
        if (r->offset == r->parts->iov_len) {
            r->parts++;
            r->count--;
            r->offset = 0;
        }
    }
    return done;
}

static void seal_record(tcp_cipher *c, size_t bytes)
{
    unsigned char *at = c->sealed + c->sealed_end;
    const uint32_t length = (uint32_t)bytes;
    memcpy(at, &length, LENGTH);
    seal(&c->out, at + HEAD, 0, at, LENGTH, at + LENGTH);
    seal(&c->out, at + HEAD, bytes, NULL, 0, at + HEAD + bytes);
    c->sealed_end += HEAD + bytes + TAG;
    c->sealed_plain += bytes;
}

static void seal_parts(tcp_cipher *c, const struct iovec *parts, size_t count)
{
    reader r = {.parts = parts, .count = count};
    size_t bytes = 1;
    c->sealed_first = c->sealed_end = 0;
    while (bytes > 0 && c->sealed_end + RECORD_MOST <= ROOM) {
        bytes = read_parts(&r, c->sealed + c->sealed_end + HEAD, PLAIN_MOST);
        if (bytes > 0)
            seal_record(c, bytes);
    }
}

ssize_t tcp_cipher_send(tcp_cipher *c, int fd, const struct iovec *parts, size_t count)
{
    if (c->sealed_first == c->sealed_end)
        seal_parts(c, parts, count);
    struct iovec left = {c->sealed + c->sealed_first, c->sealed_end - c->sealed_first};
    const struct msghdr message = {.msg_iov = &left, .msg_iovlen = 1};
    const ssize_t put = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0)
        return put;
    c->sealed_first += (size_t)put;
    if (c->sealed_first < c->sealed_end) {
        errno = EAGAIN;
        return -1;
    }
    const size_t plain = c->sealed_plain;
    c->sealed_plain = 0;
    return (ssize_t)plain;
}

/* ---- Receiving --------------------------------------------------------------------- */

enum outcome { OPENED, INCOMPLETE, WRONG };

static size_t buffered(const tcp_cipher *c)
{
    return c->end - c->first;
}

/* @return how many buffered bytes open_next() needs. */
static size_t wanted(const tcp_cipher *c)
{
    return c->length > 0 ? c->length + TAG : HEAD;
}

/* Opens the length of the next record. @return false if its tag or its value is wrong. */
static bool open_length(tcp_cipher *c)
{
    unsigned char *at = c->received + c->first;
    uint32_t length;
    memcpy(&length, at, LENGTH);
    if (!unseal(&c->in, at + HEAD, 0, at, LENGTH, at + LENGTH) || length > PLAIN_MOST)
        return false;
    c->length = length;
    c->first += HEAD;
    return length > 0;
}

/* Opens the next record. Must be called only when all opened bytes have been copied. */
static enum outcome open_next(tcp_cipher *c)
{
    if (c->length == 0 && buffered(c) >= HEAD && !open_length(c))
        return WRONG;
    if (c->length == 0 || buffered(c) < wanted(c))
        return INCOMPLETE;
    unsigned char *at = c->received + c->first;
    if (!unseal(&c->in, at, c->length, NULL, 0, at + c->length))
        return WRONG;
    c->plain = c->first;
    c->plain_end = c->first + c->length;
    c->first += c->length + TAG;
    c->length = 0;
    return OPENED;
}

/* Receives more of the stream. Must be called only when all opened bytes have been copied. @return
 * as recv(). */
static ssize_t fill(tcp_cipher *c, int fd)
{
    if (buffered(c) == 0 || c->first + RECORD_MOST > ROOM) {
        memmove(c->received, c->received + c->first, buffered(c));
        c->end = buffered(c);
        c->first = c->plain = c->plain_end = 0;
    }
    const ssize_t got = recv(fd, c->received + c->end, ROOM - c->end, MSG_DONTWAIT);
    c->end += got > 0 ? (size_t)got : 0;
    return got;
}

/* @return a positive value if there are opened bytes; otherwise as recv(). */
static ssize_t open_some(tcp_cipher *c, int fd)
{
    ssize_t got = 1;
    while (got > 0 && c->plain == c->plain_end) {
        const enum outcome outcome = open_next(c);
        if (outcome == WRONG) {
            errno = EBADMSG;
            return -1;
        }
        if (outcome == INCOMPLETE)
            got = fill(c, fd);
    }
    return got;
}

ssize_t tcp_cipher_receive(tcp_cipher *c, int fd, const struct iovec *parts, size_t count)
{
    size_t taken = 0, in_part = 0;
    ssize_t more = 1;
    while (count > 0 && more > 0) {
        const size_t bytes = min_size(parts->iov_len - in_part, c->plain_end - c->plain);
        if (bytes > 0)
            memcpy((unsigned char *)parts->iov_base + in_part, c->received + c->plain, bytes);
        c->plain += bytes;
        taken += bytes;
        in_part += bytes;
        if (in_part == parts->iov_len) {
            parts++;
            count--;
            in_part = 0;
        } else {
            more = open_some(c, fd);
        }
    }
    return taken > 0 ? (ssize_t)taken : more;
}

bool tcp_cipher_is_amid(const tcp_cipher *c)
{
    return c->length > 0 || buffered(c) > 0;
}

bool tcp_cipher_holds(const tcp_cipher *c)
{
    return c->plain < c->plain_end || buffered(c) >= wanted(c);
}
