// Executions that are joined to one run.
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "kernels/onnx/model.h"
#include "kernels/onnx/read_model.h"
#include "kernels/operators/search/search_desc.h"
#include "server/execution/batches.h"
#include "server/execution/joinable.h"
#include "server/tensors/tensor_store.h"
#include "tests/onnx/model_text.h"
#include "tests/server/executor_fixture.h"

namespace opmill {
namespace {

std::string TensorText(const std::string& kind, const std::string& name) {
  return " " + kind + " { name: '" + name +
         "' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'n' } dim { dim_value: 2 } "
         "} } } }";
}

class ExecutorBatchesTest : public ExecutorTest {
 protected:
  void SetUp() override {
    ExecutorTest::SetUp();
    const std::string text =
        TensorText("input", "x") + onnx::NodeText("Relu", "x", "y") + TensorText("output", "y");
    graph_ = *onnx::Model::Make(*onnx::ReadModel(onnx::ModelBytes(text)));
    const auto model = MakeGraphModel("relu", "1", graph_);
    model->max_batch_size = 8;
    model->batching = BatchOptions{.max_rows = 8};
    model_ = model;
    for (const uint32_t rows : {1, 2, 4}) {
      ASSERT_TRUE(cache_->Get(*ProgramFor(rows)).ok());
    }
  }

  static onnx::InputBindings SizesOf(uint32_t rows) { return {.sizes = {{"x", {rows, 2}}}}; }

  std::shared_ptr<const Program> ProgramFor(uint32_t rows) const {
    auto made = *graph_->ProgramFor(SizesOf(rows));
    const Program* const program = &made->program;
    return {std::move(made), program};
  }

  std::shared_ptr<Execution> BeginRow(Caller& caller,
                                      absl::Time deadline = absl::InfiniteFuture()) {
    ExecutionRequest request = {.origin = {.rpc = "Test", .peer = "test", .execution_id = 1},
                                .program = ProgramFor(1),
                                .model = std::make_shared<const RequestedModel>(
                                    RequestedModel{model_, *graph_->ProgramFor(SizesOf(1))}),
                                .deadline = deadline,
                                .on_ready = [&caller](const std::shared_ptr<Execution>& execution) {
                                  caller.status = execution->status();
                                  ++caller.ready;
                                }};
    auto begun = TryBegin(std::move(request));
    EXPECT_TRUE(begun.ok()) << begun.status();
    SendAll(*begun);
    return *begun;
  }

  // The first two run alone; the others gather meanwhile.
  void BeginRows(size_t count) {
    callers_ = std::vector<Caller>(2 + count);
    for (Caller& caller : callers_) executions_.push_back(BeginRow(caller));
    EXPECT_EQ(device_.pending_runs(), 2u);
  }
  void EndFirstTwo() {
    for (int i = 0; i < 2; ++i) device_.Complete();
  }

  void ExpectDone(const std::vector<size_t>& numbers) {
    for (const size_t i : numbers) {
      EXPECT_EQ(callers_[i].ready, 1);
      EXPECT_TRUE(callers_[i].status.ok()) << callers_[i].status;
      executor_->Finish(executions_[i]);
    }
    ExpectIdle();
  }

