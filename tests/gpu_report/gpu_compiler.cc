#include "tests/gpu_report/gpu_compiler.h"

#include <vkd3d_shader.h>

#include <stdexcept>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace opmill {
namespace {

// Of the root signature of kernels/d3d12/memory/descriptor_heap.cc, what hot plans use.
struct Slot {
  vkd3d_shader_descriptor_type type;
  uint32_t index;
  vk::DescriptorType vulkan_type;
};
constexpr Slot kSlots[] = {
    {VKD3D_SHADER_DESCRIPTOR_TYPE_CBV, 0, vk::DescriptorType::eUniformBuffer},
    {VKD3D_SHADER_DESCRIPTOR_TYPE_SRV, 0, vk::DescriptorType::eUniformTexelBuffer},
    {VKD3D_SHADER_DESCRIPTOR_TYPE_SRV, 1, vk::DescriptorType::eUniformTexelBuffer},
    {VKD3D_SHADER_DESCRIPTOR_TYPE_SRV, 2, vk::DescriptorType::eUniformTexelBuffer},
    {VKD3D_SHADER_DESCRIPTOR_TYPE_UAV, 0, vk::DescriptorType::eStorageTexelBuffer},
    {VKD3D_SHADER_DESCRIPTOR_TYPE_UAV, 1, vk::DescriptorType::eStorageTexelBuffer},
};

}  // namespace

std::vector<uint32_t> ToSpirv(const std::string& bytecode) {
  std::vector<vkd3d_shader_resource_binding> bindings;
  for (const Slot& slot : kSlots) {
    bindings.push_back(
        {.type = slot.type,
         .register_index = slot.index,
         .shader_visibility = VKD3D_SHADER_VISIBILITY_COMPUTE,
         .flags = VKD3D_SHADER_BINDING_FLAG_BUFFER,
         .binding = {.set = 0, .binding = static_cast<uint32_t>(bindings.size()), .count = 1}});
  }
  const vkd3d_shader_interface_info interface = {
      .type = VKD3D_SHADER_STRUCTURE_TYPE_INTERFACE_INFO,
      .bindings = bindings.data(),
      .binding_count = static_cast<uint32_t>(bindings.size())};
  const vkd3d_shader_compile_option options[] = {
      {VKD3D_SHADER_COMPILE_OPTION_API_VERSION, VKD3D_SHADER_API_VERSION_1_19},
      {VKD3D_SHADER_COMPILE_OPTION_TYPED_UAV,
       VKD3D_SHADER_COMPILE_OPTION_TYPED_UAV_READ_FORMAT_UNKNOWN}};
  const vkd3d_shader_compile_info info = {.type = VKD3D_SHADER_STRUCTURE_TYPE_COMPILE_INFO,
                                          .next = &interface,
                                          .source = {bytecode.data(), bytecode.size()},
                                          .source_type = VKD3D_SHADER_SOURCE_DXBC_TPF,
                                          .target_type = VKD3D_SHADER_TARGET_SPIRV_BINARY,
                                          .options = options,
                                          .option_count = std::size(options)};
  vkd3d_shader_code code = {};
  if (vkd3d_shader_compile(&info, &code, nullptr) != 0) {
    throw std::runtime_error("vkd3d-shader does not translate the bytecode.");
  }
  const auto* const words = static_cast<const uint32_t*>(code.code);
  const size_t word_count = code.size / sizeof(uint32_t);
  std::vector<uint32_t> spirv(words, words + word_count);
  vkd3d_shader_free_shader_code(&code);
  return spirv;
}

std::string GpuCompiler::gpu_name() const { return gpu_.getProperties().deviceName.data(); }

CompiledKernel GpuCompiler::Compile(const std::vector<uint32_t>& spirv) const {
  const vk::raii::ShaderModule module(device_, {{}, spirv});
  using Flag = vk::PipelineCreateFlagBits;
  const vk::raii::Pipeline pipeline(
      device_, nullptr,
      {Flag::eCaptureStatisticsKHR | Flag::eCaptureInternalRepresentationsKHR,
       {{}, vk::ShaderStageFlagBits::eCompute, *module, "main"},
       *layout_});
  const vk::PipelineExecutableInfoKHR executable(*pipeline);
  CompiledKernel compiled;
  for (const auto& statistic : device_.getPipelineExecutableStatisticsKHR(executable)) {
    compiled.statistics.emplace_back(statistic.name.data(), statistic.value.u64);
  }
  // The first call gives the sizes of the texts, the second one fills them in.
  auto texts = device_.getPipelineExecutableInternalRepresentationsKHR(executable);
  std::vector<std::vector<char>> bytes;
  for (auto& text : texts) text.pData = bytes.emplace_back(text.dataSize).data();
  uint32_t count = static_cast<uint32_t>(texts.size());
  device_.getDispatcher()->vkGetPipelineExecutableInternalRepresentationsKHR(
      *device_, &static_cast<const VkPipelineExecutableInfoKHR&>(executable), &count,
      reinterpret_cast<VkPipelineExecutableInternalRepresentationKHR*>(texts.data()));
  for (size_t i = 0; i < texts.size(); ++i) {
    // "Assembly" of RADV, "NAK assembly" of NVK.
    if (absl::EndsWith(texts[i].name.data(), "ssembly")) compiled.assembly = bytes[i].data();
  }
  return compiled;
}

vk::raii::Device GpuCompiler::OpenDevice() const {
  vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables(true);
  const vk::PhysicalDeviceFeatures features = gpu_.getFeatures();  // all of them, as vkd3d asks for
  const float priority = 1;
  const vk::DeviceQueueCreateInfo queue({}, 0, 1, &priority);
  const char* const extension = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
  return {gpu_, {{}, queue, {}, extension, &features, &executables}};
}

vk::raii::DescriptorSetLayout GpuCompiler::SlotsLayout() const {
  std::vector<vk::DescriptorSetLayoutBinding> bindings;
  for (const Slot& slot : kSlots) {
    bindings.push_back({static_cast<uint32_t>(bindings.size()), slot.vulkan_type, 1,
                        vk::ShaderStageFlagBits::eCompute});
  }
  return {device_, {{}, bindings}};
}

}  // namespace opmill
