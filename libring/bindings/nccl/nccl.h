/* SPDX-License-Identifier: Apache-2.0
 *
 * Declares NCCL's functions as libring serves them, written from NVIDIA's public documentation of
 * NCCL 2.28, so that programs can be compiled without NCCL. Programs that were compiled with
 * NVIDIA's header run unchanged. docs/nccl.md lists what differs and what is refused.
 */
#ifndef RING_NCCL_H
#define RING_NCCL_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#define NCCL_MAJOR 2
#define NCCL_MINOR 28
#define NCCL_PATCH 9
#define NCCL_SUFFIX ""
#define NCCL_VERSION(major, minor, patch) \
    ((major) <= 2 && (minor) <= 8 ? (major)*1000 + (minor)*100 + (patch) \
                                  : (major)*10000 + (minor)*100 + (patch))
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

/** A stream of CUDA; the same type as in CUDA's header. */
typedef struct CUstream_st *cudaStream_t;

typedef struct ncclComm *ncclComm_t;
typedef struct ncclWindow_vidmem *ncclWindow_t;
#define NCCL_COMM_NULL NULL

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclFloat8e4m3 = 10,
    ncclFloat8e5m2 = 11,
    ncclNumTypes = 12
} ncclDataType_t;

typedef enum {
    ncclSum = 0,
    ncclProd = 1,
    ncclMax = 2,
    ncclMin = 3,
    ncclAvg = 4,
    ncclNumOps = 5, /**< operations of ncclRedOpCreatePreMulSum() begin here */
    ncclMaxRedOp = INT_MAX
} ncclRedOp_t;

typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR (-1)
#define NCCL_UNDEF_FLOAT (-1.0f)
#define NCCL_CONFIG_MAGIC 0xcafebeef

#define NCCL_WIN_DEFAULT 0x00
#define NCCL_WIN_COLL_SYMMETRIC 0x01
#define NCCL_WIN_REQUIRED_ALIGNMENT 4096
#define NCCL_CTA_POLICY_DEFAULT 0x00
#define NCCL_CTA_POLICY_EFFICIENCY 0x01
#define NCCL_CTA_POLICY_ZERO 0x02
#define NCCL_SHRINK_DEFAULT 0x00
#define NCCL_SHRINK_ABORT 0x01

/** Options of a communicator. Start from NCCL_CONFIG_INITIALIZER. `size` tells the version of the
 *  struct; members beyond it have their defaults. */
typedef struct ncclConfig_v22800 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;        /**< 0: calls return ncclInProgress and are polled */
    int cgaClusterSize;  /**< no effect */
    int minCTAs;         /**< no effect */
    int maxCTAs;         /**< most blocks of a call, as RING_DEVICE_BLOCKS */
    const char *netName; /**< "Socket": tcp, "IB": verbs, or a transport of libring */
    int splitShare;      /**< no effect: communicators always share connections of control */
    int trafficClass;    /**< of RoCE, as RING_IB_TC */
    const char *commName;
    int collnetEnable;       /**< no effect */
    int CTAPolicy;           /**< no effect */
    int shrinkShare;         /**< no effect */
    int nvlsCTAs;            /**< no effect */
    int nChannelsPerNetPeer; /**< no effect */
    int nvlinkCentricSched;  /**< no effect */
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER \
    { \
        sizeof(ncclConfig_t), NCCL_CONFIG_MAGIC, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT \
    }

typedef struct ncclSimInfo_v22200 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    float estimatedTime; /**< microseconds */
} ncclSimInfo_t;

#define NCCL_SIM_INFO_INITIALIZER \
    { \
        sizeof(ncclSimInfo_t), 0x74685283, NCCL_VERSION_CODE, NCCL_UNDEF_FLOAT \
    }

/* ---- Errors and versions ------------------------------------------------------------------- */

/** Writes 2.28's code, or that of RING_NCCL_VERSION ("2.27.5"). */
ncclResult_t ncclGetVersion(int *version);
const char *ncclGetErrorString(ncclResult_t result);
/** @return the text of the latest error of @p comm, or of this thread. */
const char *ncclGetLastError(ncclComm_t comm);

