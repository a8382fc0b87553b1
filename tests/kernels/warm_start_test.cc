// What a real device compiles, and what it does not compile again.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/d3d12/d3d12_device.h"
#include "kernels/engine/operator_cache.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/test_devices.h"

namespace opmill {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

OperatorDesc SumOfRows(uint32_t rows, uint32_t length) {
  return ReduceDesc{.function = ReduceFunction::kSum,
                    .input = {DataType::kInt32, {rows, length}, {}},
                    .output = TensorDesc{DataType::kInt32, {rows, 1}, {}},
                    .axes = {1}};
}

// The sums of rows of ones.
absl::StatusOr<std::vector<int32_t>> RunOnOnes(Device& device, CachedOperator cached) {
  Bindings bindings;
  ASSIGN_OR_RETURN(
      bindings.inputs.emplace_back(),
      device.Allocate(PlanForTest(*cached.compiled).input_bytes[0], Residency::kUpload));
  const std::vector<int32_t> ones(bindings.inputs[0].bytes().size() / sizeof(int32_t), 1);
  std::memcpy(bindings.inputs[0].bytes().data(), ones.data(), bindings.inputs[0].bytes().size());
  ASSIGN_OR_RETURN(
      std::shared_ptr<Buffer> output,
      device.Allocate(PlanForTest(*cached.compiled).output_bytes.at(0), Residency::kReadback));
  bindings.outputs.push_back(output);
  RETURN_IF_ERROR(device.RunAndWait(cached.compiled, std::move(bindings)).status());
  std::vector<int32_t> sums(output->bytes().size() / sizeof(int32_t));
  std::memcpy(sums.data(), output->bytes().data(), output->bytes().size());
  return sums;
}

void SetEnvironment(const char* name, const std::string& value) {
#ifdef _WIN32
  _putenv_s(name, value.c_str());
#else
  setenv(name, value.c_str(), 1);
#endif
}

// Simulates a start of the server: a device with its caches, on a bytecode directory that outlives
// it.
class WarmStart : public ::testing::Test {
 protected:
  void SetUp() override {
    Start();
    if (device_ == nullptr && !HasFailure()) GTEST_SKIP() << "No Direct3D 12 device: " << absence_;
  }

  void Start(ShaderSources sources = {}) {
    cache_.reset();
    device_.reset();
    D3D12DeviceOptions options;
    options.shader_cache_directory = directory_;
    options.shader_sources = std::move(sources);
    absl::StatusOr<std::unique_ptr<Device>> device = CreateD3D12Device(options);
    if (!device.ok()) {
      absence_ = device.status().ToString();
      if (RequiresDevices()) ADD_FAILURE() << absence_;
      return;
    }
    device_ = *std::move(device);
    cache_ = OperatorCache::Create(*device_, {.capacity = 8});
  }

  void ExpectSums(uint32_t rows, uint32_t length) {
    const auto cached = cache_->Get(SumOfRows(rows, length));
    ASSERT_TRUE(cached.ok()) << cached.status();
    const auto sums = RunOnOnes(*device_, *cached);
    ASSERT_TRUE(sums.ok()) << sums.status();
    EXPECT_EQ(*sums, std::vector<int32_t>(rows, static_cast<int32_t>(length)));
  }

  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(scratch_.path())) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  ScratchDirectory scratch_;
  std::string directory_ = scratch_.utf8();
  std::string absence_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<OperatorCache> cache_;
};

