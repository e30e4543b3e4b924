/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the exchange of the id by PMIx: rank 0 puts it, and the other ranks get it from the
 * launcher's servers. The PMIx library is loaded at run time, so that libring does not depend on
 * it. The few functions that libring calls have had the same interface since PMIx 2. PMIx is
 * finalized only at exit, because initializing it again is unreliable. An MPI library in the same
 * process may use PMIx, too.
 */
#include "id_exchange.h"

#include "shared_object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The part of PMIx' interface that libring uses ------------------------------------ */

enum { PMIX_OK = 0, PMIX_TYPE_STRING = 3, PMIX_TYPE_UINT32 = 14, PMIX_SCOPE_GLOBAL = 3 };
#define PMIX_ANY_RANK (UINT32_MAX - 1)

typedef struct pmix_process {
    char space[256];
    uint32_t rank;
} pmix_process;

typedef struct pmix_datum {
    uint16_t type;
    union {
        char *string;
        uint32_t number;
        void *room[8];
    } data;
} pmix_datum;

typedef void (*pmix_got)(int status, pmix_datum *datum, void *context);

typedef struct pmix_library {
    pmix_process self;
    int (*init)(pmix_process *self, void *info, size_t infos);
    int (*finalize)(const void *info, size_t infos);
    int (*put)(uint8_t scope, const char *key, pmix_datum *datum);
    int (*commit)(void);
    int (*get)(const pmix_process *whose, const char *key, const void *info, size_t infos,
               pmix_datum **datum);
    int (*get_later)(const pmix_process *whose, const char *key, const void *info, size_t infos,
                     pmix_got got, void *context);
    const char *(*error)(int status);
} pmix_library;

static ring_status load(pmix_library *p)
{
    const object_symbol symbols[] = {
        {"PMIx_Init", &p->init, false},
        {"PMIx_Finalize", &p->finalize, false},
        {"PMIx_Put", &p->put, false},
        {"PMIx_Commit", &p->commit, false},
        {"PMIx_Get", &p->get, false},
        {"PMIx_Get_nb", &p->get_later, false},
        {"PMIx_Error_string", &p->error, false},
    };
    return shared_object_load(&(shared_object){.file = "libpmix.so.2",
                                               .if_absent = "install libpmix2",
                                               .if_old = "it is older than PMIx 2; update it",
                                               .symbols = symbols,
                                               .count = sizeof symbols / sizeof *symbols});
}

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* the process that initialized PMIx, since a forked child must not use it; 0: none
                  */
    pmix_library library;
} pmix = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void leave_at_exit(void)
{
    if (pmix.owner == getpid())
        (void)pmix.library.finalize(NULL, 0);
}

static ring_status start(pmix_library *p)
{
    RING_TRY(load(p));
    const int status = p->init(&p->self, NULL, 0);
    if (status != PMIX_OK)
        return fail(RING_ERR_UNSUPPORTED, "PMIx_Init: %s", p->error(status));
    pmix.owner = getpid();
    atexit(leave_at_exit);
    return RING_OK;
}

/* Initializes PMIx at the first call of a process. @param[out] out  the library. */
static ring_status library_open(const pmix_library **out)
{
    *out = &pmix.library;
    if (getenv("PMIX_NAMESPACE") == NULL || getenv("PMIX_RANK") == NULL)
        return fail(RING_ERR_UNSUPPORTED, "PMIX_NAMESPACE is not set");
    pthread_mutex_lock(&pmix.lock);
    ring_status status = RING_OK;
    if (pmix.owner == 0)
        status = start(&pmix.library);
    else if (pmix.owner != getpid())
        status = fail(RING_ERR_UNSUPPORTED,
                      "the parent process has initialized PMIx, which a forked child cannot use");
    pthread_mutex_unlock(&pmix.lock);
    return status;
}

/* ---- Size of the job --------------------------------------------------------------- */

static ring_status size_from(const pmix_library *p, int *size)
{
    pmix_process all = p->self;
    pmix_datum *datum = NULL;
    all.rank = PMIX_ANY_RANK;
    const int status = p->get(&all, "pmix.job.size", NULL, 0, &datum);
    if (status != PMIX_OK || datum == NULL || datum->type != PMIX_TYPE_UINT32)
        return fail(RING_ERR_CONFIG,
                    "PMIX_RANK is set, but PMIx does not report the number of ranks: %s; set "
                    "RING_RANK and RING_SIZE",
                    p->error(status));
    *size = (int)datum->data.number;
    free(datum);
    return *size > 0 ? RING_OK : fail(RING_ERR_CONFIG, "PMIx reports a job without ranks");
}

