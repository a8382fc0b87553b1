#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

constexpr TensorSchema kInputs[] = {{.name = "a"}, {.name = "b"}, {.name = "c", .optional = true}};
constexpr TensorSchema kOutputs[] = {{.name = "output"}};
constexpr absl::string_view kTransforms[] = {"NONE", "TRANSPOSE"};
constexpr AttributeSchema kAttributes[] = {
    {.name = "trans_a",
     .kind = AttributeKind::kChoice,
     .choices = kTransforms,
     .default_text = "NONE"},
    {.name = "trans_b",
     .kind = AttributeKind::kChoice,
     .choices = kTransforms,
     .default_text = "NONE"},
    {.name = "alpha", .kind = AttributeKind::kFloat, .default_text = "1"},
    {.name = "beta", .kind = AttributeKind::kFloat, .default_text = "1"}};

constexpr FeatureLevelRow kRows[] = {{FeatureLevel::k4_0, 2, 4, kFloats},
                                     {FeatureLevel::k1_0, 4, 4, kFloats}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

// Checks that an input has the rank and the type of `a`.
absl::Status CheckLikeA(const OperatorDesc& desc, size_t input) {
  RETURN_IF_ERROR(CheckRank(desc, input));
  return CheckType(desc, input);
}

absl::Status CheckSize(absl::string_view name, size_t axis, uint32_t size, uint32_t wanted,
                       absl::string_view what) {
  if (size == wanted) return absl::OkStatus();
  const std::string field = absl::StrCat(name, ".sizes[", axis, "]");
  return InvalidField(field, absl::StrCat(field, " is ", size, ", but ", what, " ", wanted, "."));
}

absl::Status Infer(const OperatorDesc& operator_desc, std::vector<InferredOutput>& outputs) {
  const GemmDesc desc = GemmDesc::From(operator_desc);
  const size_t rank = desc.a.sizes.size();
  if (rank < 2) {
    return InvalidField("a.sizes",
                        absl::StrCat("a.sizes has ", rank, " dimensions; a matrix has 2 or more."));
  }
  RETURN_IF_ERROR(CheckLikeA(operator_desc, 1));
  for (size_t d = 0; d + 2 < rank; ++d) {
    RETURN_IF_ERROR(CheckSize("b", d, desc.b.sizes[d], desc.a.sizes[d], "a has"));
  }
  const MatrixLayout a = LayoutOf(desc.a, desc.trans_a);
  const MatrixLayout b = LayoutOf(desc.b, desc.trans_b);
  const bool is_transposed = desc.trans_b == MatrixTransform::kTranspose;
  RETURN_IF_ERROR(CheckSize("b", rank - (is_transposed ? 1 : 2), b.rows, a.columns,
                            "the sum over the columns of A has length"));
  std::vector<uint32_t> sizes = desc.a.sizes;
  sizes[rank - 2] = a.rows;
  sizes[rank - 1] = b.columns;
  if (desc.c.has_value()) {
    RETURN_IF_ERROR(CheckLikeA(operator_desc, 2));
    for (size_t d = 0; d < rank; ++d) {
      RETURN_IF_ERROR(CheckSize("c", d, desc.c->sizes[d], sizes[d], "the product has"));
    }
  }
  outputs = {{.sizes = std::move(sizes), .data_type = desc.a.data_type}};
  return absl::OkStatus();
}

}  // namespace

constinit const OperatorSchema kGemmSchema = {.name = "gemm",
                                              .alias = "matmul",
                                              .summary = "alpha * A * B + beta * C, of matrices",
                                              .inputs = kInputs,
                                              .outputs = kOutputs,
                                              .attributes = kAttributes,
                                              .family = OperatorFamily::kGemm,
                                              .support = kSupport,
                                              .infer = &Infer};

std::vector<const OperatorSchema*> GemmOperators() { return {&kGemmSchema}; }

GemmDesc::operator OperatorDesc() const {
  OperatorDesc desc = {
      .schema = &kGemmSchema,
      .inputs = {a, b},
      .outputs = {output},
      .attributes = {static_cast<uint32_t>(trans_a), static_cast<uint32_t>(trans_b), alpha, beta}};
  if (c.has_value()) desc.inputs.push_back(*c);
  return desc;
}

GemmDesc GemmDesc::From(const OperatorDesc& desc) {
  GemmDesc gemm = {.a = desc.inputs[0],
                   .b = desc.inputs[1],
                   .output = desc.outputs[0],
                   .trans_a = desc.choice<MatrixTransform>("trans_a"),
                   .trans_b = desc.choice<MatrixTransform>("trans_b"),
                   .alpha = desc.value<float>("alpha"),
                   .beta = desc.value<float>("beta")};
  if (desc.inputs.size() > 2) gemm.c = desc.inputs[2];
  return gemm;
}

ProductDims GemmDesc::BatchDims() const {
  ProductDims dims = DimsOf<4>(a, kProductA);
  SetStrides(dims, kProductB, b);
  if (addend() != nullptr) SetStrides(dims, kProductAddend, *addend());
  SetStrides(dims, kProductOutput, *output);
  dims.resize(dims.size() - 2);
  return dims;
}

MatrixLayout LayoutOf(const TensorDesc& tensor, MatrixTransform transform) {
  const std::vector<uint32_t> strides = EffectiveStrides(tensor);
  const size_t last = strides.size() - 1;
  MatrixLayout layout = {tensor.sizes[last - 1], tensor.sizes[last], strides[last - 1],
                         strides[last]};
  if (transform == MatrixTransform::kTranspose) {
    std::swap(layout.rows, layout.columns);
    std::swap(layout.row_stride, layout.column_stride);
  }
  return layout;
}

}  // namespace opmill
