// Thousands of concurrent executions on one stream: valid, invalid and cancelled ones.
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/descriptor/tensor.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/operator_reference.h"
#include "server/api/request_decoder.h"
#include "tests/conformance/random.h"
#include "tests/conformance/values.h"
#include "tests/end_to_end/stream_fixture.h"

namespace opmill {
namespace {

constexpr uint64_t kMaxInputBytes = 300 << 10;

// A sanitizer's allocator delays the release of freed memory.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kMaxGrownBytes = uint64_t{16} << 30;
#else
constexpr uint64_t kMaxGrownBytes = uint64_t{1} << 30;
#endif

// Operators whose results do not depend on rounding.
v1::OperatorDesc RandomOperator(Random& random) {
  TensorDesc input{.data_type = random.Pick(kAllDataTypes)};
  uint64_t room = (kMaxInputBytes >> random.Below(18)) / ElementBytes(input.data_type);
  for (uint64_t rank = 1 + random.Below(3); rank > 0; --rank) {
    input.sizes.push_back(static_cast<uint32_t>(1 + random.Below(std::max<uint64_t>(room, 1))));
    room /= input.sizes.back();
  }
  random.Shuffle(input.sizes);
  const uint32_t axis = static_cast<uint32_t>(random.Below(input.sizes.size()));
  const v1::AxisDirection direction =
      random.OneIn(2) ? v1::AXIS_DIRECTION_INCREASING : v1::AXIS_DIRECTION_DECREASING;
  v1::OperatorDesc desc;
  const auto fill = [&](auto& to) {
    EncodeTensor(input, *to.mutable_input());
    to.add_axes(axis);
  };
  switch (random.Below(5)) {
    case 0:
      fill(*desc.mutable_arg_min());
      desc.mutable_arg_min()->set_axis_direction(direction);
      break;
    case 1:
      fill(*desc.mutable_arg_max());
      desc.mutable_arg_max()->set_axis_direction(direction);
      break;
    case 2:
      fill(*desc.mutable_reduce());
      desc.mutable_reduce()->set_function(random.OneIn(2) ? v1::REDUCE_FUNCTION_MAX
                                                          : v1::REDUCE_FUNCTION_MIN);
      break;
    case 3: {
      v1::TopKDesc& top_k = *desc.mutable_top_k();
      EncodeTensor(input, *top_k.mutable_input());
      top_k.set_axis(axis);
      top_k.set_k(1 + static_cast<uint32_t>(random.Below(std::min(input.sizes[axis], 20u))));
      top_k.set_axis_direction(direction);
      break;
    }
    default:
      input.data_type = random.OneIn(2) ? DataType::kFloat32 : DataType::kFloat16;
      fill(*desc.mutable_hardmax());
      break;
  }
  return desc;
}

// The fault of an execution, if any.
enum class Fault {
  kNone,
  kCancel,       // at some time, possibly too late
  kDescriptor,   // a K of 0
  kTensorIndex,  // of the last chunk
  kOffset,       // of the last chunk
  kTooLong,      // the last chunk
  kTooShort,     // end_of_inputs comes before the last chunk
};

struct Planned {
  v1::OperatorDesc desc;
  uint64_t seed = 0;
  Fault fault = Fault::kNone;
  std::vector<v1::ExecuteStreamRequest> messages;
  size_t sent = 0;
  std::string field, sentence;  // of the expected error
  // The responses.
  bool ended = false;
  v1::ExecuteStreamResponse end;
  std::vector<std::string> outputs;
};

std::string InputOfPlanned(const Planned& planned) {
  const OperatorDesc desc = *DecodeOperator(planned.desc, std::nullopt);
  const std::vector<std::byte> values = MakeValues(ValuePattern::kTies, desc.inputs[0].data_type,
                                                   RequiredBytes(desc.inputs[0]), 1, planned.seed);
  return std::string(reinterpret_cast<const char*>(values.data()), SpannedBytes(desc.inputs[0]));
}

// Splits the input into messages, and adds the fault.
void Plan(Random& random, uint64_t id, Planned& planned) {
  const std::string input = InputOfPlanned(planned);
  v1::ExecuteStreamRequest message;
  message.set_execution_id(id);
  *message.mutable_begin()->mutable_operator_() = planned.desc;
  const uint64_t longest = 1 + random.Below(input.size());
  for (uint64_t offset = 0; offset < input.size();) {
    const uint64_t size = std::min<uint64_t>(1 + random.Below(longest), input.size() - offset);
    if (random.OneIn(2) || planned.fault == Fault::kTooShort) {
      planned.messages.push_back(std::exchange(message, {}));
      message.set_execution_id(id);
    }
    v1::TensorChunk& chunk = *message.add_chunks();
    if (planned.fault != Fault::kNone) {
      message.clear_chunks();  // the fault is in chunks[0]
      message.add_chunks()->Swap(&chunk);
    }
    v1::TensorChunk& last = *message.mutable_chunks()->rbegin();
    last.set_offset(offset);
    last.set_data(input.substr(offset, size));
    offset += size;
    if (planned.fault != Fault::kNone && offset < input.size()) {
      planned.messages.push_back(std::exchange(message, {}));
      message.set_execution_id(id);
    }
  }
  v1::TensorChunk& last = *message.mutable_chunks()->rbegin();
  const uint64_t offset = last.offset();
  switch (planned.fault) {
    case Fault::kNone:
    case Fault::kCancel:
      break;
    case Fault::kDescriptor: {
      v1::ExecuteStreamRequest& first =
          planned.messages.empty() ? message : planned.messages.front();
      v1::OperatorDesc& desc = *first.mutable_begin()->mutable_operator_();
      desc.Clear();
      v1::TopKDesc& top_k = *desc.mutable_top_k();
      EncodeTensor({DataType::kFloat32, {3}, {}}, *top_k.mutable_input());
      top_k.set_axis_direction(v1::AXIS_DIRECTION_INCREASING);
      planned.field = "begin.operator.top_k.k";
      planned.sentence = "k (0) is below 1.";
      break;
    }
    case Fault::kTensorIndex:
      last.set_tensor_index(5);
      planned.field = "chunks[0].tensor_index";
      planned.sentence =
          absl::StrCat(planned.field, " (5) is not below the number of inputs (1) of ",
                       OperatorName(*DecodeOperator(planned.desc, std::nullopt)), ".");
      break;
    case Fault::kOffset:
      last.set_offset(offset + 3);
      planned.field = "chunks[0].offset";
      planned.sentence =
          absl::StrCat(planned.field, " (", offset + 3, ") leaves out bytes ", offset, " to ",
                       offset + 2, " of input 0; chunks of a tensor come in order.");
      break;
    case Fault::kTooLong:
      last.mutable_data()->append(9, 'x');
      planned.field = "chunks[0].data";
      planned.sentence =
          absl::StrCat("chunks[0] ends at byte ", input.size() + 9,
                       ", past the end of input 0, which has ", input.size(), " bytes.");
      break;
    case Fault::kTooShort: {
      planned.messages.back().set_end_of_inputs(true);
      planned.field = "chunks";
      planned.sentence =
          absl::StrCat("end_of_inputs came with ", offset, " of the ", input.size(),
                       " bytes of input 0; ", input.size() - offset, " are missing.");
      break;
    }
  }
  planned.messages.push_back(std::move(message));
  if (planned.fault == Fault::kCancel) {
    v1::ExecuteStreamRequest cancel;
    cancel.set_execution_id(id);
    cancel.mutable_cancel();
    planned.messages.insert(planned.messages.begin() + 1 + random.Below(planned.messages.size()),
                            cancel);
  }
}

// Returns "" if the complete result arrived and is correct.
std::string FindMistake(const Planned& planned) {
  const OperatorDesc desc = *DecodeOperator(planned.desc, std::nullopt);
  std::string input = InputOfPlanned(planned);
  input.resize(RequiredBytes(desc.inputs[0]));
  std::vector<std::vector<std::byte>> expected;
  std::vector<absl::Span<std::byte>> spans;
  for (const TensorDesc& output : OutputsOf(desc)) expected.emplace_back(RequiredBytes(output));
  for (auto& output : expected) spans.push_back(absl::MakeSpan(output));
  const absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(input.data()),
                                          input.size());
  const absl::Status run = ReferenceRun(desc, {bytes}, spans);
  if (!run.ok()) return std::string(run.message());
  if (planned.outputs.size() != expected.size()) return "another count of outputs";
  for (size_t i = 0; i < expected.size(); ++i) {
    const uint64_t size = SpannedBytes(OutputsOf(desc)[i]);
    if (planned.outputs[i] !=
        std::string(reinterpret_cast<const char*>(expected[i].data()), size)) {
      return absl::StrCat("output ", i, " of ", ToString(desc), " is wrong");
    }
  }
  return "";
}

void Receive(const v1::ExecuteStreamResponse& response, std::vector<Planned>& all) {
  ASSERT_LT(response.execution_id(), all.size());
  Planned& planned = all[response.execution_id()];
  ASSERT_FALSE(planned.ended) << "something came after the end";
  if (response.has_started()) {
    ASSERT_TRUE(planned.outputs.empty());
    planned.outputs.resize(response.started().outputs_size());
  }
  for (const v1::TensorChunk& chunk : response.chunks()) {
    ASSERT_LT(chunk.tensor_index(), planned.outputs.size());
    std::string& output = planned.outputs[chunk.tensor_index()];
    ASSERT_EQ(chunk.offset(), output.size());
    output += chunk.data();
  }
  if (response.end_case() == v1::ExecuteStreamResponse::END_NOT_SET) return;
  planned.ended = true;
  planned.end = response;
  planned.end.clear_chunks();
}

class StreamMix : public StreamTest {};

TEST_F(StreamMix, GivesEachOfThousandsOneEnd) {
  constexpr size_t kExecutions = 2000;
  constexpr Fault kFaults[] = {Fault::kDescriptor, Fault::kTensorIndex, Fault::kOffset,
                               Fault::kTooLong, Fault::kTooShort};
  StartServer({absl::StrCat("--max_executions_per_stream=", kExecutions)});
  const uint64_t at_start = server().PeakMemoryBytes();  // includes opening the device
  Random random(1);
  std::vector<v1::OperatorDesc> operators;
  for (int i = 0; i < 60; ++i) operators.push_back(RandomOperator(random));
  std::vector<Planned> all(kExecutions);
  std::vector<size_t> unsent;
  for (size_t id = 0; id < all.size(); ++id) {
    all[id].desc = random.Pick(operators);
    all[id].seed = random.Bits();
    if (random.OneIn(20)) all[id].fault = random.Pick(kFaults);
    if (random.OneIn(20)) all[id].fault = Fault::kCancel;
    Plan(random, id, all[id]);
    unsent.push_back(id);
  }

  const absl::Time start = absl::Now();
  StreamCaller caller(stub());
  std::thread writer([&] {
    while (!unsent.empty()) {
      const size_t at = random.Below(unsent.size());
      Planned& planned = all[unsent[at]];
      ASSERT_TRUE(caller.Write(planned.messages[planned.sent++]));
      if (planned.sent < planned.messages.size()) continue;
      unsent[at] = unsent.back();
      unsent.pop_back();
    }
    caller.WritesDone();
  });
  uint64_t most_in_flight = 0;
  for (size_t i = 0; const auto response = caller.Read(); ++i) {
    Receive(*response, all);
    if (i % 100 == 0) {
      most_in_flight = std::max(most_in_flight, Statistics().in_flight().executions());
    }
  }
  writer.join();
  const grpc::Status status = caller.Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  const absl::Duration took = absl::Now() - start;

  std::map<Fault, int> counts;
  int cancelled = 0;
  for (const Planned& planned : all) {
    SCOPED_TRACE(absl::StrCat("execution ", &planned - all.data(), ", fault ",
                              static_cast<int>(planned.fault)));
    ++counts[planned.fault];
    ASSERT_TRUE(planned.ended);
    const bool good = planned.end.has_statistics();
    if (planned.fault == Fault::kNone || (planned.fault == Fault::kCancel && good)) {
      ASSERT_TRUE(good) << planned.end.ShortDebugString();
      ASSERT_EQ(FindMistake(planned), "");
    } else if (planned.fault == Fault::kCancel) {
      ++cancelled;
      ASSERT_EQ(planned.end.status().code(), grpc::StatusCode::CANCELLED);
    } else {
      ASSERT_EQ(planned.end.status().code(), grpc::StatusCode::INVALID_ARGUMENT);
      ASSERT_EQ(FieldOf(planned.end.status()), planned.field);
      ASSERT_EQ(planned.end.status().message(), planned.sentence);
    }
  }
  for (const Fault fault : kFaults) EXPECT_GT(counts[fault], 0);
  EXPECT_GT(cancelled, 10);
  EXPECT_GT(most_in_flight, 500u);
  WaitUntilIdle();

  const v1::GetStatisticsResponse statistics = Statistics();
  uint64_t ended = statistics.refused_requests();
  for (const v1::OperatorStatistics& each : statistics.operators()) {
    ended += each.succeeded() + each.failed() + each.cancelled();
  }
  EXPECT_EQ(ended, kExecutions);
  EXPECT_EQ(statistics.refused_requests(), static_cast<uint64_t>(counts[Fault::kDescriptor]));
  std::printf("%zu executions in %s, at most %d in flight, %d cancelled, peak %d MiB\n", all.size(),
              absl::FormatDuration(took).c_str(), static_cast<int>(most_in_flight), cancelled,
              static_cast<int>(server().PeakMemoryBytes() >> 20));
  EXPECT_GT(at_start, 0u);
  EXPECT_LT(server().PeakMemoryBytes(), at_start + kMaxGrownBytes);
}

}  // namespace
}  // namespace opmill