  std::shared_ptr<const onnx::Model> graph_;
  std::shared_ptr<const Model> model_;
  std::vector<Caller> callers_;
  std::vector<std::shared_ptr<Execution>> executions_;
};

TEST_F(ExecutorBatchesTest, WhatGathersWhileARunGoesOnIsJoined) {
  BeginRows(3);
  EndFirstTwo();
  ASSERT_EQ(device_.pending_runs(), 1u);
  GatedDevice::PendingRun run = device_.Take();
  EXPECT_EQ(run.bindings.inputs[0].size_bytes, 4 * 2 * sizeof(float));  // one row is empty
  for (std::byte& byte : run.bindings.outputs[0].bytes()) byte = std::byte{7};
  run.done(RunStatistics{.batch_size = 1});
  for (size_t i = 2; i <= 4; ++i) {
    const auto output = executions_[i]->output(0);
    EXPECT_EQ(output->buffer->bytes().size(), 2 * sizeof(float));
    EXPECT_EQ(output->buffer->bytes()[0], std::byte{7});
    EXPECT_EQ(executions_[i]->report().batch_size, 3u);
  }
  run = {};
  ExpectDone({0, 1, 2, 3, 4});
}

TEST_F(ExecutorBatchesTest, WithoutMemoryForAllEachRunsAlone) {
  BeginRows(3);
  EndFirstTwo();
  device_.Fail(absl::ResourceExhaustedError("The device has no memory."));
  EXPECT_EQ(device_.pending_runs(), 3u);
  for (int i = 0; i < 3; ++i) device_.Complete();
  ExpectDone({0, 1, 2, 3, 4});
}

TEST_F(ExecutorBatchesTest, OneThatEndsLeavesTheOthers) {
  BeginRows(3);
  executor_->Cancel(executions_[2], absl::CancelledError("gone"));  // while it gathers
  EndFirstTwo();
  GatedDevice::PendingRun run = device_.Take();
  EXPECT_EQ(run.bindings.inputs[0].size_bytes, 2 * 2 * sizeof(float));
  executor_->Cancel(executions_[3], absl::CancelledError("gone"));  // while it runs
  EXPECT_FALSE(run.abandoned.stop_requested());
  run.done(RunStatistics{.batch_size = 1});
  run = {};
  EXPECT_TRUE(absl::IsCancelled(callers_[2].status));
  EXPECT_TRUE(absl::IsCancelled(callers_[3].status));
  ExpectDone({0, 1, 4});
}

TEST_F(ExecutorBatchesTest, OneWhoseDeadlinePassesLeavesTheOthers) {
  BeginRows(2);
  Caller late;
  const auto execution = BeginRow(late, SteadyNow() + absl::Milliseconds(20));
  WaitUntil([&late] { return late.ready == 1; });
  EXPECT_TRUE(absl::IsDeadlineExceeded(late.status)) << late.status;
  EndFirstTwo();
  GatedDevice::PendingRun run = device_.Take();
  EXPECT_EQ(run.bindings.inputs[0].size_bytes, 2 * 2 * sizeof(float));
  run.done(RunStatistics{.batch_size = 1});
  run = {};
  ExpectDone({0, 1, 2, 3});
}

TEST_F(ExecutorBatchesTest, ARunThatNobodyWaitsForIsAbandoned) {
  BeginRows(2);
  EndFirstTwo();
  for (const size_t i : {2, 3}) executor_->Cancel(executions_[i], absl::CancelledError("gone"));
  GatedDevice::PendingRun run = device_.Take();
  EXPECT_TRUE(run.abandoned.stop_requested());
  run.done(absl::CancelledError("The run was abandoned."));
  run = {};
  ExpectDone({0, 1});
}

TEST_F(ExecutorBatchesTest, AJoinedProgramThatTakesTooLongIsTriedAgainLater) {
  Limits limits;
  limits.max_model_compile_time = absl::Milliseconds(200);
  Restart(limits);
  ASSERT_TRUE(cache_->Get(*ProgramFor(1)).ok());
  device_.HoldCompiler();
  // The number of runs of the two that gather.
  const auto serve = [this] {
    executions_.clear();
    BeginRows(2);
    EndFirstTwo();
    const size_t runs = device_.pending_runs();
    while (device_.pending_runs() > 0) device_.Complete();
    ExpectDone({0, 1, 2, 3});
    return runs;
  };
  EXPECT_EQ(serve(), 2u);
  device_.WaitUntilAbandoned(1);
  device_.ReleaseCompiler();
  const int compiled = device_.compiled();
  EXPECT_EQ(serve(), 2u);
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(device_.compiled(), compiled);
  WaitUntil([&serve] { return serve() == 1; });
  EXPECT_EQ(device_.compiled(), compiled + 1);
}

TEST_F(ExecutorBatchesTest, WhatAJoinedProgramTookToMakeCountsWhenItIsCompiled) {
  const ExecutionRequest request = {.program = ProgramFor(1),
                                    .model = std::make_shared<const RequestedModel>(
                                        RequestedModel{model_, *graph_->ProgramFor(SizesOf(1))})};
  const auto joined = Joinable::Of(request)->Make({.rows = 4}, executor_->compile_limit());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->limited.model, "relu version 1");
  EXPECT_GT(joined->limited.spent, absl::ZeroDuration());
  EXPECT_EQ(joined->limited.spent, (*graph_->ProgramFor(SizesOf(4)))->duration);
}

// Searches for queries that callers send, in vectors that stay on the server.
class ExecutorSearchBatchesTest : public ExecutorTest {
 protected:
  static OperatorDesc SearchOf(uint32_t queries, uint32_t mask_rows, uint32_t k = 3,
                               uint32_t vectors = kVectors) {
    OperatorDesc desc = {.schema = &kSearchSchema,
                         .inputs = {Matrix(queries, kWidth), Matrix(vectors, kWidth)},
                         .outputs = {std::nullopt, std::nullopt},
                         .attributes = {k, static_cast<uint32_t>(SearchMetric::kL2)}};
    if (mask_rows != 0) {
      desc.inputs.push_back({.data_type = DataType::kUint8, .sizes = {mask_rows, vectors}});
    }
    return *Validate(desc);
  }

