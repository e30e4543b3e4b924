/* SPDX-License-Identifier: Apache-2.0
 *
 * Implements the folds of one element type. Results are combined in registers, a few vectors at a
 * time, and stored to all outputs. fold.h includes this file once for each type, after it has
 * defined:
 *     SUFFIX  the suffix of the names (fold.h maps the plain names below to them)
 *     TYPE    the type of the arithmetic; unsigned for integers, so that sums and products wrap
 *     ORDER   the type of comparisons
 *     BITS    the signed integer of the same size
 *     FLOAT   defined for floats
 *     BYTES   defined for the type that also combines bits, for elements of any type
 *     WIDEN, NARROW, STORED, STORED_VECTOR
 *             defined for floats of 16 and 8 bits: the casts, and the types of a stored element
 *             and of a stored vector */

typedef VECTOR_OF(TYPE, LEVEL_BYTES) vector;
typedef VECTOR_OF(ORDER, LEVEL_BYTES) order;
typedef VECTOR_OF(BITS, LEVEL_BYTES) bits;

/* ---- Loads and stores: a whole vector, or one element as the first of a vector of zeros ---- */

static ALWAYS_INLINE vector load(const kernel_operand in, size_t at)
{
#ifdef WIDEN
    if (!in.accumulator)
        return WIDEN(*(const STORED_VECTOR *)((const STORED *)in.data + at));
#endif
    return *(const vector *)((const TYPE *)in.data + at);
}

static ALWAYS_INLINE vector load_one(const kernel_operand in, size_t at)
{
#ifdef WIDEN
    if (!in.accumulator)
        return WIDEN((STORED_VECTOR){((const STORED *)in.data)[at]});
#endif
    return (vector){((const TYPE *)in.data)[at]};
}

static ALWAYS_INLINE void store(const kernel_operand out, size_t at, vector x, const bool stream)
{
#ifdef WIDEN
    if (!out.accumulator) {
        *(STORED_VECTOR *)((STORED *)out.data + at) = NARROW(x);
        return;
    }
#endif
    vector *to = (vector *)((TYPE *)out.data + at);
    if (stream)
        LEVEL_STREAM(to, x);
    else
        *to = x;
}

static ALWAYS_INLINE void store_one(const kernel_operand out, size_t at, vector x)
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

static ALWAYS_INLINE vector pick(bits mask, vector a, vector b)
{
    return (vector)((mask & (bits)a) | (~mask & (bits)b));
}

#ifdef FLOAT

/* If one of the two is less, both picks return it. Otherwise they are equal or there is a NaN, and
 * "or" combines the bits of both, so that -0 is below +0, and a NaN stays a NaN. */
static ALWAYS_INLINE vector least(vector a, vector b)
{
    return (vector)((bits)pick(a < b, a, b) | (bits)pick(b < a, b, a));
}

static ALWAYS_INLINE vector greatest(vector a, vector b)
{
    return -least(-a, -b);
}

/* Divides if @p divisor is not 0. Sets all bits of a NaN, because otherwise its bits would depend
 * on the order in which the compiler adds two NaNs. */
static ALWAYS_INLINE vector finish(vector x, int divisor)
{
    if (divisor != 0)
        x /= (TYPE)divisor;
    return (vector)((bits)x | (x != x));
}

#else

static ALWAYS_INLINE vector least(vector a, vector b)
{
    return pick((order)a < (order)b, a, b);
}

static ALWAYS_INLINE vector greatest(vector a, vector b)
{
    return pick((order)a < (order)b, b, a);
}

/* Integers are divided after the fold, by divide() of kernel_calls.c. */
static ALWAYS_INLINE vector finish(vector x, int divisor)
{
    (void)divisor;
    return x;
}

/* @return 1 for each element that is not 0, and 0 for the others. */
static ALWAYS_INLINE vector truth(vector x)
{
    return (vector)(x != 0) & 1;
}

#endif

/* @return the partial result of the first input alone. */
static ALWAYS_INLINE vector enter(vector x, const ring_op op)
{
#ifndef FLOAT
    if (kernel_is_logical(op))
        return truth(x);
#endif
    (void)op;
    return x;
}

static ALWAYS_INLINE vector combine(vector a, vector b, const ring_op op)
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

/* ---- Loops: outs[k] (count) = finish(ins[0] op ins[1] op …) (count) ---- */

/* Folds the elements from @p at on in steps of @p width vectors. Each step loads and combines the
 * vectors of one input after the other, and then stores the results to each output.
 * @param stream  store around the caches. @return the first element of the rest, which is less than
 * a step. */
static ALWAYS_INLINE size_t sweep(const fold_job *job, size_t at, const size_t width,
                                  const ring_op op, const bool stream)
{
    const size_t count = LEVEL_BYTES / sizeof(TYPE), step = width * count, end = job->end;
    const int in_count = job->in_count, out_count = job->out_count, divisor = job->divisor;
    for (; end - at >= step; at += step) {
        vector x[FOLD_WIDTH];
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

/* Folds the last elements, which do not fill a vector, one by one. */
static ALWAYS_INLINE void edge(const fold_job *job, size_t at, const ring_op op)
{
    for (; at < job->end; at++) {
        vector x = enter(load_one(job->ins[0], at), op);
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
#undef STORED_VECTOR
