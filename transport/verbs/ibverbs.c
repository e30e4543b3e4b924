/* SPDX-License-Identifier: Apache-2.0
 * Loads libibverbs at run time, and explains its completion statuses to users. */
#include "ibverbs.h"

#include "automatic.h"
#include "shared_object.h"

#include <pthread.h>

static struct {
    pthread_once_t once;
    ibverbs functions;
    bool loaded;
    char why[256];
} library = {.once = PTHREAD_ONCE_INIT};

static ring_status open_library(ibverbs *f)
{
    const object_symbol symbols[] = {
#define ROW(name, result, parameters) {"ibv_" #name, &f->name, false},
        IBVERBS_FUNCTIONS(ROW)
#undef ROW
#define ROW(name, result, parameters) {"ibv_" #name, &f->name, true},
            IBVERBS_OPTIONAL(ROW)
#undef ROW
                {"_ibv_query_gid_ex", &f->query_gid_ex, true},
    };
    return shared_object_load(&(shared_object){.file = "libibverbs.so.1",
                                               .if_absent = "install the package libibverbs1",
                                               .if_old = "it is too old; update rdma-core",
                                               .symbols = symbols,
                                               .count = sizeof symbols / sizeof *symbols});
}

/* Also makes fork() safe, which must be done before any object of an adapter is created. Newer
 * kernels copy pinned pages for a child. With an older kernel or rdma-core, children do not inherit
 * registered memory. Then adapters register only the memory that the user has registered, because a
 * child may need the rest. */
static void load(void)
{
    const ibverbs *f = &library.functions;
    library.loaded = open_library(&library.functions) == RING_OK;
    if (!library.loaded) {
        (void)text_format(library.why, sizeof library.why, "%s", fail_text());
        return;
    }
    if (f->is_fork_initialized != NULL && f->is_fork_initialized() == IBV_FORK_UNNEEDED)
        return;
    automatic_forbid("children of fork() would lose registered memory; this needs Linux 5.12 and "
                     "rdma-core 35");
    if (f->fork_init() != 0)
        log_warn("libibverbs cannot make fork() safe on this host, so children may corrupt data "
                 "that is being sent; avoid fork(), or set RING_TRANSPORT=^verbs");
}

const ibverbs *ibverbs_load(void)
{
    pthread_once(&library.once, load);
    if (library.loaded)
        return &library.functions;
    fail(RING_ERR_UNSUPPORTED, "%s", library.why);
    return NULL;
}

const char *ibverbs_explain(enum ibv_wc_status status)
{
    static const char *const words[] = {
        [IBV_WC_LOC_LEN_ERR] = "a transfer was longer than the port allows",
        [IBV_WC_LOC_QP_OP_ERR] = "the adapter refused a request; see the kernel's log (dmesg)",
        [IBV_WC_LOC_PROT_ERR] = ("memory of this rank was unmapped or deregistered while it was "
                                 "used; keep buffers until their call has ended"),
        [IBV_WC_WR_FLUSH_ERR] = "the queue pair had already failed",
        [IBV_WC_REM_INV_REQ_ERR] = ("the peer's adapter rejected a request as invalid; do both "
                                    "ranks run the same version of libring?"),
        [IBV_WC_REM_ACCESS_ERR] = ("the peer's memory was unmapped or deregistered while it was "
                                   "used; keep buffers until their call has ended"),
        [IBV_WC_REM_OP_ERR] = "the peer's adapter failed; see the log of the peer's kernel (dmesg)",
        [IBV_WC_RETRY_EXC_ERR] = ("the peer's port does not answer: its host is down, a cable or "
                                  "switch port is off, or the path drops packets of this GID; see "
                                  "'ringinfo doctor', RING_IB_GID_INDEX, RING_IB_TIMEOUT"),
        [IBV_WC_RNR_RETRY_EXC_ERR] = "the peer's adapter had no receive request for a wake-up",
        [IBV_WC_FATAL_ERR] = "the adapter failed; see the kernel's log (dmesg)",
        [IBV_WC_RESP_TIMEOUT_ERR] = ("the peer's adapter did not answer in time; see "
                                     "RING_IB_TIMEOUT"),
    };
    const size_t at = (size_t)status;
    return at < sizeof words / sizeof *words && words[at] != NULL ? words[at]
                                                                  : "see the kernel's log (dmesg)";
}
