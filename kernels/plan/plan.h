// What we decided to do for one operator: kernels, dispatches, constants, scratch. A pure value,
// made without a device from a validated descriptor, so that tests can read it.
#ifndef OPMILL_KERNELS_PLAN_PLAN_H_
#define OPMILL_KERNELS_PLAN_PLAN_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/descriptor/operator_desc.h"
#include "kernels/plan/kernel_constants.h"

namespace opmill {

// What changes the code of a kernel. Two dispatches with equal permutations share a pipeline.
struct ShaderMacro {
  std::string name;
  uint32_t value = 0;
  friend bool operator==(const ShaderMacro&, const ShaderMacro&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ShaderMacro& m) {
    return H::combine(std::move(h), m.name, m.value);
  }
};

struct KernelPermutation {
  std::string shader;  // "reduce": the file shaders/reduce.hlsl
  std::string entry;   // "ReduceRows"
  std::vector<ShaderMacro> macros;
  friend bool operator==(const KernelPermutation&, const KernelPermutation&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const KernelPermutation& k) {
    return H::combine(std::move(h), k.shader, k.entry, k.macros);
  }
};

// Which buffer of a run: an input, an output, or the scratch memory.
struct BufferRole {
  enum class Kind : uint32_t { kInput, kOutput, kScratch };
  Kind kind = Kind::kInput;
  uint32_t index = 0;

  static constexpr BufferRole Input(uint32_t index = 0) { return {Kind::kInput, index}; }
  static constexpr BufferRole Output(uint32_t index = 0) { return {Kind::kOutput, index}; }
  static constexpr BufferRole Scratch() { return {Kind::kScratch, 0}; }
  friend bool operator==(const BufferRole&, const BufferRole&) = default;
};
std::string ToString(BufferRole role);  // "input 0", "scratch"

// Element formats of typed buffer views. kVector (R32G32B32A32_UINT) is the one that kernels
// read through; the narrow ones make narrow stores that do not race.
enum class ViewFormat : uint32_t { kUint8, kUint16, kUint32, kUint32x2, kVector };
uint32_t ViewElementBytes(ViewFormat format);

// `element_count` elements from byte `offset_bytes` of the buffer with that role. The offset is a
// multiple of 16. A count of 0 is an absent view: the slot is not read or written.
struct BufferView {
  BufferRole role = BufferRole::Input();
  ViewFormat format = ViewFormat::kVector;
  uint64_t offset_bytes = 0;
  uint64_t element_count = 0;
  friend bool operator==(const BufferView&, const BufferView&) = default;
};

inline constexpr uint32_t kReadSlots = 2;   // t0, t1
inline constexpr uint32_t kWriteSlots = 2;  // u0, u1

struct Dispatch {
  uint32_t kernel = 0;  // index into OperatorPlan::kernels
  std::array<BufferView, kReadSlots> reads;
  std::array<BufferView, kWriteSlots> writes;
  KernelConstants constants;            // b0
  std::array<uint32_t, 2> groups = {};  // x, y
};

// Zeroes bytes of a buffer. Offset and size are multiples of 4.
struct Fill {
  BufferRole role = BufferRole::Output();
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

// Steps of one pass are independent of each other; what a pass writes is visible to the next.
struct Pass {
  std::vector<Dispatch> dispatches;
  std::vector<Fill> fills;
};

struct OperatorPlan {
  std::vector<KernelPermutation> kernels;
  std::vector<Pass> passes;
  std::vector<uint64_t> input_bytes;   // RequiredBytes of each input
  std::vector<uint64_t> output_bytes;  // and of each output
  uint64_t scratch_bytes = 0;
};

// Of the buffer with that role; 0 where the operator has none.
uint64_t BytesOf(const OperatorPlan& plan, BufferRole role);

// About the host's memory that a compiled operator with this plan takes.
uint64_t PlanBytes(const OperatorPlan& plan);

// What the planner may assume of the device; also the seam through which tests make small
// tensors behave like huge ones.
struct PlanOptions {
  uint64_t max_view_elements = uint64_t{1} << 27;  // per typed view, in elements of its format
  uint64_t max_scratch_bytes = uint64_t{16} << 30;
  uint32_t parallel_groups = 16;   // groups that fill the device
  uint32_t threads = 64;           // threads a group
  bool prefers_wide_rows = false;  // hardware: lanes side by side in memory beat lanes alone

  // That fill the device.
  uint64_t parallel_lanes() const { return uint64_t{threads} * parallel_groups; }

  // Units that a lane takes one after another, where there are more than lanes that fill the
  // device.
  uint64_t turns(uint64_t units, uint64_t most) const {
    return std::clamp<uint64_t>(units / parallel_lanes(), 1, std::max<uint64_t>(1, most));
  }
};

// `desc` has passed Validate. ResourceExhausted when the scratch would be larger than allowed.
absl::StatusOr<OperatorPlan> MakePlan(const OperatorDesc& desc, const PlanOptions& options);

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_PLAN_H_
