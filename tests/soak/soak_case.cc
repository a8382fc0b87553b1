#include "tests/soak/soak_case.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "kernels/descriptor/validate.h"
#include "server/api/request_decoder.h"
#include "tests/conformance/case_generator.h"
#include "tests/conformance/verdict.h"

namespace opmill {
namespace {

constexpr uint64_t kOneLargeIn = 60;

template <typename To>
void EncodeAxes(const TensorDesc& input, const TensorDesc& output,
                const std::vector<uint32_t>& axes, To& to) {
  EncodeTensor(input, *to.mutable_input());
  EncodeTensor(output, *to.mutable_output());
  to.mutable_axes()->Add(axes.begin(), axes.end());
}

v1::AxisDirection EncodeDirection(AxisDirection direction) {
  return direction == AxisDirection::kIncreasing ? v1::AXIS_DIRECTION_INCREASING
                                                 : v1::AXIS_DIRECTION_DECREASING;
}

struct Encoder {
  v1::OperatorDesc operator()(const ArgReduceDesc& d) const {
    v1::OperatorDesc desc;
    const auto encode = [&d](auto& to) {
      EncodeAxes(d.input, *d.output, d.axes, to);
      to.set_axis_direction(EncodeDirection(d.axis_direction));
    };
    d.extreme == Extreme::kMin ? encode(*desc.mutable_arg_min()) : encode(*desc.mutable_arg_max());
    return desc;
  }
  v1::OperatorDesc operator()(const ReduceDesc& d) const {
    v1::OperatorDesc desc;
    EncodeAxes(d.input, *d.output, d.axes, *desc.mutable_reduce());
    desc.mutable_reduce()->set_function(EncodeReduceFunction(d.function));
    return desc;
  }
  v1::OperatorDesc operator()(const TopKDesc& d) const {
    v1::OperatorDesc desc;
    v1::TopKDesc& to = *desc.mutable_top_k();
    EncodeTensor(d.input, *to.mutable_input());
    EncodeTensor(*d.output_values, *to.mutable_output_values());
    EncodeTensor(*d.output_indices, *to.mutable_output_indices());
    to.set_axis(d.axis);
    to.set_k(d.k);
    to.set_axis_direction(EncodeDirection(d.axis_direction));
    return desc;
  }
  v1::OperatorDesc operator()(const HardmaxDesc& d) const {
    v1::OperatorDesc desc;
    EncodeAxes(d.input, *d.output, d.axes, *desc.mutable_hardmax());
    return desc;
  }
};

// 64 MiB in, and of hardmax as many out.
std::vector<OperatorDesc> LargeOperators() {
  const auto floats = [](uint32_t rows, uint32_t columns) {
    return TensorDesc{DataType::kFloat32, {rows, columns}, {}};
  };
  return {
      HardmaxDesc{.input = floats(4096, 4096), .axes = {1}},
      ArgReduceDesc{.input = floats(1024, 16384), .axes = {0}},
      ReduceDesc{.function = ReduceFunction::kSum, .input = floats(16384, 1024), .axes = {1}},
      TopKDesc{.input = floats(512, 32768), .axis = 1, .k = 10},
  };
}

}  // namespace

SoakCase::SoakCase(ConformanceCase c)
    : c_(std::move(c)),
      desc_(std::visit(Encoder(), c_.desc)),
      input_(std::make_shared<std::vector<std::byte>>(MakeInput(c_))) {}

std::string SoakCase::FindMistake(const std::vector<OutputTensor>& outputs) {
  std::vector<std::vector<std::byte>> padded;
  const std::vector<TensorDesc> descs = OutputsOf(c_.desc);
  if (outputs.size() != descs.size()) return absl::StrCat(outputs.size(), " outputs");
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].bytes.size() != SpannedBytes(descs[i])) {
      return absl::StrCat("output ", i, " has ", outputs[i].bytes.size(), " bytes of ",
                          SpannedBytes(descs[i]));
    }
    padded.push_back(outputs[i].bytes);
    padded.back().resize(RequiredBytes(descs[i]));
  }
  {
    const std::lock_guard lock(mutex_);
    if (padded == right_) return "";
  }
  std::string mistake = opmill::FindMistake(c_, *input_, padded);
  const std::lock_guard lock(mutex_);
  if (mistake.empty()) right_ = std::move(padded);
  return mistake;
}

SoakCases::SoakCases(uint64_t seed, uint64_t count, bool large) {
  Random random(seed);
  while (small_.size() < count) {
    small_.push_back(std::make_unique<SoakCase>(RandomCase(random.Bits(), PlanOptions())));
  }
  if (!large) return;
  for (const OperatorDesc& desc : LargeOperators()) {
    large_.push_back(std::make_unique<SoakCase>(ConformanceCase{
        .desc = *Validate(desc), .values = ValuePattern::kTies, .seed = random.Bits()}));
  }
}

std::vector<v1::OperatorDesc> SoakCases::operators() const {
  std::vector<v1::OperatorDesc> all;
  for (const auto* cases : {&small_, &large_}) {
    for (const std::unique_ptr<SoakCase>& c : *cases) all.push_back(c->desc());
  }
  return all;
}

SoakCase& SoakCases::Pick(Random& random) {
  if (large_.empty() || !random.OneIn(kOneLargeIn)) return PickSmall(random);
  return *large_[random.Below(large_.size())];
}

}  // namespace opmill
