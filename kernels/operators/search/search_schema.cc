#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/input_checks.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/search/search_desc.h"

namespace opmill {
namespace {

using enum DataType;

constexpr TensorSchema kInputs[] = {{.name = "queries", .has_rows = true},
                                    {.name = "vectors", .rows_have_ones = true},
                                    {.name = "mask",
                                     .type = TypeVariable::kOther,
                                     .optional = true,
                                     .has_rows = true,
                                     .ones_if_absent = [](const OperatorDesc& desc) {
                                       return TensorDesc{kUint8, {1, desc.inputs[1].sizes[0]}, {}};
                                     }}};
// Their types are not the caller's choice.
constexpr TensorSchema kOutputs[] = {{.name = "output_scores"}, {.name = "output_indices"}};
constexpr absl::string_view kMetrics[] = {"INNER_PRODUCT", "L2", "COSINE"};
constexpr AttributeSchema kAttributes[] = {
    {.name = "k", .longest_row = [](const OperatorDesc& desc) { return desc.inputs[1].sizes[0]; }},
    {.name = "metric",
     .kind = AttributeKind::kChoice,
     .choices = kMetrics,
     .default_text = "INNER_PRODUCT"}};

// DirectML has no such operator, so that only requests without an older feature level may use it.
constexpr FeatureLevelRow kRows[] = {
    {FeatureLevel::k6_4, 2, 2, kFloats | DataTypeSet{kInt8}, {}, {kUint8}}};
constexpr SupportTable kSupport[] = {{.rows = kRows}};

// The most elements of vectors of INT8 whose sums are numbers of INT32: of products at most 2^14
// each, of squared differences 255^2.
constexpr uint32_t kMostOfProduct = 131071;
constexpr uint32_t kMostOfL2 = 33025;

absl::Status CheckSize(const OperatorDesc& desc, size_t input, size_t axis, uint32_t wanted,
                       absl::string_view like) {
  const uint32_t size = desc.inputs[input].sizes[axis];
  if (size == wanted) return absl::OkStatus();
  const std::string field = absl::StrCat(desc.schema->inputs[input].name, ".sizes[", axis, "]");
  return InvalidField(field,
                      absl::StrCat(field, " is ", size, ", but ", like, " is ", wanted, "."));
}

absl::Status CheckMask(const OperatorDesc& desc) {
  RETURN_IF_ERROR(CheckRank(desc, 2));
  RETURN_IF_ERROR(CheckSize(desc, 2, 1, desc.inputs[1].sizes[0], "vectors.sizes[0]"));
  if (desc.inputs[2].sizes[0] == 1) return absl::OkStatus();
  return CheckSize(desc, 2, 0, desc.inputs[0].sizes[0], "queries.sizes[0]");
}

absl::Status Infer(const OperatorDesc& desc, std::vector<InferredOutput>& outputs) {
  const TensorDesc& queries = desc.inputs[0];
  if (queries.sizes.size() != 2) {
    return InvalidField("queries.sizes",
                        absl::StrCat("search takes 2 dimensions, but queries.sizes "
                                     "has ",
                                     queries.sizes.size(), "."));
  }
  RETURN_IF_ERROR(CheckRank(desc, 1));
  RETURN_IF_ERROR(CheckType(desc, 1));
  RETURN_IF_ERROR(CheckSize(desc, 1, 1, queries.sizes[1], "queries.sizes[1]"));
  if (desc.inputs.size() > 2) RETURN_IF_ERROR(CheckMask(desc));
  const uint32_t k = desc.number("k");
  const uint32_t vectors = desc.inputs[1].sizes[0];
  if (k == 0) return InvalidField("k", "k (0) is below 1.");
  if (k > vectors) {
    return InvalidField(
        "k", absl::StrCat("k (", k, ") is larger than vectors.sizes[0] (", vectors, ")."));
  }
  const auto metric = desc.choice<SearchMetric>("metric");
  const bool is_int8 = queries.data_type == kInt8;
  const uint32_t most = metric == SearchMetric::kL2 ? kMostOfL2 : kMostOfProduct;
  if (is_int8 && queries.sizes[1] > most) {
    return InvalidField(
        "queries.sizes[1]",
        absl::StrCat("queries.sizes[1] is ", queries.sizes[1], ", but sums of INT8 for metric ",
                     kMetrics[static_cast<uint32_t>(metric)], " are numbers of INT32 only up to ",
                     most, "."));
  }
  const bool is_exact = is_int8 && metric != SearchMetric::kCosine;
  const std::vector<uint32_t> sizes = {queries.sizes[0], k};
  outputs = {{.sizes = sizes, .data_type = is_exact ? kInt32 : kFloat32},
             {.sizes = sizes, .data_type = kUint32}};
  return absl::OkStatus();
}

}  // namespace

constinit const OperatorSchema kSearchSchema = {
    .name = "search",
    .summary = "the k nearest of the vectors for each query, with their indices",
    .inputs = kInputs,
    .outputs = kOutputs,
    .attributes = kAttributes,
    .family = OperatorFamily::kSearch,
    .support = kSupport,
    .infer = &Infer};

std::vector<const OperatorSchema*> SearchOperators() { return {&kSearchSchema}; }

SearchDesc SearchDesc::From(const OperatorDesc& desc) {
  SearchDesc search = {.queries = desc.inputs[0],
                       .vectors = desc.inputs[1],
                       .output_scores = desc.outputs[0],
                       .output_indices = desc.outputs[1],
                       .k = desc.number("k"),
                       .metric = desc.choice<SearchMetric>("metric")};
  if (desc.inputs.size() > 2) search.mask = desc.inputs[2];
  return search;
}

uint64_t EmptyScore(const SearchDesc& desc) {
  const bool is_float = IsFloat(desc.output_scores->data_type);
  if (desc.smallest_first()) return is_float ? 0x7F80'0000 : 0x7FFF'FFFF;
  return is_float ? 0xFF80'0000 : 0x8000'0000;
}

}  // namespace opmill