  void SetUp() override {
    ExecutorTest::SetUp();
    for (const uint32_t rows : {1, 2, 4}) {
      for (const uint32_t k : {1u, 3u, 16u, 17u, kVectors}) {
        Warm(SearchOf(rows, 0, k));
        Warm(SearchOf(rows, 1, k));
        Warm(SearchOf(rows, rows, k));
      }
      for (const uint32_t k : {3, 16}) {
        Warm(SearchOf(rows, 0, k, kVectors + kMore));
        Warm(SearchOf(rows, rows, k, kVectors + kMore));
      }
    }
    vectors_ = Put();
  }
  void TearDown() override {
    for (const auto& execution : executions_) executor_->Finish(execution);
    executions_.clear();
    ExecutorTest::TearDown();
  }

  std::shared_ptr<const ResidentTensor> Put() {
    const auto writing = *store_.Begin(
        {.owner = "a", .name = "v", .capacity_rows = kVectors + kMore}, Matrix(kVectors, kWidth));
    EXPECT_TRUE(writing->Finish({}).ok());
    return *store_.Find("a", "v");
  }
  std::shared_ptr<const ResidentTensor> Append() {
    const auto writing = *store_.Begin(
        {.kind = ResidentWrite::Kind::kAppend, .owner = "a", .name = "v"}, Matrix(kMore, kWidth));
    const std::vector<std::byte> rows(kMore * kWidth * sizeof(float));
    EXPECT_TRUE(writing->Finish(rows).ok());
    return *store_.Find("a", "v");
  }
  std::shared_ptr<const ResidentTensor> PutMask() {
    const auto writing = *store_.Begin({.owner = "a", .name = "m"},
                                       {.data_type = DataType::kUint8, .sizes = {1, kVectors}});
    for (std::byte& byte : writing->buffer()->bytes()) byte = std::byte{5};
    EXPECT_TRUE(writing->Finish({}).ok());
    return *store_.Find("a", "m");
  }

  // `mask`: a tensor in place of the one that the caller sends.
  std::shared_ptr<Execution> BeginSearch(uint32_t queries, uint32_t mask_rows = 0, uint32_t k = 3,
                                         uint32_t vectors = kVectors,
                                         std::shared_ptr<const ResidentTensor> mask = nullptr) {
    const bool sends_mask = mask_rows != 0 && mask == nullptr;
    ExecutionRequest request = caller_.Ask(SearchOf(queries, mask_rows, k, vectors));
    request.sources.resize(request.op->inputs.size());
    request.sources[1].resident = vectors_;
    if (mask != nullptr) request.sources[2].resident = std::move(mask);
    auto begun = TryBegin(std::move(request));
    EXPECT_TRUE(begun.ok()) << begun.status();
    SendAll(*begun);
    if (sends_mask) Send(*begun, 0, uint64_t{mask_rows} * vectors, 2, kInMask);
    executions_.push_back(*begun);
    return *begun;
  }