TEST_F(WarmStart, CompilesOnceForConcurrentCallers) {
  std::vector<std::shared_ptr<const CompiledProgram>> answers(32);
  std::vector<std::thread> callers;
  for (auto& answer : answers) {
    callers.emplace_back([this, &answer] {
      const auto found = cache_->Get(SumOfRows(4, 9));
      ASSERT_TRUE(found.ok()) << found.status();
      answer = found->compiled;
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const auto& answer : answers) EXPECT_EQ(answer, answers[0]);
  const auto kernel_count = PlanForTest(*answers[0]).kernels.size();
  EXPECT_EQ(cache_->statistics().misses, 1u);
  EXPECT_EQ(device_->counters().pipelines_created, kernel_count);
  EXPECT_EQ(device_->counters().shaders_compiled, kernel_count);
}

TEST_F(WarmStart, CreatesNothingForAnotherShapeOfAKnownKind) {
  // Four kinds: few rows, which groups share, and many; rows of whole vectors, and rows that end
  // inside one.
  ExpectSums(4, 1000);
  ExpectSums(4, 1001);
  ExpectSums(64, 1000);
  ExpectSums(64, 1001);
  const DeviceCounters before = device_->counters();
  ASSERT_GT(before.pipelines_created, 0u);
  ExpectSums(5, 1004);
  ExpectSums(64, 2000);
  ExpectSums(3, 1999);
  ExpectSums(64, 1003);
  EXPECT_EQ(cache_->statistics().misses, 8u);
  EXPECT_EQ(device_->counters().pipelines_created, before.pipelines_created);
  EXPECT_EQ(device_->counters().shaders_compiled, before.shaders_compiled);
}

TEST_F(WarmStart, CompilesNothingAfterARestart) {
  ExpectSums(4, 9);
  const DeviceCounters cold = device_->counters();
  EXPECT_EQ(cold.shaders_compiled, cold.pipelines_created);
  Start();
  ASSERT_NE(device_, nullptr);
  ExpectSums(4, 9);
  EXPECT_EQ(device_->counters().pipelines_created, cold.pipelines_created);
  EXPECT_EQ(device_->counters().shaders_compiled, 0u);
}

TEST_F(WarmStart, PreloadsWhatWasCompiledBefore) {
  ExpectSums(4, 9);
  ExpectSums(4, 1000);
  const DeviceCounters cold = device_->counters();
  Start();
  ASSERT_NE(device_, nullptr);
  device_->Preload(absl::InfinitePast());
  EXPECT_EQ(device_->counters().pipelines_created, 0u);
  device_->Preload(absl::InfiniteFuture());
  EXPECT_EQ(device_->counters().pipelines_created, cold.pipelines_created);
  ExpectSums(4, 9);
  ExpectSums(4, 1000);
  EXPECT_EQ(device_->counters().pipelines_created, cold.pipelines_created);
  EXPECT_EQ(device_->counters().shaders_compiled, 0u);
}

TEST_F(WarmStart, CompilesNothingInAnotherProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ExpectSums(4, 9);
  // The child process runs this test from its start, so it has its own scratch directory; it gets
  // the parent's through the environment.
  static constexpr char kDirectory[] = "OPMILL_WARM_START_DIRECTORY";
  if (std::getenv(kDirectory) == nullptr) SetEnvironment(kDirectory, scratch_.utf8());
  const auto run_warm = [this] {
    directory_ = std::getenv(kDirectory);
    Start();
    ExpectSums(4, 9);
    const DeviceCounters counters = device_->counters();
    std::cerr << "compiled " << counters.shaders_compiled << " of its kernels\n";
    std::_Exit(HasFailure() || counters.pipelines_created == 0 ? 1 : 0);
  };
  EXPECT_EXIT(run_warm(), ::testing::ExitedWithCode(0), "compiled 0 of its kernels");
}

TEST_F(WarmStart, CompilesDamagedEntriesAgain) {
  ExpectSums(4, 9);
  const DeviceCounters cold = device_->counters();
  ASSERT_EQ(Files().size(), cold.shaders_compiled);
  for (const fs::path& file : Files()) fs::resize_file(file, fs::file_size(file) / 2);
  for (const uint64_t compiled : {cold.shaders_compiled, uint64_t{0}}) {
    Start();
    ASSERT_NE(device_, nullptr);
    ExpectSums(4, 9);
    EXPECT_EQ(device_->counters().shaders_compiled, compiled);
  }
}

TEST_F(WarmStart, ReportsTheShaderCompilersMessage) {
  Start({{"reduce.hlsl", "this is no HLSL"}});
  ASSERT_NE(device_, nullptr);
  const absl::Status status = cache_->Get(SumOfRows(4, 9)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("reduce.hlsl"));
  EXPECT_EQ(cache_->statistics().failures, 1u);
  EXPECT_TRUE(Files().empty());
}

TEST_F(WarmStart, CompilesNothingAfterTheLossOfTheDevice) {
  ExpectSums(4, 9);
  const DeviceCounters before = device_->counters();
  InjectDeviceLossForTest(*device_);
  while (device_->counters().resets == before.resets) std::this_thread::yield();
  cache_->Invalidate();
  ExpectSums(4, 9);
  EXPECT_EQ(device_->counters().resets, before.resets + 1);
  EXPECT_EQ(device_->counters().shaders_compiled, before.shaders_compiled);
}

}  // namespace
}  // namespace opmill
