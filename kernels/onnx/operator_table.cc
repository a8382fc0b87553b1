#include "kernels/onnx/operator_table.h"

#include <algorithm>

#include "kernels/onnx/expand.h"
#include "kernels/onnx/fold.h"
#include "kernels/onnx/infer.h"
#include "kernels/onnx/lower.h"

namespace opmill::onnx {
namespace {

constexpr OperatorRow Unary(absl::string_view name, absl::string_view schema,
                            absl::string_view attributes = {}) {
  return {.name = name,
          .attributes = attributes,
          .infer = InferSame,
          .lower = LowerElementWise,
          .schema = schema};
}
constexpr OperatorRow Binary(absl::string_view name, absl::string_view schema,
                             void (*infer)(NodeReader&, Types&) = InferBinary) {
  return {.name = name,
          .least_inputs = 2,
          .most_inputs = 2,
          .infer = infer,
          .lower = LowerElementWise,
          .schema = schema};
}
constexpr OperatorRow Reduce(absl::string_view name) {
  return {.name = name,
          .most_inputs = 2,
          .attributes = "keepdims noop_with_empty_axes",
          .infer = InferReduce,
          .lower = LowerReduce,
          .form_inputs = 0b10};
}

constexpr OperatorRow Softmax(absl::string_view name, absl::string_view schema) {
  return {.name = name,
          .attributes = "axis is_flattened",
          .infer = InferAlongAxis,
          .expand = ExpandSoftmax,
          .lower = LowerSoftmax,
          .schema = schema};
}

constexpr absl::string_view kWindow = "auto_pad dilations group kernel_shape pads strides";
constexpr absl::string_view kRecurrent =
    "activations activation_alpha activation_beta clip direction hidden_size input_forget layout "
    "linear_before_reset";

// By name.
constexpr OperatorRow kRows[] = {
    Unary("Abs", "abs"),
    Unary("Acos", "acos"),
    Unary("Acosh", "acosh"),
    Binary("Add", "element_wise_add"),
    Binary("And", "logical_and", InferCompare),
    {"ArgMax", 1, 1, "axis keepdims select_last_index", InferArg, nullptr, nullptr, LowerArg},
    {"ArgMin", 1, 1, "axis keepdims select_last_index", InferArg, nullptr, nullptr, LowerArg},
    Unary("Asin", "asin"),
    Unary("Asinh", "asinh"),
    Unary("Atan", "atan"),
    Unary("Atanh", "atanh"),
    {"AveragePool", 1, 1,
     "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides", InferPool, nullptr,
     nullptr, LowerPool, "average_pooling"},
    {"BatchNormalization", 5, 5, "epsilon momentum spatial training_mode", nullptr,
     ExpandBatchNormalization},
    {"BitShift", 2, 2, "direction", InferBinary, nullptr, nullptr, LowerBitShift},
    Binary("BitwiseAnd", "bit_and"),
    Unary("BitwiseNot", "bit_not"),
    Binary("BitwiseOr", "bit_or"),
    Binary("BitwiseXor", "bit_xor"),
    {"Cast", 1, 1, "round_mode saturate to", InferCast, ExpandCast, FoldCast, LowerCast},
    {"CastLike", 2, 2, "round_mode saturate", nullptr, ExpandCastLike},
    Unary("Ceil", "ceil"),
    Unary("Celu", "celu", "alpha"),
    {"Clip", 1, 3, {}, InferSame, ExpandClip, nullptr, LowerClip},
    {"Concat", 1, kAnyNumber, "axis", InferConcat, ExpandConcat, FoldConcat, LowerConcat},
    {"ConstantOfShape", 1, 1, "value", nullptr, ExpandConstantOfShape, nullptr, nullptr, {}, 0b1},
    {"Conv", 2, 3, kWindow, InferConv, nullptr, nullptr, LowerConv},
    {"ConvTranspose", 2, 3,
     "auto_pad dilations group kernel_shape output_padding output_shape pads strides",
     InferConvTranspose, nullptr, nullptr, LowerConv},
    Unary("Cos", "cos"),
    Unary("Cosh", "cosh"),
    {"CumSum", 2, 2, "exclusive reverse", InferSame, nullptr, nullptr, LowerCumSum, {}, 0b10},
    {"DepthToSpace", 1, 1, "blocksize mode", nullptr, ExpandDepthToSpace},
    Binary("Div", "divide"),
    {"Dropout", 1, 3, "seed", nullptr, ExpandDropout},
    Unary("Elu", "elu", "alpha"),
    Binary("Equal", "logical_equals", InferCompare),
    Unary("Erf", "erf"),
    Unary("Exp", "exp"),
    {"Expand", 2, 2, {}, InferExpand, nullptr, nullptr, LowerExpand, {}, 0b10},
    {"Flatten", 1, 1, "axis", InferFlatten, nullptr, nullptr, LowerReshape},
    Unary("Floor", "floor"),
    {"GRU", 3, 6, kRecurrent, nullptr, ExpandGru},
    {"Gather", 2, 2, "axis", InferGather, ExpandGather, FoldGather, LowerGather},
    {"GatherElements", 2, 2, "axis", InferGatherElements, nullptr, nullptr, LowerGatherElements},
    {"GatherND", 2, 2, "batch_dims", InferGatherNd, nullptr, nullptr, LowerGatherNd},
    {"Gelu", 1, 1, "approximate", InferSame, ExpandGelu, nullptr, LowerElementWise, "gelu"},
    {"Gemm", 2, 3, "alpha beta transA transB", InferGemm, nullptr, nullptr, LowerGemm},
    {"GlobalAveragePool", 1, 1, {}, nullptr, ExpandGlobalPool},
    {"GlobalMaxPool", 1, 1, {}, nullptr, ExpandGlobalPool},
    Binary("Greater", "logical_greater_than", InferCompare),
    Binary("GreaterOrEqual", "logical_greater_than_or_equal", InferCompare),
    Unary("HardSigmoid", "hard_sigmoid", "alpha beta"),
    Unary("HardSwish", "hard_swish"),
    Softmax("Hardmax", "hardmax"),
    {"Identity", 1, 1, {}, nullptr, ExpandIdentity},
    {"InstanceNormalization", 3, 3, "epsilon", InferInstanceNormalization, nullptr, nullptr,
     LowerInstanceNormalization},
    {"IsInf", 1, 1, "detect_negative detect_positive", InferTruth, nullptr, nullptr, LowerIsInf},
    {"IsNaN", 1, 1, {}, InferTruth, nullptr, nullptr, LowerElementWise, "is_nan"},
    {"LRN", 1, 1, "alpha beta bias size", InferLrn, nullptr, nullptr, LowerLrn},
    {"LSTM", 3, 8, kRecurrent, nullptr, ExpandLstm},
    {"LayerNormalization", 2, 3, "axis epsilon stash_type", InferLayerNormalization,
     ExpandLayerNormalization, nullptr, LowerLayerNormalization},
    Unary("LeakyRelu", "leaky_relu", "alpha"),
    Binary("Less", "logical_less_than", InferCompare),
    Binary("LessOrEqual", "logical_less_than_or_equal", InferCompare),
    Unary("Log", "log"),
    Softmax("LogSoftmax", "log_softmax"),
    {"LpPool", 1, 1, "auto_pad ceil_mode dilations kernel_shape p pads strides", InferPool, nullptr,
     nullptr, LowerPool, "lp_pooling"},
    {"MatMul", 2, 2, {}, InferMatMul, nullptr, nullptr, LowerMatMul},
    {"Max",
     1,
     kAnyNumber,
     {},
     InferBinary,
     ExpandVariadic,
     nullptr,
     LowerElementWise,
     "element_wise_max"},
    {"MaxPool", 1, 1, "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
     InferPool, nullptr, nullptr, LowerPool, "max_pooling"},
    {"Mean", 1, kAnyNumber, {}, nullptr, ExpandMean},
    {"Min",
     1,
     kAnyNumber,
     {},
     InferBinary,
     ExpandVariadic,
     nullptr,
     LowerElementWise,
     "element_wise_min"},
    {"Mod", 2, 2, "fmod", InferBinary, nullptr, nullptr, LowerMod},
    Binary("Mul", "multiply"),
    Unary("Neg", "negate"),
    {"NonZero", 1, 1, {}, InferNonZero, nullptr, FoldNonZero, nullptr, {}, 0b1},
    {"Not", 1, 1, {}, InferTruth, nullptr, nullptr, LowerElementWise, "logical_not"},
    Binary("Or", "logical_or", InferCompare),
    {"PRelu", 2, 2, {}, InferBinary, ExpandPRelu, nullptr, LowerElementWise, "parameterized_relu"},
    {"Pad", 2, 4, "mode", InferPad, nullptr, FoldPad, LowerPad, {}, 0b1010},
    {"Pow", 2, 2, {}, InferBinary, ExpandPow, nullptr, LowerElementWise, "pow"},
    {"Range", 3, 3, {}, InferRange, nullptr, FoldRange, nullptr, {}, 0b111},
    Unary("Reciprocal", "recip"),
    Reduce("ReduceL1"),
    Reduce("ReduceL2"),
    Reduce("ReduceLogSum"),
    Reduce("ReduceLogSumExp"),
    Reduce("ReduceMax"),
    Reduce("ReduceMean"),
    Reduce("ReduceMin"),
    Reduce("ReduceProd"),
    Reduce("ReduceSum"),
    Reduce("ReduceSumSquare"),
    Unary("Relu", "relu"),
    {"Reshape", 2, 2, "allowzero", InferReshape, nullptr, nullptr, LowerReshape, {}, 0b10},
    {"Resize",
     2,
     4,
     "antialias axes coordinate_transformation_mode cubic_coeff_a exclude_outside "
     "extrapolation_value keep_aspect_ratio_policy mode nearest_mode",
     InferResize,
     nullptr,
     nullptr,
     LowerResize,
     {},
     0b1100},
    Unary("Round", "round"),
    {"ScatterElements", 3, 3, "axis reduction", InferScatter, nullptr, nullptr,
     LowerScatterElements},
    {"ScatterND", 3, 3, "reduction", InferScatter, nullptr, FoldScatterNd},
    Unary("Selu", "scaled_elu", "alpha gamma"),
    {"Shape", 1, 1, "end start", nullptr, ExpandShape},
    Unary("Shrink", "shrink", "bias threshold"),
    Unary("Sigmoid", "sigmoid"),
    Unary("Sign", "sign"),
    Unary("Sin", "sin"),
    Unary("Sinh", "sinh"),
    {"Size", 1, 1, {}, nullptr, ExpandSize},
    {"Slice", 3, 5, {}, InferSlice, nullptr, FoldSlice, LowerSlice, {}, 0b11110},
    Softmax("Softmax", "softmax"),
    Unary("Softplus", "softplus"),
    Unary("Softsign", "softsign"),
    {"SpaceToDepth", 1, 1, "blocksize", nullptr, ExpandSpaceToDepth},
    {"Split", 1, 2, "axis num_outputs", InferSplit, nullptr, nullptr, LowerSplit, {}, 0b10},
    Unary("Sqrt", "sqrt"),
    {"Squeeze", 1, 2, {}, InferSqueeze, nullptr, nullptr, LowerReshape, {}, 0b10},
    Binary("Sub", "subtract"),
    {"Sum", 1, kAnyNumber, {}, nullptr, ExpandVariadic},
    Unary("Swish", "swish", "sigmoid_input_scale"),
    Unary("Tan", "tan"),
    Unary("Tanh", "tanh"),
    Unary("ThresholdedRelu", "thresholded_relu", "alpha"),
    {"Tile", 2, 2, {}, InferTile, nullptr, nullptr, LowerTile, {}, 0b10},
    {"TopK", 2, 2, "axis largest sorted", InferTopK, nullptr, nullptr, LowerTopK, {}, 0b10},
    {"Transpose", 1, 1, "perm", InferTranspose, nullptr, nullptr, LowerTranspose},
    {"Unsqueeze", 2, 2, {}, InferUnsqueeze, nullptr, nullptr, LowerReshape, {}, 0b10},
    {"Where", 3, 3, {}, InferWhere, nullptr, nullptr, LowerElementWise, "if"},
    Binary("Xor", "logical_xor", InferCompare),
};

constexpr bool IsBefore(const OperatorRow& a, const OperatorRow& b) { return a.name < b.name; }
static_assert(std::is_sorted(std::begin(kRows), std::end(kRows), IsBefore));

}  // namespace

absl::Span<const OperatorRow> OperatorRows() { return kRows; }

const OperatorRow* FindOperator(absl::string_view name) {
  const auto found = std::lower_bound(
      std::begin(kRows), std::end(kRows), name,
      [](const OperatorRow& row, absl::string_view wanted) { return row.name < wanted; });
  return found != std::end(kRows) && found->name == name ? found : nullptr;
}

}  // namespace opmill::onnx
