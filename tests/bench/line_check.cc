#include "tests/bench/line_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "tests/conformance/case_verdict.h"

namespace opmill {
namespace {

constexpr uint64_t kSampledElements = uint64_t{1} << 20;
constexpr uint64_t kMostLines = 64;

// A packed tensor as lines: each runs over `axes` in row-major order.
class Lines {
 public:
  Lines(const TensorDesc& desc, const std::vector<uint32_t>& axes)
      : sizes_(desc.sizes), element_bytes_(ElementBytes(desc.data_type)) {
    strides_ = PackedStrides(sizes_);
    for (uint32_t d = 0; d < sizes_.size(); ++d) {
      const bool is_reduced = std::count(axes.begin(), axes.end(), d) > 0;
      (is_reduced ? reduced_ : kept_).push_back(d);
      (is_reduced ? length_ : count_) *= sizes_[d];
    }
  }

  uint64_t count() const { return count_; }
  uint64_t length() const { return length_; }

  std::vector<std::byte> Gather(absl::Span<const std::byte> bytes, uint64_t line) const {
    const uint64_t base = Offset(kept_, line);
    std::vector<std::byte> gathered((length_ * element_bytes_ + 3) / 4 * 4);
    const uint64_t run = reduced_.empty() ? 1 : sizes_[reduced_.back()];
    for (uint64_t i = 0; i < length_; i += run) {
      const uint64_t start = base + Offset(reduced_, i);
      const uint64_t stride = reduced_.empty() ? 1 : strides_[reduced_.back()];
      for (uint64_t j = 0; j < run; ++j) {
        std::memcpy(gathered.data() + (i + j) * element_bytes_,
                    bytes.data() + (start + j * stride) * element_bytes_, element_bytes_);
      }
    }
    return gathered;
  }

 private:
  // The offset of the coordinate over `dims` with the row-major number `flat`.
  uint64_t Offset(const std::vector<uint32_t>& dims, uint64_t flat) const {
    uint64_t offset = 0;
    for (auto d = dims.rbegin(); d != dims.rend(); ++d) {
      offset += flat % sizes_[*d] * strides_[*d];
      flat /= sizes_[*d];
    }
    return offset;
  }

  std::vector<uint32_t> sizes_;
  std::vector<uint32_t> strides_;
  uint32_t element_bytes_;
  std::vector<uint32_t> kept_;
  std::vector<uint32_t> reduced_;
  uint64_t count_ = 1;
  uint64_t length_ = 1;
};

// The same descriptor for a single line.
OperatorDesc OverLine(OperatorDesc desc, uint64_t length) {
  TensorDesc& line = desc.inputs[0];
  line = {.data_type = line.data_type, .sizes = {static_cast<uint32_t>(length)}};
  desc.outputs.assign(desc.outputs.size(), std::nullopt);
  for (size_t i = 0; i < desc.attributes.size(); ++i) {
    const AttributeKind kind = desc.schema->attributes[i].kind;
    if (kind == AttributeKind::kAxis) desc.attributes[i] = 0u;
    if (kind == AttributeKind::kAxes) desc.attributes[i] = std::vector<uint32_t>{0};
  }
  return desc;
}

}  // namespace

std::string FindMistakeInLines(const OperatorDesc& validated, absl::Span<const std::byte> input,
                               const std::vector<absl::Span<const std::byte>>& outputs) {
  const std::vector<uint32_t> axes = AxesOf(validated);
  const Lines lines(validated.inputs[0], axes);
  const absl::StatusOr<OperatorDesc> line_desc = Validate(OverLine(validated, lines.length()));
  if (!line_desc.ok()) return std::string(line_desc.status().message());
  const ConformanceCase line_case = {.desc = *line_desc, .values = ValuePattern::kNumbers};

  const uint64_t wanted = std::clamp<uint64_t>(kSampledElements / lines.length(), 2, kMostLines);
  const uint64_t samples = std::min(lines.count(), wanted);
  for (uint64_t i = 0; i < samples; ++i) {
    // The first, the last, and some between.
    const uint64_t line = samples == 1 ? 0 : i * (lines.count() - 1) / (samples - 1);
    Outputs gathered;
    const std::vector<TensorDesc> descs = OutputsOf(validated);
    for (size_t o = 0; o < outputs.size(); ++o) {
      gathered.push_back(Lines(descs[o], axes).Gather(outputs[o], line));
    }
    const std::string mistake = FindMistake(line_case, {lines.Gather(input, line)}, gathered);
    if (!mistake.empty()) return absl::StrCat("Line ", line, ": ", mistake, ".");
  }
  return "";
}

}  // namespace opmill
