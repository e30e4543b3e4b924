/* SPDX-License-Identifier: Apache-2.0
 * NCCL's collectives and messages over libring's calls on streams. Types and operations have the
 * same numbers in both libraries. */
#include "nccl_comm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Beginning and ending ------------------------------------------------------------------ */

/* A call under way in its function. */
typedef struct entered_call {
    ncclComm_t comm;
    ncclResult_t result;
    CUstream stream;
    ring_call options;
} entered_call;

static bool refuse(entered_call *c, ncclResult_t result)
{
    c->result = result;
    nccl_group_note(result);
    return false;
}

/* Enters the communicator. NCCL's NULL is the legacy stream, and calls of 0 elements do nothing.
 * @return false if the function must return c->result. */
static bool begin(entered_call *c, const char *call, ncclComm_t comm, size_t count,
                  ncclDataType_t type, cudaStream_t stream)
{
    const ncclResult_t entered = nccl_enter(comm, call);
    if (entered != ncclSuccess)
        return refuse(c, entered);
    c->comm = comm;
    c->stream = stream != NULL ? stream : (CUstream)(uintptr_t)1;
    c->options = (ring_call)RING_CALL_INIT;
    c->options.stream = c->stream;
    c->result = ncclSuccess;
    if ((unsigned)type >= ncclNumTypes)
        c->result = nccl_refuse(ncclInvalidArgument, "%s: %d is not a type of NCCL", call,
                                (int)type);
    else if (count > 0)
        c->result = nccl_group_enter(comm);
    if (count > 0 && c->result == ncclSuccess)
        return true;
    nccl_leave(comm);
    return refuse(c, c->result);
}

static ncclResult_t end_with(const entered_call *c, ncclResult_t result)
{
    nccl_leave(c->comm);
    return nccl_group_note(result);
}

static ncclResult_t end(const entered_call *c, ring_status status)
{
    return end_with(c, nccl_result(status));
}

/* @return true for collectives of one rank, which are copies in its stream and can be captured. */
static bool is_alone(const entered_call *c, int root)
{
    return ring_comm_size(c->comm->ring) == 1 && root == 0 && c->options.scale == NULL;
}

static ncclResult_t copy(const entered_call *c, const void *src, void *dst, size_t count,
                         ncclDataType_t type)
{
    const cuda_driver *api = cuda_driver_load();
    const size_t bytes = count * ring_dtype_size((ring_dtype)type);
    CUcontext old;
    if (src == dst)
        return ncclSuccess;
    NCCL_TRY(nccl_cuda(api->push_current(c->comm->context), "cuCtxPushCurrent"));
    const CUresult copied = api->copy_async((CUdeviceptr)(uintptr_t)dst,
                                            (CUdeviceptr)(uintptr_t)src, bytes, c->stream);
    (void)api->pop_current(&old);
    return nccl_cuda(copied, "copying in a communicator of one rank (cuMemcpyAsync)");
}

/* ---- Operations ---------------------------------------------------------------------------- */

static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double value = exponent == 31  ? (double)(mantissa == 0 ? INFINITY : NAN)
                         : exponent == 0 ? ldexp(mantissa, -24)
                                         : ldexp(1024 + mantissa, exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
}

