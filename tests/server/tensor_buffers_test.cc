#include "server/execution/tensor_buffers.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/server/gated_device.h"

namespace opmill {
namespace {

class TensorBuffersTest : public testing::Test {
 protected:
  absl::StatusOr<TensorBuffers> Reserve() {
    return TensorBuffers::Reserve(budget_, sizes_, std::make_shared<Holding>(),
                                  /*has_others=*/false);
  }

  MemoryBudget budget_{100};
  GatedDevice device_;
  const BufferSizes sizes_ = {.inputs = {40, 8}, .outputs = {20}};
};

TEST_F(TensorBuffersTest, TakesTheSharesOfAllTensorsAndGivesThemBack) {
  {
    const absl::StatusOr<TensorBuffers> buffers = Reserve();
    ASSERT_TRUE(buffers.ok()) << buffers.status();
    EXPECT_EQ(budget_.used(), 68u);
    EXPECT_EQ(buffers->input(0)->buffer, nullptr);
    EXPECT_EQ(buffers->output(0)->buffer, nullptr);
  }
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(TensorBuffersTest, KeepsNothingWhereTheLastOfThemDoesNotFit) {
  const absl::StatusOr<MemoryBudget::Share> others = budget_.Take(40);
  EXPECT_EQ(std::string(Reserve().status().message()),
            "There is no room for a buffer of 20 bytes now: 88 of 100 bytes (max_bytes_in_flight) "
            "are in use.");
  EXPECT_EQ(budget_.used(), 40u);
}

TEST_F(TensorBuffersTest, SaysThatTheDeviceHasNoMemory) {
  absl::StatusOr<TensorBuffers> buffers = Reserve();
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  device_.RefuseBuffers(Residency::kUpload);
  EXPECT_EQ(buffers->AllocateInputs(device_, sizes_),
            absl::ResourceExhaustedError("The device has no memory."));
  buffers = TensorBuffers();
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(TensorBuffersTest, ARunHoldsTheBuffersWithTheirShares) {
  absl::StatusOr<TensorBuffers> buffers = Reserve();
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  ASSERT_EQ(buffers->AllocateInputs(device_, sizes_), absl::OkStatus());
  buffers->SetOutput(0, *device_.Allocate(20, Residency::kReadback));
  std::optional<Bindings> run = buffers->Bind();
  ASSERT_EQ(run->inputs.size(), 2u);
  EXPECT_EQ(run->inputs[0].bytes().size(), 40u);
  EXPECT_EQ(run->inputs[1].bytes().size(), 8u);
  ASSERT_EQ(run->outputs.size(), 1u);
  EXPECT_EQ(run->outputs[0].buffer, buffers->output(0)->buffer);
  run->inputs.clear();
  EXPECT_EQ(budget_.used(), 20u) << "the inputs are the run's alone";
  *buffers = {};  // the execution ended; its run goes on
  EXPECT_EQ(budget_.used(), 20u);
  run.reset();
  EXPECT_EQ(budget_.used(), 0u);
}

TEST_F(TensorBuffersTest, TheTransportHoldsAnOutputLongerThanTheExecution) {
  absl::StatusOr<TensorBuffers> buffers = Reserve();
  ASSERT_TRUE(buffers.ok()) << buffers.status();
  std::shared_ptr<BudgetedBuffer> sent = buffers->output(0);
  *buffers = {};
  EXPECT_EQ(budget_.used(), 20u);
  sent = nullptr;
  EXPECT_EQ(budget_.used(), 0u);
}

}  // namespace
}  // namespace opmill
