/* SPDX-License-Identifier: Apache-2.0
 * name question: getaddrinfo() with a deadline. */
#ifndef RING_BASE_NAME_QUESTION_H
#define RING_BASE_NAME_QUESTION_H

#include "base.h"

#include <netdb.h>

/** Addresses of @p name, as @p hints want them (its flags are ours), each with the port @p service
 *  (NULL: 0). Numbers need no server and no thread.
 *  @param[out] found  owned by the caller: freeaddrinfo(); only on success.
 *  @return 0 or an error of getaddrinfo(); EAI_AGAIN too when @p deadline (clock_now()) is over. */
int name_ask(const char *name, const char *service, const struct addrinfo *hints, double deadline,
             struct addrinfo **found);

/** The same in two steps, for several names at once. @return NULL: it cannot be asked. */
typedef struct name_question name_question;
name_question *name_ask_begin(const char *name, const char *service, const struct addrinfo *hints);
/** Waits for the answer, and frees the question. */
int name_ask_end(name_question *q, double deadline, struct addrinfo **found);

#endif