ring_status exchange_pmix_size(int *size)
{
    const pmix_library *p;
    if (library_open(&p) != RING_OK)
        return fail(RING_ERR_CONFIG,
                    "PMIX_RANK is set, but the number of ranks is unknown (%s); set RING_RANK and "
                    "RING_SIZE",
                    fail_text());
    return size_from(p, size);
}

/* ---- The id ------------------------------------------------------------------------- */

typedef enum answer_state { NOT_ASKED, ASKED, ANSWERED, REFUSED, ABANDONED } answer_state;

/* The answer of a request. PMIx' thread fills it in, and the reader frees it; if the reader has
 * abandoned it, PMIx' thread frees it. */
typedef struct answer {
    pthread_mutex_t lock;
    answer_state state;
    int error;
    char text[2 * RING_UNIQUE_ID_BYTES + 1];
} answer;

typedef struct pmix_state {
    const pmix_library *library;
    answer *answer;
} pmix_state;

static void answer_free(answer *a)
{
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static void on_answer(int status, pmix_datum *datum, void *context)
{
    answer *a = context;
    pthread_mutex_lock(&a->lock);
    const bool abandoned = a->state == ABANDONED;
    const bool good = status == PMIX_OK && datum != NULL && datum->type == PMIX_TYPE_STRING &&
                      text_format(a->text, sizeof a->text, "%s", datum->data.string);
    if (!abandoned)
        a->state = good ? ANSWERED : REFUSED;
    a->error = status;
    pthread_mutex_unlock(&a->lock);
    if (abandoned)
        answer_free(a);
}

static ring_status pmix_open(id_exchange *x)
{
    pmix_state *s = calloc(1, sizeof *s);
    answer *a = calloc(1, sizeof *a);
    ring_status status = RING_ERR_MEMORY;
    if (s != NULL && a != NULL)
        status = library_open(&s->library);
    else
        fail(status, "no memory to find rank 0");
    if (status != RING_OK) {
        free(s);
        free(a);
        return status;
    }
    pthread_mutex_init(&a->lock, NULL);
    s->answer = a;
    x->state = s;
    return RING_OK;
}

static ring_status pmix_publish(id_exchange *x, const char *hex)
{
    const pmix_library *p = ((pmix_state *)x->state)->library;
    pmix_datum datum = {.type = PMIX_TYPE_STRING, .data.string = strdup(hex)};
    if (datum.data.string == NULL)
        return fail(RING_ERR_MEMORY, "no memory to pass rank 0's address to PMIx");
    int status = p->put(PMIX_SCOPE_GLOBAL, x->key, &datum);
    if (status == PMIX_OK)
        status = p->commit();
    free(datum.data.string);
    return status == PMIX_OK ? RING_OK
                             : fail(RING_ERR_SYSTEM, "PMIx did not accept rank 0's address: %s",
                                    p->error(status));
}

/* Requests the id without waiting. PMIx calls on_answer() when rank 0 has put the id. */
static ring_status request(id_exchange *x, const pmix_library *p, answer *a)
{
    pmix_process rank0 = p->self;
    rank0.rank = 0;
    a->state = ASKED;
    const int status = p->get_later(&rank0, x->key, NULL, 0, on_answer, a);
    if (status == PMIX_OK)
        return RING_OK;
    a->state = NOT_ASKED;
    return fail(RING_ERR_SYSTEM, "PMIx_Get_nb: %s", p->error(status));
}

/* Returns the id if PMIx has answered. Otherwise it sends a request, unless one is in flight. */
static ring_status pmix_look(id_exchange *x, char *hex, size_t size)
{
    pmix_state *s = x->state;
    answer *a = s->answer;
    pthread_mutex_lock(&a->lock);
    const answer_state state = a->state;
    const int error = a->error;
    if (state == ANSWERED)
        text_format(hex, size, "%s", a->text);
    if (state == REFUSED)
        a->state = NOT_ASKED;
    pthread_mutex_unlock(&a->lock);
    if (state == ANSWERED)
        return RING_OK;
    if (state == NOT_ASKED)
        RING_TRY(request(x, s->library, a));
    return fail(RING_IN_PROGRESS, "PMIx does not have rank 0's address yet%s%s",
                state == REFUSED ? ": " : "", state == REFUSED ? s->library->error(error) : "");
}

static void pmix_close(id_exchange *x)
{
    pmix_state *s = x->state;
    answer *a = s->answer;
    pthread_mutex_lock(&a->lock);
    const bool still_asked = a->state == ASKED;
    if (still_asked)
        a->state = ABANDONED;
    pthread_mutex_unlock(&a->lock);
    if (!still_asked)
        answer_free(a);
    free(s);
}

const exchange_way exchange_by_pmix = {"PMIx", pmix_open, pmix_publish, pmix_look, pmix_close};
