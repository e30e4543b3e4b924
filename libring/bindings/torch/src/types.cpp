// SPDX-License-Identifier: Apache-2.0
// Maps types and reductions with tables, and throws for combinations that have no meaning.
#include "types.h"

#include <c10/util/Exception.h>

namespace ring_torch
{

namespace
{

// Returns libring's type if it has the same one.
std::optional<ring_dtype> same_type(at::ScalarType type)
{
    switch (type) {
    case at::kChar:
        return RING_INT8;
    case at::kByte:
        return RING_UINT8;
    case at::kShort:
        return RING_INT16;
    case at::kUInt16:
        return RING_UINT16;
    case at::kInt:
        return RING_INT32;
    case at::kUInt32:
        return RING_UINT32;
    case at::kLong:
        return RING_INT64;
    case at::kUInt64:
        return RING_UINT64;
    case at::kHalf:
        return RING_FLOAT16;
    case at::kBFloat16:
        return RING_BFLOAT16;
    case at::kFloat:
        return RING_FLOAT32;
    case at::kDouble:
        return RING_FLOAT64;
    case at::kFloat8_e4m3fn:
        return RING_FLOAT8_E4M3;
    case at::kFloat8_e5m2:
        return RING_FLOAT8_E5M2;
    default:
        return std::nullopt;
    }
}

// Returns the elements of a type that consists of one or two elements of a libring type.
std::optional<Elements> elements_of(at::ScalarType type)
{
    switch (type) {
    case at::kBool:
        return Elements{RING_UINT8, 1};
    case at::kComplexHalf:
        return Elements{RING_FLOAT16, 2};
    case at::kComplexFloat:
        return Elements{RING_FLOAT32, 2};
    case at::kComplexDouble:
        return Elements{RING_FLOAT64, 2};
    default:
        if (auto same = same_type(type))
            return Elements{*same, 1};
        return std::nullopt;
    }
}

ring_op op_of(c10d::ReduceOp::RedOpType op)
{
    switch (op) {
    case c10d::ReduceOp::SUM:
        return RING_SUM;
    case c10d::ReduceOp::AVG:
        return RING_AVG;
    case c10d::ReduceOp::PRODUCT:
        return RING_PROD;
    case c10d::ReduceOp::MIN:
        return RING_MIN;
    case c10d::ReduceOp::MAX:
        return RING_MAX;
    case c10d::ReduceOp::BAND:
        return RING_BAND;
    case c10d::ReduceOp::BOR:
        return RING_BOR;
    case c10d::ReduceOp::BXOR:
        return RING_BXOR;
    case c10d::ReduceOp::PREMUL_SUM:
        return RING_PREMUL_SUM;
    default:
        TORCH_CHECK_VALUE(false, "ring: unknown reduction ", int(op));
    }
}

// A bool is a byte of 0 or 1. The sum of bools is true if any of them is true, as in torch.any().
ring_op op_of_bools(c10d::ReduceOp::RedOpType op)
{
    switch (op) {
    case c10d::ReduceOp::SUM:
    case c10d::ReduceOp::MAX:
    case c10d::ReduceOp::BOR:
        return RING_LOR;
    case c10d::ReduceOp::PRODUCT:
    case c10d::ReduceOp::MIN:
    case c10d::ReduceOp::BAND:
        return RING_LAND;
    case c10d::ReduceOp::BXOR:
        return RING_LXOR;
    default:
        TORCH_CHECK_VALUE(false, "ring: bool tensors have no average and no scaled sum; convert "
                                 "them to a float type first");
    }
}

#if RING_TORCH_FROM(13)
using Supplement = c10d::PreMulSumSupplement;
#else
using Supplement = c10d::NCCLPreMulSumSupplement;
#endif

double scale_of(const c10d::ReduceOp &op)
{
    auto *supplement = dynamic_cast<Supplement *>(op.supplement_.get());
    TORCH_CHECK_VALUE(supplement, "ring: PREMUL_SUM needs a factor");
    const at::Tensor &factor = supplement->tensor_factor;
    return factor.defined() ? factor.item<double>() : supplement->double_factor;
}

} // namespace

Elements moved_elements(at::ScalarType type)
{
    if (auto elements = elements_of(type))
        return *elements;
    return {RING_UINT8, c10::elementSize(type)};
}

Reduction reduction_of(const c10d::ReduceOp &op, at::ScalarType type)
{
    auto elements = elements_of(type);
    TORCH_CHECK_VALUE(elements, "ring: tensors of ", c10::toString(type),
                      " cannot be reduced; convert them to a type that torch can add");
    Reduction reduction{*elements, RING_SUM, std::nullopt};
    reduction.op = type == at::kBool ? op_of_bools(op.op_) : op_of(op.op_);
    TORCH_CHECK_VALUE(!c10::isComplexType(type) ||
                          c10d::isComplexViewAsRealAllowed(op), // sums only
                      "ring: complex tensors can be reduced only with SUM and AVG");
    bool bits = reduction.op >= RING_BAND && reduction.op <= RING_BXOR;
    TORCH_CHECK_VALUE(!bits || c10::isIntegralType(type, true),
                      "ring: cannot use ReduceOp.BAND, BOR or "
                      "BXOR with non-integral dtype ",
                      c10::toString(type));
    if (reduction.op == RING_PREMUL_SUM) {
        TORCH_CHECK_VALUE(!c10::isIntegralType(type, true),
                          "ring: PREMUL_SUM scales floats only; for ", c10::toString(type),
                          " use SUM and multiply afterwards");
        reduction.scale = scale_of(op);
    }
    return reduction;
}

} // namespace ring_torch
