#include "tests/kernels/d3d12_fixture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/errors.h"
#include "kernels/base/rounding.h"
#include "kernels/d3d12/shader/embedded_shaders.h"

namespace opmill {
namespace {

constexpr char kShader[] = R"(
#include "constants.h"
struct TestConstants {
  GroupConstants groups;
  uint item_count;
};
cbuffer Constants : register(b0) {
  TestConstants c;
  Instance instances[OPMILL_MAX_INSTANCES];
};
Buffer<uint4> source : register(t0);
#if ELEMENT_BYTES == 16
#define ELEMENT uint4
#elif ELEMENT_BYTES == 8
#define ELEMENT uint2
#else
#define ELEMENT uint
#endif
RWBuffer<ELEMENT> target : register(u0);

// Element i of the source's bytes becomes element i of the target.
[numthreads(64, 1, 1)]
void Copy(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint i = (c.groups.first_group + group.y * c.groups.group_columns + group.x) * 64 + lane;
  if (i >= c.item_count) return;
  Instance instance = instances[group.z];
  uint to = instance.write0 + i;
#if ELEMENT_BYTES == 16
  target[to] = source[instance.read0 + i];
#elif ELEMENT_BYTES == 8
  uint4 v = source[instance.read0 + i / 2];
  target[to] = i % 2 == 0 ? v.xy : v.zw;
#else
  uint first = i * ELEMENT_BYTES;
  uint4 v = source[instance.read0 + first / 16];
  uint2 half = first % 16 < 8 ? v.xy : v.zw;
  uint word = first % 8 < 4 ? half.x : half.y;
  // Masked, because the handling of excess bits by narrow formats depends on the driver.
  target[to] = (word >> (first % 4 * 8)) & (0xFFFFFFFFu >> (32 - 8 * ELEMENT_BYTES));
#endif
}

#if ELEMENT_BYTES == 16
// Vector i becomes one more than its right neighbor, which another group may have written.
[numthreads(64, 1, 1)]
void ShiftAndIncrement(uint3 group : SV_GroupID, uint lane : SV_GroupIndex) {
  uint i = (c.groups.first_group + group.x) * 64 + lane;
  if (i >= c.item_count) return;
  Instance instance = instances[group.z];
  target[instance.write0 + i] = source[instance.read0 + (i + 1) % c.item_count] + 1;
}
#endif
)";

// As the shader has it.
struct TestConstants {
  GroupConstants groups;
  uint item_count;
};

}  // namespace

D3D12DeviceOptions TestOptions() {
  D3D12DeviceOptions options;
  options.shader_sources = {{"test.hlsl", kShader},
                            {"broken.hlsl", "void Main() { this is not HLSL }"},
                            {"constants.h", std::string(*EmbeddedShader("constants.h"))}};
  return options;
}

KernelPermutation TestKernel(std::string entry, uint32_t element_bytes) {
  return {
      .shader = "test", .entry = std::move(entry), .macros = {{"ELEMENT_BYTES", element_bytes}}};
}

BufferView View(BufferRole role, ViewFormat format, uint64_t offset_bytes, uint64_t count) {
  return {.role = role, .format = format, .offset_bytes = offset_bytes, .element_count = count};
}

Dispatch MakeDispatch(uint32_t kernel, BufferView source, BufferView target) {
  Dispatch dispatch;
  dispatch.kernel = kernel;
  dispatch.reads[0] = source;
  dispatch.writes[0] = target;
  const uint64_t groups = CeilDiv(target.element_count, 64);
  const uint64_t columns = std::min<uint64_t>(groups, 1000);
  dispatch.groups = {static_cast<uint32_t>(columns),
                     static_cast<uint32_t>(CeilDiv(groups, columns))};
  dispatch.constants = TestConstants{.groups = {.group_columns = dispatch.groups[0]},
                                     .item_count = static_cast<uint32_t>(target.element_count)};
  return dispatch;
}