static double bfloat_value(uint16_t bits)
{
    const uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

/* Reads a factor in memory of the host. @return false if premultiplied sums of the type are not
 * supported. */
static bool read_factor(const void *scalar, ncclDataType_t type, double *out)
{
    uint16_t bits;
    float single;
    memcpy(&bits, scalar, sizeof bits);
    if (type == ncclFloat16 || type == ncclBfloat16) {
        *out = type == ncclFloat16 ? half_value(bits) : bfloat_value(bits);
        return true;
    }
    if (type == ncclFloat32) {
        memcpy(&single, scalar, sizeof single);
        *out = single;
        return true;
    }
    if (type == ncclFloat64)
        memcpy(out, scalar, sizeof *out);
    return type == ncclFloat64;
}

/* @return the place of a new operation; -1: no memory. */
static int add_operation(ncclComm_t comm, const premultiplied *p)
{
    int at = 0;
    pthread_mutex_lock(&comm->lock);
    while (at < comm->operation_count && comm->operations[at].used)
        at++;
    if (at == comm->operation_count) {
        premultiplied *longer = realloc(comm->operations, (size_t)(at + 1) * sizeof *longer);
        if (longer == NULL) {
            pthread_mutex_unlock(&comm->lock);
            return -1;
        }
        comm->operations = longer;
        comm->operation_count++;
    }
    comm->operations[at] = *p;
    pthread_mutex_unlock(&comm->lock);
    return at;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm)
{
    premultiplied p = {.used = true, .type = type};
    if (op == NULL || scalar == NULL)
        return nccl_refuse(ncclInvalidArgument, "ncclRedOpCreatePreMulSum: op or scalar is NULL");
    if (residence == ncclScalarDevice && type == ncclFloat64)
        p.on_device = scalar;
    else if (residence == ncclScalarDevice)
        return nccl_refuse(ncclInvalidUsage,
                           "ncclRedOpCreatePreMulSum: libring supports a scalar in memory of the "
                           "GPU only for ncclFloat64; pass it as ncclScalarHostImmediate");
    else if (!read_factor(scalar, type, &p.factor))
        return nccl_refuse(ncclInvalidUsage,
                           "ncclRedOpCreatePreMulSum: libring supports float16, bfloat16, float32 "
                           "and float64, and not type %d",
                           (int)type);
    NCCL_TRY(nccl_enter(comm, "ncclRedOpCreatePreMulSum"));
    const int at = add_operation(comm, &p);
    nccl_leave(comm);
    if (at < 0)
        return nccl_refuse(ncclSystemError, "ncclRedOpCreatePreMulSum: out of memory");
    *op = (ncclRedOp_t)(ncclNumOps + at);
    return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    const int at = (int)op - ncclNumOps;
    if (at < 0)
        return nccl_refuse(ncclInvalidArgument, "ncclRedOpDestroy: operation %d was not created",
                           (int)op);
    NCCL_TRY(nccl_enter(comm, "ncclRedOpDestroy"));
    pthread_mutex_lock(&comm->lock);
    const bool known = at < comm->operation_count && comm->operations[at].used;
    if (known)
        comm->operations[at].used = false;
    pthread_mutex_unlock(&comm->lock);
    nccl_leave(comm);
    return known ? ncclSuccess
                 : nccl_refuse(ncclInvalidArgument,
                               "ncclRedOpDestroy: operation %d was not created, or is destroyed",
                               (int)op);
}

/* Sets the operation, and copies its factor to `factor`, which libring reads before the call
 * returns. @return false if the operation was not created for the type. */
static bool take_operation(entered_call *c, ncclRedOp_t op, ncclDataType_t type, double *factor,
                           ring_op *out)
{
    const int at = (int)op - ncclNumOps;
    *out = at < 0 ? (ring_op)op : RING_PREMUL_SUM;
    if (at < 0)
        return true;
    pthread_mutex_lock(&c->comm->lock);
    const bool known = at < c->comm->operation_count && c->comm->operations[at].used &&
                       c->comm->operations[at].type == type;
    const premultiplied p = known ? c->comm->operations[at] : (premultiplied){.used = false};
    pthread_mutex_unlock(&c->comm->lock);
    *factor = p.factor;
    c->options.scale = p.on_device != NULL ? p.on_device : factor;
    return known;
}

/* ---- Collectives --------------------------------------------------------------------------- */

typedef ring_status (*reduction)(const void *src, void *dst, size_t count, ring_dtype dtype,
                                 ring_op op, ring_comm *comm, const ring_call *call);

/* @param by  NULL: a reduce to @p root. */
static ncclResult_t reduce_by(reduction by, const char *name, const void *src, void *dst,
                              size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                              ncclComm_t comm, cudaStream_t stream)
{
    entered_call c;
    double factor;
    ring_op ring;
    if (!begin(&c, name, comm, count, type, stream))
        return c.result;
    if (!take_operation(&c, op, type, &factor, &ring))
        return end_with(&c, nccl_refuse(ncclInvalidArgument,
                                        "%s: operation %d was not created for type %d", name,
                                        (int)op, (int)type));
    if (is_alone(&c, root))
        return end_with(&c, copy(&c, src, dst, count, type));
    if (by == NULL)
        return end(&c, ring_reduce(src, dst, count, (ring_dtype)type, ring, root, comm->ring,
                                   &c.options));
    return end(&c, by(src, dst, count, (ring_dtype)type, ring, comm->ring, &c.options));
}

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return reduce_by(ring_all_reduce, "ncclAllReduce", src, dst, count, type, op, 0, comm, stream);
}

ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return reduce_by(ring_reduce_scatter, "ncclReduceScatter", src, dst, count, type, op, 0, comm,
                     stream);
}

