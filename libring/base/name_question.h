/* SPDX-License-Identifier: Apache-2.0
 *
 * name question: resolves a host name as getaddrinfo() does, but with a deadline. Several names can
 * be asked for at once.
 */
#ifndef RING_BASE_NAME_QUESTION_H
#define RING_BASE_NAME_QUESTION_H

#include "base.h"

#include <netdb.h>

/** Gets the addresses of @p name that match @p hints (whose flags are ignored), with the port
 *  @p service (NULL: 0). Numeric addresses need no server and no thread.
 *  @param[out] found  set on success; the caller frees it by freeaddrinfo().
 *  @return 0 or an error of getaddrinfo(); also EAI_AGAIN after @p deadline (clock_now()). */
int name_ask(const char *name, const char *service, const struct addrinfo *hints, double deadline,
             struct addrinfo **found);

/** Begins name_ask(), so that several names can be asked for at once.
 *  @return NULL if the question cannot be asked. */
typedef struct name_question name_question;
name_question *name_ask_begin(const char *name, const char *service, const struct addrinfo *hints);
/** Waits for the answer, and frees the question. */
int name_ask_end(name_question *q, double deadline, struct addrinfo **found);

#endif
