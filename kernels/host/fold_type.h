/* SPDX-License-Identifier: Apache-2.0
 *
 * The folds of one element type. fold.h includes this once a type, with
 *     SUFFIX  of the names made here (fold.h maps the plain names below to them)
 *     TYPE    what is combined; unsigned for integers, so that sums and products wrap
 *     ORDER   the type that orders
 *     BITS    the signed integer of the same size
 *     FLOAT   defined for floats
 *     BYTES   defined for what also combines bits, of any type
 *     WIDEN, NARROW, STORED, STORED_LANES  of floats of 16 and 8 bits: the casts, and what is
 *             stored of an element and of a vector; else not defined
 *
 * A result is combined in registers, some vectors at a time, and stored to all outputs. */

typedef VECTOR_OF(TYPE, LEVEL_BYTES) lanes;
typedef VECTOR_OF(ORDER, LEVEL_BYTES) order;
typedef VECTOR_OF(BITS, LEVEL_BYTES) bits;

/* ---- Loads and stores: a vector, or one element in the first lane ---- */

static ALWAYS_INLINE lanes load(const kernel_operand in, size_t at)
{
#ifdef WIDEN
    if (!in.accumulator)
        return WIDEN(*(const STORED_LANES *)((const STORED *)in.data + at));
#endif
    return *(const lanes *)((const TYPE *)in.data + at);
}

static ALWAYS_INLINE lanes load_one(const kernel_operand in, size_t at)
{
#ifdef WIDEN
    if (!in.accumulator)
        return WIDEN((STORED_LANES){((const STORED *)in.data)[at]});
#endif
    return (lanes){((const TYPE *)in.data)[at]};
}

static ALWAYS_INLINE void store(const kernel_operand out, size_t at, lanes x, const bool stream)
{
#ifdef WIDEN
    if (!out.accumulator) {
        *(STORED_LANES *)((STORED *)out.data + at) = NARROW(x);
        return;
    }
#endif
    lanes *to = (lanes *)((TYPE *)out.data + at);
    if (stream)
        LEVEL_STREAM(to, x);
    else
        *to = x;
}

static ALWAYS_INLINE void store_one(const kernel_operand out, size_t at, lanes x)
{
#ifdef WIDEN
    if (!out.accumulator) {
        ((STORED *)out.data)[at] = NARROW(x)[0];
        return;
    }
#endif
    ((TYPE *)out.data)[at] = x[0];
}

/* ---- Operations ---- */

static ALWAYS_INLINE lanes pick(bits mask, lanes a, lanes b)
{
    return (lanes)((mask & (bits)a) | (~mask & (bits)b));
}

#ifdef FLOAT

/* Equal zeros keep the bits of both, so that -0 is below +0; so do NaNs, and stay NaNs. */
static ALWAYS_INLINE lanes least(lanes a, lanes b)
{
    return (lanes)((bits)pick(a < b, a, b) | (bits)pick(b < a, b, a));
}

static ALWAYS_INLINE lanes greatest(lanes a, lanes b)
{
    return -least(-a, -b);
}

/* A NaN gets all bits set: which of two NaNs an addition passes on is up to the compiler. */
static ALWAYS_INLINE lanes finish(lanes x, int divisor)
{
    if (divisor != 0)
        x /= (TYPE)divisor;
    return (lanes)((bits)x | (x != x));
}

#else

static ALWAYS_INLINE lanes least(lanes a, lanes b)
{
    return pick((order)a < (order)b, a, b);
}

static ALWAYS_INLINE lanes greatest(lanes a, lanes b)
{
    return pick((order)a < (order)b, b, a);
}

/* Integers are divided when the fold is done, see divide(). */
static ALWAYS_INLINE lanes finish(lanes x, int divisor)
{
    (void)divisor;
    return x;
}

/* 1 if the element is not 0, else 0. */
static ALWAYS_INLINE lanes truth(lanes x)
{
    return (lanes)(x != 0) & 1;
}

#endif

/* The first input as a partial result. */
static ALWAYS_INLINE lanes enter(lanes x, const ring_op op)
{
#ifndef FLOAT
    if (kernel_is_logical(op))
        return truth(x);
#endif
    (void)op;
    return x;
}

