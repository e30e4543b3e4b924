/* SPDX-License-Identifier: Apache-2.0
 *
 * Two ends of a link, for tests: opened in one thread's hands, or run apart as two threads
 * or two processes, whatever the transport joins. Every wait here ends: by success, or by
 * a failed must().
 */
#ifndef TEST_TRANSPORT_ENDS_H
#define TEST_TRANSPORT_ENDS_H

#include "table.h"
#include "transport.h"

#include <sys/types.h>

enum { RANK_A = 17, RANK_B = 42, SKIPPED = 77 };
/** Seconds for whatever must happen. */
#define PATIENCE 40.0

/** Works in any thread and process: says what failed and ends the process. */
#define must(condition) must_at(condition, #condition, __FILE__, __LINE__)
#define must_ok(status) must_be_at(status, RING_OK, #status, __FILE__, __LINE__)
#define must_be(status, expected) must_be_at(status, expected, #status, __FILE__, __LINE__)
void must_at(bool condition, const char *text, const char *file, int line);
void must_be_at(ring_status status, ring_status expected, const char *text, const char *file,
                int line);

/** Chooses by name: "tcp", "fault_tcp" for tcp within a fault link that has no fault, or
 *  "aes256gcm_tcp" and "chacha20_tcp" for tcp that encrypts.
 *  @return false: unknown. Ends the process as skipped if it does not work here. */
bool ends_choose(const char *name);
/** Of the links opened from now on; true unless it is called. */
void ends_use_checksums(bool use);
/** Has the links opened from now on encrypt, by "aes256gcm" or "chacha20", with the same keys each
 *  time. @return false: another name. Ends the process as skipped if it does not work here. */
bool ends_use_cipher(const char *name);
/** Users' InfiniBand options for later links; NULL: the defaults. */
void ends_use_ib(const transport_ib *ib);
/** @return those of @p rank's end; NULL: nothing is encrypted. */
const transport_keys *ends_keys(int rank);
const transport *ends_transport(void);
/** Wraps each link that rank @p rank opens from now on; NULL: no more. */
void ends_set_fault(int rank, const char *spec);

/** Sockets as control hands them over. */
void ends_sockets(int fds[2]);
/** open() for one end, and until the other one has answered. */
ring_status end_try_open(int rank, int fd, double seconds, transport_link **out);
transport_link *end_open(int rank, int fd);
void end_close(transport_link *l);
/** It is closed by somebody else. */
void end_disown(const transport_link *l);

/** Both ends here, for one thread that drives both. */
typedef struct ends {
    transport_link *a, *b;
} ends;
ends ends_open(void);
void ends_close(ends *e);

/** Until what is under way has come: where transfers take their time. */
void ends_settle(void);

/** A second process that runs @p run on a socket; the first gets the other socket. */
pid_t ends_fork(void (*run)(int fd), int *fd);
/** Both ends at once, each on its own thread or process, and waits for both. */
void ends_run(void (*run_a)(transport_link *l), void (*run_b)(transport_link *l));

#endif
