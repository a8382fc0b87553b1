// The plan of an operator: kernels, dispatches, constants, scratch. A pure value, made from a
// validated descriptor without a device, so that tests can read it.
#ifndef OPMILL_KERNELS_PLAN_PLAN_H_
#define OPMILL_KERNELS_PLAN_PLAN_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/descriptor/operator_limits.h"
#include "kernels/plan/kernel_constants.h"

namespace opmill {

// A macro changes the code of a kernel. Dispatches with equal permutations share a pipeline.
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
  std::string entry;   // "Reduce"
  std::vector<ShaderMacro> macros;
  std::string text = {};  // HLSL in the place of #include "generated"
  friend bool operator==(const KernelPermutation&, const KernelPermutation&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const KernelPermutation& k) {
    return H::combine(std::move(h), k.shader, k.entry, k.macros, k.text);
  }
};

// Identifies a buffer of a run: an input, an output, a constant of the program, or the scratch
// memory.
struct BufferRole {
  enum class Kind : uint32_t { kInput, kOutput, kConstant, kScratch };
  Kind kind = Kind::kInput;
  uint32_t index = 0;

  static constexpr BufferRole Input(uint32_t index = 0) { return {Kind::kInput, index}; }
  static constexpr BufferRole Output(uint32_t index = 0) { return {Kind::kOutput, index}; }
  static constexpr BufferRole Constant(uint32_t index) { return {Kind::kConstant, index}; }
  static constexpr BufferRole Scratch() { return {Kind::kScratch, 0}; }
  friend bool operator==(const BufferRole&, const BufferRole&) = default;
};
std::string ToString(BufferRole role);  // "input 0", "scratch"

// Element formats of typed buffer views. Kernels read through kVector (R32G32B32A32_UINT). The
// narrow formats allow narrow stores that do not race.
enum class ViewFormat : uint32_t { kUint8, kUint16, kUint32, kUint32x2, kVector };
uint32_t ViewElementBytes(ViewFormat format);

// A view of `element_count` elements, starting at byte `offset_bytes` of the buffer. The offset
// must be a multiple of 16. A count of 0 means that the view is absent: the slot is not used.
struct BufferView {
  BufferRole role = BufferRole::Input();
  ViewFormat format = ViewFormat::kVector;
  uint64_t offset_bytes = 0;
  uint64_t element_count = 0;
  friend bool operator==(const BufferView&, const BufferView&) = default;
};

inline constexpr uint32_t kReadSlots = kMaxInputs;    // t0 to t7
inline constexpr uint32_t kFirstReadSlots = 2;        // t0, t1: all that most kernels have
inline constexpr uint32_t kWriteSlots = kMaxOutputs;  // u0, u1

struct Dispatch {
  uint32_t kernel = 0;  // index into OperatorPlan::kernels
  std::array<BufferView, kReadSlots> reads;
  std::array<BufferView, kWriteSlots> writes;
  KernelConstants constants;            // b0
  std::array<uint32_t, 2> groups = {};  // x, y

  bool has_more_reads() const {
    return std::any_of(reads.begin() + kFirstReadSlots, reads.end(),
                       [](const BufferView& view) { return view.element_count > 0; });
  }
};

// Zeroes bytes of a buffer. Offset and size are multiples of 4.
struct Fill {
  BufferRole role = BufferRole::Output();
  uint64_t offset_bytes = 0;
  uint64_t size_bytes = 0;
};

// The dispatches of one pass are independent of each other, and see its fills. The next pass sees
// what this pass has written.
struct Pass {
  std::vector<Dispatch> dispatches;
  std::vector<Fill> fills;
};

struct OperatorPlan {
  std::vector<KernelPermutation> kernels;
  std::vector<Pass> passes;
  std::vector<uint64_t> input_bytes;     // RequiredBytes of each input
  std::vector<uint64_t> output_bytes;    // RequiredBytes of each output
  std::vector<uint64_t> constant_bytes;  // RequiredBytes of each constant
  uint64_t scratch_bytes = 0;
  // Of a program: what of the scratch is needed at the same time, and the operator that each pass
  // is of.
  uint64_t live_bytes = 0;
  std::vector<uint32_t> operators = {};
};

// The size of the buffer with that role; 0 if the operator has none.
uint64_t BytesOf(const OperatorPlan& plan, BufferRole role);

// The approximate host memory of a compiled operator with this plan.
uint64_t PlanBytes(const OperatorPlan& plan);

// What the planner may assume about the device. Tests use it to make small tensors behave like huge
// ones.
struct PlanOptions {
  uint64_t max_view_elements = uint64_t{1} << 27;  // per typed view, in elements of its format
  uint64_t max_scratch_bytes = uint64_t{16} << 30;
  uint32_t parallel_groups = 16;  // number of groups that fill the device
  uint32_t threads = 64;          // per group

  // The number of lanes that fill the device.
  uint64_t parallel_lanes() const { return uint64_t{threads} * parallel_groups; }
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_PLAN_PLAN_H_
