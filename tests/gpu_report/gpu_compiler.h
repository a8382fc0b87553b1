// Compiles kernels with the Vulkan driver that the environment names, for a GPU that need
// not be present: RADV with RADV_FORCE_FAMILY, NVK with a shim for its device node.
#ifndef OPMILL_TESTS_GPU_REPORT_GPU_COMPILER_H_
#define OPMILL_TESTS_GPU_REPORT_GPU_COMPILER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>
#include <vulkan/vulkan_raii.hpp>

namespace opmill {

// What the driver reports about a compiled kernel (VK_KHR_pipeline_executable_properties).
struct CompiledKernel {
  std::vector<std::pair<std::string, uint64_t>> statistics;  // with the driver's names
  std::string assembly;
};

// The SPIR-V that vkd3d generates from bytecode. Throws std::runtime_error, as GpuCompiler does.
std::vector<uint32_t> ToSpirv(const std::string& bytecode);

class GpuCompiler {
 public:
  // Opens the driver's first device.
  GpuCompiler() = default;
  std::string gpu_name() const;
  CompiledKernel Compile(const std::vector<uint32_t>& spirv) const;

 private:
  vk::raii::Device OpenDevice() const;
  vk::raii::DescriptorSetLayout SlotsLayout() const;

  const vk::ApplicationInfo app_{"gpu_report", 0, nullptr, 0, VK_API_VERSION_1_2};
  vk::raii::Context context_;
  vk::raii::Instance instance_{context_, {{}, &app_}};
  vk::raii::PhysicalDevice gpu_ = std::move(vk::raii::PhysicalDevices(instance_).at(0));
  vk::raii::Device device_ = OpenDevice();
  vk::raii::DescriptorSetLayout slots_ = SlotsLayout();
  vk::raii::PipelineLayout layout_{device_, {{}, *slots_}};
};

}  // namespace opmill

#endif  // OPMILL_TESTS_GPU_REPORT_GPU_COMPILER_H_
