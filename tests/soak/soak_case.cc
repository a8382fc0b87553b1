#include "tests/soak/soak_case.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/encode_operator.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"
#include "server/api/request_decoder.h"
#include "tests/conformance/case_generator.h"
#include "tests/conformance/case_verdict.h"

namespace opmill {
namespace {

constexpr uint64_t kOneLargeIn = 60;

// Inputs of 64 MiB; for hardmax also outputs.
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
      desc_(EncodeOperator(c_.desc)),
      inputs_(std::make_shared<const Inputs>(MakeInputs(c_))) {}

std::vector<InputBytes> SoakCase::bytes() const {
  std::vector<InputBytes> bytes;
  for (const std::vector<std::byte>& input : *inputs_) {
    bytes.push_back({input.data(), input.size(), inputs_});
  }
  return bytes;
}

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
  std::string mistake = opmill::FindMistake(c_, *inputs_, padded);
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
