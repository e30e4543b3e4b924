/* SPDX-License-Identifier: Apache-2.0
 *
 * name question: resolves a host name as getaddrinfo() does, but with a deadline. Several lookups
 * can be in flight at once.
 */
#ifndef RING_BASE_NAME_QUESTION_H
#define RING_BASE_NAME_QUESTION_H

#include "base.h"

#include <netdb.h>

/** Looks up the addresses of @p name that match @p hints, whose flags are ignored, with the port
 *  @p service (NULL: port 0). A numeric address needs no name server and no thread.
 *  @param[out] found  set on success; the caller frees it by freeaddrinfo().
 *  @return 0 or an error of getaddrinfo(); EAI_AGAIN also if there is no answer by @p deadline (in
 *  the time of clock_now()). */
int name_ask(const char *name, const char *service, const struct addrinfo *hints, double deadline,
             struct addrinfo **found);

/** Starts a lookup, as name_ask() does, without waiting for the answer.
 *  @return NULL if the lookup cannot be started. */
typedef struct name_question name_question;
name_question *name_ask_begin(const char *name, const char *service, const struct addrinfo *hints);
/** Waits for the answer of a lookup, and frees @p q. Parameters and result are those of
 *  name_ask(). */
int name_ask_end(name_question *q, double deadline, struct addrinfo **found);

#endif