ncclResult_t ncclReduce(const void *src, void *dst, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return reduce_by(NULL, "ncclReduce", src, dst, count, type, op, root, comm, stream);
}

typedef ring_status (*rooted_move)(const void *src, void *dst, size_t count, ring_dtype dtype,
                                   int root, ring_comm *comm, const ring_call *call);

static ncclResult_t move_by(rooted_move by, const char *name, const void *src, void *dst,
                            size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                            cudaStream_t stream)
{
    entered_call c;
    if (!begin(&c, name, comm, count, type, stream))
        return c.result;
    if (is_alone(&c, root))
        return end_with(&c, copy(&c, src, dst, count, type));
    return end(&c, by(src, dst, count, (ring_dtype)type, root, comm->ring, &c.options));
}

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return move_by(ring_broadcast, "ncclBroadcast", src, dst, count, type, root, comm, stream);
}

ncclResult_t ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                       cudaStream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

ncclResult_t ncclGather(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                        ncclComm_t comm, cudaStream_t stream)
{
    return move_by(ring_gather, "ncclGather", src, dst, count, type, root, comm, stream);
}

ncclResult_t ncclScatter(const void *src, void *dst, size_t count, ncclDataType_t type, int root,
                         ncclComm_t comm, cudaStream_t stream)
{
    return move_by(ring_scatter, "ncclScatter", src, dst, count, type, root, comm, stream);
}

ncclResult_t ncclAllGather(const void *src, void *dst, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    entered_call c;
    if (!begin(&c, "ncclAllGather", comm, count, type, stream))
        return c.result;
    if (is_alone(&c, 0))
        return end_with(&c, copy(&c, src, dst, count, type));
    return end(&c, ring_all_gather(src, dst, count, (ring_dtype)type, comm->ring, &c.options));
}

/* NCCL does not support an alltoall in place, but runs it, and nccl-tests measures it. libring's
 * all_to_all refuses it, so the blocks are messages, whose data is undefined in place. */
static ring_status exchange(const void *src, void *dst, size_t count, ring_dtype type, int root,
                            ring_comm *comm, const ring_call *call)
{
    if (src != dst)
        return ring_all_to_all(src, dst, count, type, comm, call);
    RING_TRY(ring_group_start());
    ring_status status = RING_OK;
    for (int r = 0; r < ring_comm_size(comm) && status == RING_OK; r++) {
        char *block = (char *)dst + (size_t)r * count * ring_dtype_size(type);
        status = ring_send(block, count, type, r, comm, call);
        if (status == RING_OK)
            status = ring_recv(block, count, type, r, comm, call);
    }
    const ring_status ended = ring_group_end();
    return status != RING_OK ? status : ended;
}

ncclResult_t ncclAlltoAll(const void *src, void *dst, size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream)
{
    return move_by(exchange, "ncclAlltoAll", src, dst, count, type, 0, comm, stream);
}

/* ---- Messages ------------------------------------------------------------------------------ */

ncclResult_t ncclSend(const void *src, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    entered_call c;
    if (!begin(&c, "ncclSend", comm, count, type, stream))
        return c.result;
    return end(&c, ring_send(src, count, (ring_dtype)type, peer, comm->ring, &c.options));
}

ncclResult_t ncclRecv(void *dst, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    entered_call c;
    if (!begin(&c, "ncclRecv", comm, count, type, stream))
        return c.result;
    return end(&c, ring_recv(dst, count, (ring_dtype)type, peer, comm->ring, &c.options));
}