OperatorPlan CopyPlan(ViewFormat format, uint64_t count) {
  const uint32_t element_bytes = ViewElementBytes(format);
  const uint64_t size_bytes = count * element_bytes;
  OperatorPlan plan;
  plan.kernels = {TestKernel("Copy", element_bytes)};
  plan.passes.resize(1);
  plan.passes[0].dispatches = {
      MakeDispatch(0, View(BufferRole::Input(), ViewFormat::kVector, 0, CeilDiv(size_bytes, 16)),
                   View(BufferRole::Output(), format, 0, count))};
  plan.input_bytes = {size_bytes};
  plan.output_bytes = {size_bytes};
  return plan;
}

OperatorPlan ShiftPlan(uint64_t vectors, uint32_t passes) {
  OperatorPlan plan;
  plan.kernels = {TestKernel("ShiftAndIncrement", 16)};
  plan.passes.resize(passes);
  for (uint32_t pass = 0; pass < passes; ++pass) {
    const auto half = [&](uint32_t index) {
      return View(BufferRole::Scratch(), ViewFormat::kVector, index % 2 * vectors * 16, vectors);
    };
    const BufferView source =
        pass == 0 ? View(BufferRole::Input(), ViewFormat::kVector, 0, vectors) : half(pass - 1);
    const BufferView target = pass + 1 == passes
                                  ? View(BufferRole::Output(), ViewFormat::kVector, 0, vectors)
                                  : half(pass);
    Dispatch dispatch = MakeDispatch(0, source, target);
    dispatch.groups = {static_cast<uint32_t>(CeilDiv(vectors, 64)), 1};
    plan.passes[pass].dispatches = {dispatch};
  }
  plan.input_bytes = {vectors * 16};
  plan.output_bytes = {vectors * 16};
  plan.scratch_bytes = 2 * vectors * 16;
  return plan;
}

std::vector<uint8_t> Noise(uint64_t size_bytes, uint32_t seed) {
  std::vector<uint8_t> bytes(size_bytes);
  uint32_t state = seed * 2654435761u + 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  return bytes;
}

std::vector<uint8_t> Shifted(const std::vector<uint8_t>& bytes, uint32_t passes) {
  std::vector<uint32_t> words(bytes.size() / 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  std::rotate(words.begin(), words.begin() + passes * 4 % words.size(), words.end());
  for (uint32_t& word : words) word += passes;
  std::vector<uint8_t> shifted(bytes.size());
  std::memcpy(shifted.data(), words.data(), bytes.size());
  return shifted;
}

std::vector<uint8_t> BytesOf(const Range& range) {
  const auto* begin = reinterpret_cast<const uint8_t*>(range.bytes().data());
  return {begin, begin + range.bytes().size()};
}

absl::StatusOr<Bindings> Bind(Device& device, const OperatorPlan& plan,
                              const std::vector<uint8_t>& input) {
  Bindings bindings;
  auto buffer = device.Allocate(plan.input_bytes[0], Residency::kUpload);
  if (!buffer.ok()) return buffer.status();
  bindings.inputs = {*std::move(buffer)};
  if (!input.empty()) {
    std::memcpy(bindings.inputs[0].bytes().data(), input.data(), input.size());
  }
  for (const uint64_t size_bytes : plan.output_bytes) {
    buffer = device.Allocate(size_bytes, Residency::kReadback);
    if (!buffer.ok()) return buffer.status();
    bindings.outputs.push_back(*std::move(buffer));
  }
  return bindings;
}

absl::StatusOr<std::vector<uint8_t>> RunPlan(Device& device, const OperatorPlan& plan,
                                             const std::vector<uint8_t>& input) {
  auto compiled = CompilePlanForTest(device, OperatorDesc(), plan);
  if (!compiled.ok()) return compiled.status();
  auto bindings = Bind(device, plan, input);
  if (!bindings.ok()) return bindings.status();
  const Range output = bindings->outputs[0];
  auto statistics = device.RunAndWait(*compiled, *std::move(bindings));
  if (!statistics.ok()) return statistics.status();
  return BytesOf(output);
}

}  // namespace opmill
