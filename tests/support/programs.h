// Describes and runs operators, and builds programs and runs them as a whole and node by node.
#ifndef OPMILL_TESTS_SUPPORT_PROGRAMS_H_
#define OPMILL_TESTS_SUPPORT_PROGRAMS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/descriptor/feature_levels.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/engine/device.h"
#include "kernels/program/program.h"

namespace opmill {

// An attribute by its name; the others have their defaults.
struct NamedValue {
  absl::string_view name;
  AttributeValue value;
};
// Crashes unless the descriptor is valid.
OperatorDesc ValidDesc(const OperatorSchema& schema, std::vector<TensorDesc> inputs,
                       const std::vector<NamedValue>& attributes,
                       std::vector<std::optional<TensorDesc>> outputs = {});
// Not validated.
OperatorDesc DescOf(const OperatorSchema& schema, std::vector<TensorDesc> inputs,
                    const std::vector<NamedValue>& attributes,
                    std::vector<std::optional<TensorDesc>> outputs = {});

using TensorBytes = std::vector<std::byte>;

// Validates, compiles and runs. `input` must have at least the bytes that its tensor requires.
// Returns the bytes of each output, each RequiredBytes long.
absl::StatusOr<std::vector<TensorBytes>> RunOperator(Device& device, const OperatorDesc& desc,
                                                     const TensorBytes& input,
                                                     FeatureLevel level = kNewestFeatureLevel);
// The same for a validated descriptor of any number of inputs. Sets the time of the run.
absl::StatusOr<std::vector<TensorBytes>> RunValidated(Device& device, const OperatorDesc& validated,
                                                      const std::vector<TensorBytes>& inputs,
                                                      absl::Duration* executed = nullptr);
// The same for a descriptor that `device` has compiled.
absl::StatusOr<std::vector<TensorBytes>> RunCompiled(
    Device& device, std::shared_ptr<const CompiledProgram> compiled, const OperatorDesc& validated,
    const std::vector<TensorBytes>& inputs, absl::Duration* executed = nullptr);

class ProgramBuilder {
 public:
  uint32_t Input(TensorDesc tensor) { return Value(ValueKind::kInput, std::move(tensor)); }
  // Adds an operator over these values, and returns those that it writes, which are intermediates
  // until Return. Crashes if the descriptor is invalid.
  std::vector<uint32_t> Add(const OperatorDesc& desc, std::vector<ProgramView> inputs);
  ProgramBuilder& Return(uint32_t value) {
    program_.values[value].kind = ValueKind::kOutput;
    return *this;
  }

  const TensorDesc& tensor(uint32_t value) const { return program_.values[value].tensor; }
  uint32_t value_count() const { return static_cast<uint32_t>(program_.values.size()); }
  const Program& program() const { return program_; }

 private:
  uint32_t Value(ValueKind kind, TensorDesc tensor) {
    program_.values.push_back({kind, std::move(tensor)});
    return value_count() - 1;
  }

  Program program_;
};

// Buffers for one run. The outputs hold 0xA5 before it.
absl::StatusOr<Bindings> BindProgram(Device& device, const Program& program,
                                     const std::vector<TensorBytes>& inputs);
// The bytes that the program's tensors require.
std::vector<TensorBytes> OutputBytes(const Program& program, const Bindings& bindings);

// Validates, compiles and runs.
absl::StatusOr<std::vector<TensorBytes>> RunProgram(Device& device, const Program& program,
                                                    const std::vector<TensorBytes>& inputs);
// The same outputs from runs of single operators.
absl::StatusOr<std::vector<TensorBytes>> RunNodeByNode(Device& device, const Program& program,
                                                       const std::vector<TensorBytes>& inputs);

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_PROGRAMS_H_
