#include "tests/bench/line_check.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/descriptor/validate.h"
#include "tests/conformance/verdict.h"

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
  // Of the coordinate over `dims` whose row-major number is `flat`.
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

std::vector<uint32_t> AxesOf(const OperatorDesc& desc) {
  if (const auto* top_k = std::get_if<TopKDesc>(&desc)) return {top_k->axis};
  if (const auto* reduce = std::get_if<ReduceDesc>(&desc)) return reduce->axes;
  if (const auto* hardmax = std::get_if<HardmaxDesc>(&desc)) return hardmax->axes;
  return std::get<ArgReduceDesc>(desc).axes;
}

// The same over one line alone.
OperatorDesc OverLine(const OperatorDesc& desc, uint64_t length) {
  TensorDesc line = {.data_type = InputOf(desc).data_type};
  line.sizes = {static_cast<uint32_t>(length)};
  if (const auto* top_k = std::get_if<TopKDesc>(&desc)) {
    return TopKDesc{.input = line, .k = top_k->k, .axis_direction = top_k->axis_direction};
  }
  if (const auto* reduce = std::get_if<ReduceDesc>(&desc)) {
    return ReduceDesc{.function = reduce->function, .input = line, .axes = {0}};
  }
  if (std::holds_alternative<HardmaxDesc>(desc)) return HardmaxDesc{.input = line, .axes = {0}};
  const auto& arg = std::get<ArgReduceDesc>(desc);
  return ArgReduceDesc{
      .extreme = arg.extreme, .input = line, .axes = {0}, .axis_direction = arg.axis_direction};
}

}  // namespace

std::string FindMistakeInLines(const OperatorDesc& validated, absl::Span<const std::byte> input,
                               const std::vector<absl::Span<const std::byte>>& outputs) {
  const std::vector<uint32_t> axes = AxesOf(validated);
  const Lines lines(InputOf(validated), axes);
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
    const std::string mistake = FindMistake(line_case, lines.Gather(input, line), gathered);
    if (!mistake.empty()) return absl::StrCat("Line ", line, ": ", mistake, ".");
  }
  return "";
}

}  // namespace opmill
