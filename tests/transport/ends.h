/* SPDX-License-Identifier: Apache-2.0
 *
 * ends: provides the two ends of a link for tests, either both driven by one thread, or each by its
 * own thread or process, depending on the transport. Every wait here ends, with success or with a
 * failed must().
 */
#ifndef TEST_TRANSPORT_ENDS_H
#define TEST_TRANSPORT_ENDS_H

#include "table.h"
#include "transport.h"

#include <sys/types.h>

enum { RANK_A = 17, RANK_B = 42, SKIPPED = 77 };
/** Seconds after which a test gives up waiting. */
#define PATIENCE 40.0

/** Works in any thread and process: prints the failed condition and ends the process. */
#define must(condition) must_at(condition, #condition, __FILE__, __LINE__)
#define must_ok(status) must_be_at(status, RING_OK, #status, __FILE__, __LINE__)
#define must_be(status, expected) must_be_at(status, expected, #status, __FILE__, __LINE__)
void must_at(bool condition, const char *text, const char *file, int line);
void must_be_at(ring_status status, ring_status expected, const char *text, const char *file,
                int line);

/** Chooses the transport: "tcp", "fault_tcp" for tcp within a fault link without faults, or
 *  "aes256gcm_tcp" and "chacha20_tcp" for tcp with encryption.
 *  @return false: unknown. Ends the process as skipped if it does not work here. */
bool ends_choose(const char *name);
/** Sets whether links opened from now on have checksums; the default is true. */
void ends_use_checksums(bool use);
/** Makes links opened from now on encrypt, with "aes256gcm" or "chacha20" and always the same keys.
 *  @return false for another name. Ends the process as skipped if it does not work here. */
bool ends_use_cipher(const char *name);
/** Users' InfiniBand options for later links; NULL: the defaults. */
void ends_use_ib(const transport_ib *ib);
/** @return the keys of @p rank's end; NULL: nothing is encrypted. */
const transport_keys *ends_keys(int rank);
const transport *ends_transport(void);
/** Wraps each link that rank @p rank opens from now on in this fault; NULL stops that. */
void ends_set_fault(int rank, const char *spec);

/** Makes sockets like those that control hands over. */
void ends_sockets(int fds[2]);
/** Opens one end, and waits until the other one has answered. */
ring_status end_try_open(int rank, int fd, double seconds, transport_link **out);
transport_link *end_open(int rank, int fd);
void end_close(transport_link *l);
/** Notes that another thread or process closes this end. */
void end_disown(const transport_link *l);

/** Both ends of a link that one thread drives. */
typedef struct ends {
    transport_link *a, *b;
} ends;
ends ends_open(void);
void ends_close(ends *e);

/** Waits until all transfers in flight have arrived, for links whose transfers take time. */
void ends_settle(void);

/** Starts a second process that runs @p run on a socket; this one gets the other socket. */
pid_t ends_fork(void (*run)(int fd), int *fd);
/** Runs both ends at once, each in its own thread or process, and waits for both. */
void ends_run(void (*run_a)(transport_link *l), void (*run_b)(transport_link *l));

#endif