static ALWAYS_INLINE lanes combine(lanes a, lanes b, const ring_op op)
{
    switch (op) {
    case RING_PROD:
        return a * b;
    case RING_MAX:
        return greatest(a, b);
    case RING_MIN:
        return least(a, b);
#ifdef BYTES
    case RING_BAND:
        return a & b;
    case RING_BOR:
        return a | b;
    case RING_BXOR:
        return a ^ b;
#endif
#ifndef FLOAT
    case RING_LAND:
        return a & truth(b);
    case RING_LOR:
        return a | truth(b);
    case RING_LXOR:
        return a ^ truth(b);
#endif
    default:
        return a + b;
    }
}

/* ---- Loops ---- */

/* Folds from @p at in steps of @p width vectors. @return where less than a step is left. */
static ALWAYS_INLINE size_t sweep(const fold_job *job, size_t at, const size_t width,
                                  const ring_op op, const bool stream)
{
    const size_t count = LEVEL_BYTES / sizeof(TYPE), step = width * count, end = job->end;
    const int in_count = job->in_count, out_count = job->out_count, divisor = job->divisor;
    for (; end - at >= step; at += step) {
        lanes x[FOLD_WIDTH];
        const kernel_operand first = job->ins[0];
        for (size_t j = 0; j < width; j++)
            x[j] = enter(load(first, at + j * count), op);
        for (int k = 1; k < in_count; k++) {
            const kernel_operand in = job->ins[k];
            for (size_t j = 0; j < width; j++)
                x[j] = combine(x[j], load(in, at + j * count), op);
        }
        for (size_t j = 0; j < width; j++)
            x[j] = finish(x[j], divisor);
        for (int k = 0; k < out_count; k++) {
            const kernel_operand out = job->outs[k];
            for (size_t j = 0; j < width; j++)
                store(out, at + j * count, x[j], stream);
        }
    }
    return at;
}

/* The few elements that fill no vector. */
static ALWAYS_INLINE void edge(const fold_job *job, size_t at, const ring_op op)
{
    for (; at < job->end; at++) {
        lanes x = enter(load_one(job->ins[0], at), op);
        for (int k = 1; k < job->in_count; k++)
            x = combine(x, load_one(job->ins[k], at), op);
        x = finish(x, job->divisor);
        for (int k = 0; k < job->out_count; k++)
            store_one(job->outs[k], at, x);
    }
}

static ALWAYS_INLINE void fold_op(const fold_job *job, const ring_op op)
{
    size_t at = job->begin;
    if (job->stream) {
        at = sweep(job, at, FOLD_WIDTH, op, true);
        LEVEL_FENCE();
    }
    at = sweep(job, at, FOLD_WIDTH, op, false);
    at = sweep(job, at, 1, op, false);
    edge(job, at, op);
}

#ifdef FLOAT

static void scale_type(const kernel_operand out, const kernel_operand in, size_t count, double by)
{
    const size_t step = LEVEL_BYTES / sizeof(TYPE);
    const TYPE factor = (TYPE)by;
    size_t at = 0;
    for (; count - at >= step; at += step)
        store(out, at, finish(load(in, at) * factor, 0), false);
    for (; at < count; at++)
        store_one(out, at, finish(load_one(in, at) * factor, 0));
}

#endif

static void fold_type(fold_job *job)
{
    switch (job->op) {
    case RING_PROD:
        fold_op(job, RING_PROD);
        break;
    case RING_MAX:
        fold_op(job, RING_MAX);
        break;
    case RING_MIN:
        fold_op(job, RING_MIN);
        break;
#ifdef BYTES
    case RING_BAND:
        fold_op(job, RING_BAND);
        break;
    case RING_BOR:
        fold_op(job, RING_BOR);
        break;
    case RING_BXOR:
        fold_op(job, RING_BXOR);
        break;
#endif
#ifndef FLOAT
    case RING_LAND:
        fold_op(job, RING_LAND);
        break;
    case RING_LOR:
        fold_op(job, RING_LOR);
        break;
    case RING_LXOR:
        fold_op(job, RING_LXOR);
        break;
#endif
    default:
        fold_op(job, RING_SUM);
    }
}

#undef SUFFIX
#undef TYPE
#undef ORDER
#undef BITS
#undef FLOAT
#undef BYTES
#undef WIDEN
#undef NARROW
#undef STORED
#undef STORED_LANES