  // The sizes of the first input of the runs that the device has now, in rows; ends them.
  std::vector<uint64_t> EndRuns() {
    std::vector<uint64_t> rows;
    for (size_t left = device_.pending_runs(); left > 0; --left) {
      GatedDevice::PendingRun run = device_.Take();
      EXPECT_EQ(run.bindings.inputs[1].buffer, vectors_->buffer());
      rows.push_back(run.bindings.inputs[0].size_bytes / (kWidth * sizeof(float)));
      run.done(RunStatistics{.batch_size = 1});
    }
    return rows;
  }

  static TensorDesc Matrix(uint32_t rows, uint32_t columns) {
    return {.data_type = DataType::kFloat32, .sizes = {rows, columns}};
  }

  static constexpr uint32_t kVectors = 20;
  static constexpr uint32_t kMore = 4;  // rows that are appended
  static constexpr uint32_t kWidth = 4;
  static constexpr char kInMask = 2;  // what callers send in masks
  TensorStore store_{device_, {.bytes = 1 << 20, .bytes_per_owner = 1 << 20}};
  std::shared_ptr<const ResidentTensor> vectors_;
  Caller caller_;
  std::vector<std::shared_ptr<Execution>> executions_;
};

TEST_F(ExecutorSearchBatchesTest, SearchesInTheSameTensorAreJoined) {
  BeginSearch(1);
  BeginSearch(1);
  for (const uint32_t queries : {1, 2, 1}) BeginSearch(queries);
  EXPECT_EQ(EndRuns(), (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(EndRuns(), (std::vector<uint64_t>{4}));
  EXPECT_EQ(executions_[3]->output(0)->buffer->bytes().size(), 2 * 3 * sizeof(float));
  EXPECT_EQ(executions_[3]->report().batch_size, 3u);
  EXPECT_EQ(caller_.ready, 5);
}

TEST_F(ExecutorSearchBatchesTest, EachGetsTheFirstOfItsRows) {
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(1, 0, 1);
  BeginSearch(2, 0, 17);
  BeginSearch(1, 0, kVectors);
  EndRuns();
  ASSERT_EQ(device_.pending_runs(), 1u);
  GatedDevice::PendingRun run = device_.Take();
  // Of each of the four rows as many indices as there are vectors.
  ASSERT_EQ(run.bindings.outputs[1].size_bytes, 4 * kVectors * sizeof(uint32_t));
  auto* const indices = reinterpret_cast<uint32_t*>(run.bindings.outputs[1].bytes().data());
  for (uint32_t i = 0; i < 4 * kVectors; ++i) indices[i] = i;
  run.done(RunStatistics{.batch_size = 1});
  const auto indices_of = [&](size_t execution) {
    const absl::Span<std::byte> bytes = executions_[execution]->output(1)->buffer->bytes();
    std::vector<uint32_t> all(bytes.size() / sizeof(uint32_t));
    std::memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  };
  EXPECT_EQ(indices_of(2), std::vector<uint32_t>{0});
  std::vector<uint32_t> wanted(2 * 17);
  std::iota(wanted.begin(), wanted.begin() + 17, kVectors);
  std::iota(wanted.begin() + 17, wanted.end(), 2 * kVectors);
  EXPECT_EQ(indices_of(3), wanted);
  wanted.resize(kVectors);
  std::iota(wanted.begin(), wanted.end(), 3 * kVectors);
  EXPECT_EQ(indices_of(4), wanted);
  EXPECT_EQ(executions_[4]->report().batch_size, 3u);
  run = {};
}

TEST_F(ExecutorSearchBatchesTest, AShortRowTakesAProgramOfShortRows) {
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(1, 0, 1);
  BeginSearch(1, 0, 16);
  EndRuns();
  GatedDevice::PendingRun run = device_.Take();
  EXPECT_EQ(run.bindings.outputs[1].size_bytes, 2 * 16 * sizeof(uint32_t));
  run.done(RunStatistics{.batch_size = 1});
  EXPECT_EQ(executions_[2]->output(1)->buffer->bytes().size(), sizeof(uint32_t));
}

TEST_F(ExecutorSearchBatchesTest, MasksOfTheCallersAreRowsToo) {
  for (int i = 0; i < 4; ++i) BeginSearch(1, 1);
  EXPECT_EQ(EndRuns(), (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(EndRuns(), (std::vector<uint64_t>{2}));
}

TEST_F(ExecutorSearchBatchesTest, WithoutAMaskAllVectorsCanBeFound) {
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(1);     // no mask
  BeginSearch(2, 1);  // one for both of its queries
  BeginSearch(1, 1);
  EndRuns();
  ASSERT_EQ(device_.pending_runs(), 1u);
  GatedDevice::PendingRun run = device_.Take();
  ASSERT_EQ(run.bindings.inputs.size(), 3u);
  const absl::Span<std::byte> mask = run.bindings.inputs[2].bytes();
  for (size_t i = 0; i < 4 * kVectors; ++i) {
    EXPECT_EQ(mask[i], static_cast<std::byte>(i < kVectors ? 1 : kInMask)) << i;
  }
  run.done(RunStatistics{.batch_size = 1});
  EXPECT_EQ(executions_[3]->output(1)->buffer->bytes().size(), 2 * 3 * sizeof(uint32_t));
}

// The bytes of the mask of a run.
std::vector<int> MaskOf(const GatedDevice::PendingRun& run) {
  std::vector<int> mask;
  for (const std::byte byte : run.bindings.inputs[2].bytes())
    mask.push_back(static_cast<int>(byte));
  return mask;
}

void AddRow(std::vector<int>& mask, int value, size_t count, size_t zeros = 0) {
  mask.insert(mask.end(), count, value);
  mask.insert(mask.end(), zeros, 0);
}

TEST_F(ExecutorSearchBatchesTest, AMaskThatStaysIsARowToo) {
  const auto mask = PutMask();
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(2, 1, 3, kVectors, mask);
  BeginSearch(1, 1);
  EndRuns();
  ASSERT_EQ(device_.pending_runs(), 1u);
  GatedDevice::PendingRun run = device_.Take();
  std::vector<int> wanted;
  for (const int value : {1, 5, 5, int{kInMask}}) AddRow(wanted, value, kVectors);
  EXPECT_EQ(MaskOf(run), wanted);
  run.done(RunStatistics{.batch_size = 1});
}

TEST_F(ExecutorSearchBatchesTest, SearchesInATensorThatGrowsAreJoined) {
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(1, 1);
  vectors_ = Append();
  BeginSearch(1, 0, 3, kVectors + kMore);
  BeginSearch(1, 1, 3, kVectors + kMore);
  EndRuns();
  ASSERT_EQ(device_.pending_runs(), 1u);
  GatedDevice::PendingRun run = device_.Take();
  EXPECT_EQ(run.bindings.inputs[1].buffer, vectors_->buffer());
  std::vector<int> wanted;
  for (const int value : {1, int{kInMask}}) AddRow(wanted, value, kVectors, kMore);
  for (const int value : {1, int{kInMask}}) AddRow(wanted, value, kVectors + kMore);
  EXPECT_EQ(MaskOf(run), wanted);
  run.done(RunStatistics{.batch_size = 1});
  EXPECT_EQ(caller_.ready, 6);
}

TEST_F(ExecutorSearchBatchesTest, OthersRunAlone) {
  BeginSearch(1);
  BeginSearch(1);
  BeginSearch(1);
  vectors_ = Put();  // another state of the tensor
  EXPECT_EQ(device_.pending_runs(), 2u);
  BeginSearch(1);
  EXPECT_EQ(device_.pending_runs(), 3u);
  for (int i = 0; i < 3; ++i) device_.Complete();
  EXPECT_EQ(device_.pending_runs(), 1u);  // the third search, in the old state
  device_.Complete();
  EXPECT_EQ(caller_.ready, 4);
}

}  // namespace
}  // namespace opmill