/* ---- Communicators ------------------------------------------------------------------------- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config);
/** @param ids  [id_count]; libring uses the first. */
ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int ranks, int rank, int id_count,
                                      ncclUniqueId *ids, ncclConfig_t *config);
/** @param devices  [count], or NULL for 0, 1, ... */
ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices);
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                           ncclConfig_t *config);
ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *out,
                            ncclConfig_t *config, int flags);
ncclResult_t ncclCommFinalize(ncclComm_t comm);
ncclResult_t ncclCommDestroy(ncclComm_t comm);
ncclResult_t ncclCommAbort(ncclComm_t comm);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);

/* ---- Memory -------------------------------------------------------------------------------- */

ncclResult_t ncclMemAlloc(void **memory, size_t bytes);
ncclResult_t ncclMemFree(void *memory);
/** Succeeds without effect: libring needs no registration of GPU memory. */
ncclResult_t ncclCommRegister(const ncclComm_t comm, void *memory, size_t bytes, void **handle);
ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *memory, size_t bytes,
                                    ncclWindow_t *window, int flags);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window);

/* ---- Operations ---------------------------------------------------------------------------- */

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm);
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm);

ncclResult_t ncclReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream);
ncclResult_t ncclBroadcast(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclAllReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
/** @param count  elements of dst. */
ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
/** @param count  elements of src. */
ncclResult_t ncclAllGather(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream);
/** @param count  elements for each rank. */
ncclResult_t ncclAlltoAll(const void *src, void *dst, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclGather(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclScatter(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSend(const void *src, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);
ncclResult_t ncclRecv(void *dst, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream);

/* ---- Groups -------------------------------------------------------------------------------- */

ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
/** Drops the calls of the group, and estimates no time. */
ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info);

/* ---- Functions that libring refuses with ncclInvalidUsage ---------------------------------- */

struct ncclDevCommRequirements;
struct ncclDevComm;
struct ncclCommProperties;
struct ncclWaitSignalDesc;
typedef struct ncclTeam {
    int nRanks, rank, stride;
} ncclTeam_t;

ncclResult_t ncclDevCommCreate(ncclComm_t comm, const struct ncclDevCommRequirements *requirements,
                               struct ncclDevComm *out);
ncclResult_t ncclDevCommDestroy(ncclComm_t comm, const struct ncclDevComm *device_comm);
/** @return a team of 0 ranks. */
ncclTeam_t ncclTeamLsa(ncclComm_t comm);
ncclTeam_t ncclTeamWorld(ncclComm_t comm);
ncclTeam_t ncclTeamRail(ncclComm_t comm);
ncclResult_t ncclCommQueryProperties(ncclComm_t comm, struct ncclCommProperties *properties);
ncclResult_t ncclCommMemStats(ncclComm_t comm, int statistic, uint64_t *value);
ncclResult_t ncclCommSuspend(ncclComm_t comm, int flags);
ncclResult_t ncclCommResume(ncclComm_t comm);
ncclResult_t ncclPutSignal(const void *src, size_t count, ncclDataType_t type, int peer,
                           ncclWindow_t window, size_t offset, int signal, int context,
                           unsigned int flags, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclSignal(int peer, int signal, int context, unsigned int flags, ncclComm_t comm,
                        cudaStream_t stream);
ncclResult_t ncclWaitSignal(int count, struct ncclWaitSignalDesc *signals, ncclComm_t comm,
                            cudaStream_t stream);
ncclResult_t ncclGetLsaDevicePointer(ncclWindow_t window, size_t offset, int rank, void **out);
ncclResult_t ncclGetPeerDevicePointer(ncclWindow_t window, size_t offset, int peer, void **out);
ncclResult_t ncclGetMultimemDevicePointer(ncclWindow_t window, size_t offset, void *team,
                                          void **out);
ncclResult_t ncclGetLsaMultimemDevicePointer(ncclWindow_t window, size_t offset, void **out);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
