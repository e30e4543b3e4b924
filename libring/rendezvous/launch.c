/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the launcher of this process, its rank and the number of ranks in the environment. A table
 * has one row for each launcher, and the first row whose variables are all set is used. If there is
 * no such row, but some launcher's rank or number of ranks is set, launch_detect() fails.
 */
#include "launch.h"
#include "id_exchange.h"
#include "numbers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { RANKS_MAX = 1 << 20 };

typedef struct launcher {
    const char *name;
    const char *rank, *sizes[2];    /* variables: the rank; the number of ranks, one of sizes */
    const char *local, *local_size; /* variables: the local rank, the number of ranks on the host */
    bool needs_address;             /* rank 0 can be found only by MASTER_ADDR and MASTER_PORT */
    const char *mark;               /* if not NULL: the row applies only if this variable is set */
    bool (*applies)(void);          /* if not NULL: the row applies only if this returns true */
    const char *jobs[2]; /* variables that differ between jobs, and are equal on all ranks */
} launcher;

/* @return the value of an environment variable; NULL if it is not set or empty. */
static const char *variable(const char *name)
{
    const char *value = name != NULL ? getenv(name) : NULL;
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* @return true if this process is a rank of a Slurm step. A batch script has Slurm's variables,
 * too, but its step has no ordinary number. */
static bool in_slurm_step(void)
{
    const char *step = variable("SLURM_STEP_ID");
    if (step == NULL)
        step = variable("SLURM_STEPID");
    return step != NULL && strtoul(step, NULL, 10) < 0xfffffff0ul;
}

static const launcher launchers[] = {
    {.name = "ringrun",
     .rank = "RING_RANK",
     .sizes = {"RING_SIZE"},
     .local = "RING_LOCAL_RANK",
     .local_size = "RING_LOCAL_SIZE",
     .needs_address = true},
    {.name = "torchrun",
     .rank = "RANK",
     .sizes = {"WORLD_SIZE"},
     .local = "LOCAL_RANK",
     .local_size = "LOCAL_WORLD_SIZE",
     .needs_address = true,
     .jobs = {"TORCHELASTIC_RUN_ID"}},
    /* Open MPI also sets the variables of PMIx, but only its own have the number of ranks. */
    {.name = "Open MPI",
     .rank = "OMPI_COMM_WORLD_RANK",
     .sizes = {"OMPI_COMM_WORLD_SIZE"},
     .local = "OMPI_COMM_WORLD_LOCAL_RANK",
     .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
     .jobs = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}},
    {.name = "PMIx",
     .rank = "PMIX_RANK",
     .sizes = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     .local = "SLURM_LOCALID",
     .mark = "PMIX_NAMESPACE",
     .jobs = {"PMIX_NAMESPACE"}},
    {.name = "MVAPICH",
     .rank = "MV2_COMM_WORLD_RANK",
     .sizes = {"MV2_COMM_WORLD_SIZE"},
     .local = "MV2_COMM_WORLD_LOCAL_RANK",
     .local_size = "MV2_COMM_WORLD_LOCAL_SIZE",
     .jobs = {"MPISPAWN_MPIRUN_ID"}},
    {.name = "PMI",
     .rank = "PMI_RANK",
     .sizes = {"PMI_SIZE"},
     .local = "MPI_LOCALRANKID",
     .local_size = "MPI_LOCALNRANKS",
     .jobs = {"PMI_JOBID"}},
    {.name = "Slurm",
     .rank = "SLURM_PROCID",
     .sizes = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     .local = "SLURM_LOCALID",
     .applies = in_slurm_step,
     .jobs = {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

/* Reads a variable, which must be set, as a whole number. */
static ring_status number(const char *name, int least, int most, int *out)
{
    long long value;
    const char *text = variable(name);
    if (!number_whole(text, least, most, &value))
        return fail(RING_ERR_CONFIG, "%s=%.60s: want a whole number from %d to %d", name, text,
                    least, most);
    *out = (int)value;
    return RING_OK;
}

/* @return the name of the variable that has the number of ranks. */
static const char *size_variable(const launcher *l)
{
    return variable(l->sizes[0]) != NULL ? l->sizes[0] : l->sizes[1];
}

/* @return true if all variables that the row needs are set. For the row of PMIx, the only one with
 * a mark, the number of ranks is optional, since PMIx can report it. */
static bool complete(const launcher *l)
{
    return variable(l->rank) != NULL && (variable(size_variable(l)) != NULL || l->mark != NULL);
}

/* ---- The address of rank 0 ------------------------------------------------------- */

static ring_status read_address(const launcher *l, launch_info *out)
{
    const char *address = variable("MASTER_ADDR"), *port = variable("MASTER_PORT");
    const bool needs_address = l->needs_address && out->size > 1;
    if (address == NULL || port == NULL) {
        if ((address != NULL) != (port != NULL))
            log_info("MASTER_ADDR and MASTER_PORT are used only when both are set");
        if (!needs_address)
            return RING_OK;
        return fail(
            RING_ERR_CONFIG,
            "%s is set, but %s is not: set MASTER_ADDR and MASTER_PORT to the address where "
            "rank 0 listens, e.g. 127.0.0.1 and 29500",
            l->rank, address == NULL ? "MASTER_ADDR" : "MASTER_PORT");
    }
    const bool fits = strlen(address) < sizeof out->address;
    const ring_status status = fits ? number("MASTER_PORT", 1, 65535, &out->port)
                                    : fail(RING_ERR_CONFIG,
                                           "MASTER_ADDR is longer than %zu characters",
                                           sizeof out->address - 1);
    if (status != RING_OK && !needs_address)
        log_warn("%s; it is ignored", fail_text());
    if (status != RING_OK)
        return needs_address ? status : RING_OK;
    text_format(out->address, sizeof out->address, "%s", address);
    const char *agent = variable("TORCHELASTIC_USE_AGENT_STORE");
    out->agent_holds_port = strcmp(l->rank, "RANK") == 0 && agent != NULL &&
                            strcasecmp(agent, "True") == 0;
    return RING_OK;
}

/* ---- Rank and size --------------------------------------------------------------- */

static ring_status read_job(const launcher *l, launch_info *out)
{
    const char *own = variable("RING_JOB_ID");
    const char *first = own != NULL ? own : variable(l->jobs[0]);
    const char *second = own != NULL ? NULL : variable(l->jobs[1]);
    if (text_format(out->job, sizeof out->job, "%s%s%s", first != NULL ? first : "",
                    second != NULL ? " " : "", second != NULL ? second : ""))
        return RING_OK;
    return fail(RING_ERR_CONFIG, "%s is too long", own != NULL ? "RING_JOB_ID" : l->jobs[0]);
}

static ring_status read_launcher(const launcher *l, launch_info *out)
{
    RING_TRY(read_job(l, out));
    RING_TRY(number(l->rank, 0, RANKS_MAX - 1, &out->rank));
    RING_TRY(variable(size_variable(l)) != NULL ? number(size_variable(l), 1, RANKS_MAX, &out->size)
                                                : exchange_pmix_size(&out->size));
    if (out->rank >= out->size)
        return fail(RING_ERR_CONFIG, "%s=%d, but there are only %d rank%s (%s), numbered from 0",
                    l->rank, out->rank, out->size, plural(out->size), size_variable(l));
    if (variable(l->local) != NULL)
        RING_TRY(number(l->local, 0, RANKS_MAX - 1, &out->local_rank));
    if (variable(l->local_size) != NULL)
        RING_TRY(number(l->local_size, 1, RANKS_MAX, &out->local_size));
    const char *by_hand = l == launchers ? variable("RING_LAUNCHER") : l->name;
    text_format(out->launcher, sizeof out->launcher, "%s", by_hand != NULL ? by_hand : "RING_RANK");
    return read_address(l, out);
}

ring_status launch_detect(launch_info *launch)
{
    const launcher *half = NULL;
    *launch = (launch_info){.size = 1, .local_rank = -1, .launcher = "none"};
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const launcher *l = &launchers[i];
        if ((l->mark != NULL && variable(l->mark) == NULL) || (l->applies != NULL && !l->applies()))
            continue;
        if (variable(l->rank) == NULL && (l->mark != NULL || variable(size_variable(l)) == NULL))
            continue;
        if (complete(l))
            return read_launcher(l, launch);
        if (half == NULL)
            half = l;
    }
    if (half == NULL)
        return RING_OK;
    const bool has_rank = variable(half->rank) != NULL;
    return fail(RING_ERR_CONFIG, "%s is set, but %s is not: set both, or neither to run one rank",
                has_rank ? half->rank : size_variable(half),
                has_rank ? half->sizes[0] : half->rank);
}

static bool equals(const char *name, int value)
{
    const char *text = variable(name);
    return text != NULL && strtol(text, NULL, 10) == value;
}

bool launch_on_one_host(const launch_info *launch)
{
    return launch->local_size == launch->size || equals("SLURM_STEP_NUM_NODES", 1) ||
           equals("SLURM_NNODES", 1);
}
