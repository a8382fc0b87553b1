#include "tests/bench/transfer.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "afternoon.pb.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_callback.h"
#include "inference/grpc_service.pb.h"
#include "kernels/base/errors.h"
#include "proto/payload.h"
#include "proto/stack_message.h"

namespace opmill {
namespace {

constexpr char kService[] = "/opmill.v1.OperatorService/";
constexpr char kInfer[] = "/inference.GRPCInferenceService/ModelInfer";
constexpr uint64_t kPatternBytes = uint64_t{4} << 20;

const std::vector<float>& Pattern() {
  static const std::vector<float>* const pattern = [] {
    auto* values = new std::vector<float>(kPatternBytes / sizeof(float));
    for (size_t i = 0; i < values->size(); ++i) {
      (*values)[i] = static_cast<float>((i + kPatternElements / 2) % kPatternElements);
    }
    return values;
  }();
  return *pattern;
}

// The pattern repeated, without copies.
std::vector<grpc::Slice> PatternSlices(uint64_t bytes) {
  std::vector<grpc::Slice> slices;
  for (; bytes > 0; bytes -= slices.back().size()) {
    slices.emplace_back(Pattern().data(), std::min(bytes, kPatternBytes),
                        grpc::Slice::STATIC_SLICE);
  }
  return slices;
}

// Calls `add` with the offset and the size of each chunk.
template <typename Add>
void ForEachChunk(const Shape& shape, const Add& add) {
  for (uint64_t offset = 0; offset < shape.bytes; offset += shape.chunk_bytes) {
    add(offset, std::min(shape.chunk_bytes, shape.bytes - offset));
  }
}

class TransferCall : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  TransferCall(Outgoing& outgoing, bool keep) : outgoing_(outgoing), keep_(keep) {}

  absl::StatusOr<Transferred> Run(grpc::GenericStub& stub) {
    const absl::Time begun = absl::Now();
    stub.PrepareBidiStreamingCall(&context_, outgoing_.method, {}, this);
    StartRead(&incoming_);
    WriteNext();
    StartCall();
    std::unique_lock<std::mutex> lock(mutex_);
    done_changed_.wait(lock, [&] { return done_; });
    const absl::Duration duration = absl::Now() - begun;
    RETURN_IF_ERROR(failure_);
    if (!end_.ok()) {
      return absl::InternalError(absl::StrCat(outgoing_.method, " ended with code ",
                                              static_cast<int>(end_.error_code()), ": ",
                                              end_.error_message()));
    }
    if (!seen_.ended) return absl::InternalError("The answer has no end.");
    return Transferred{duration, std::move(seen_)};
  }

  void OnWriteDone(bool ok) override {
    if (ok) WriteNext();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    failure_.Update(Look(outgoing_.answer, incoming_, keep_, seen_));
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnDone(const grpc::Status& status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    end_ = status;
    done_ = true;
    done_changed_.notify_all();
  }

 private:
  void WriteNext() {
    if (next_ > outgoing_.messages.size()) return;
    const size_t i = next_++;
    if (i == outgoing_.messages.size()) return StartWritesDone();
    StartWrite(&outgoing_.messages[i]);
  }

  Outgoing& outgoing_;
  const bool keep_;
  grpc::ClientContext context_;
  grpc::ByteBuffer incoming_;
  size_t next_ = 0;
  Seen seen_;  // seen_ and failure_ are used by the reading side
  absl::Status failure_;
  std::mutex mutex_;
  std::condition_variable done_changed_;
  bool done_ = false;
  grpc::Status end_;
};

// The wire form of `header` with `data` as its last field.
grpc::ByteBuffer AfternoonMessage(const bench::ArrayRequest& header,
                                  std::vector<grpc::Slice> data) {
  uint64_t size = 0;
  for (const grpc::Slice& slice : data) size += slice.size();
  std::string text = header.SerializeAsString();
  text += static_cast<char>(bench::ArrayRequest::kDataFieldNumber << 3 | 2);
  for (; size >= 0x80; size >>= 7) text += static_cast<char>(size | 0x80);
  text += static_cast<char>(size);
  data.insert(data.begin(), grpc::Slice(text));
  return grpc::ByteBuffer(data.data(), data.size());
}

absl::StatusOr<std::string> BytesOf(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!message.Dump(&slices).ok()) return absl::InternalError("An answer cannot be read.");
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

absl::Status LookAtInference(const grpc::ByteBuffer& message, bool keep, Seen& seen) {
  ASSIGN_OR_RETURN(const std::string bytes, BytesOf(message));
  StackMessage<inference::ModelInferResponse> response;
  if (!response->ParseFromString(bytes) || response->raw_output_contents().empty()) {
    return absl::InternalError("An answer is no ModelInferResponse with outputs.");
  }
  for (const std::string& output : response->raw_output_contents()) {
    seen.payload_bytes += output.size();
    if (keep) seen.payload += output;
  }
  seen.ended = true;
  return absl::OkStatus();
}

absl::Status LookAtAfternoon(const grpc::ByteBuffer& message, bool keep, Seen& seen) {
  ASSIGN_OR_RETURN(const std::string bytes, BytesOf(message));
  bench::ArrayResponse response;
  if (!response.ParseFromString(bytes)) {
    return absl::InternalError("An answer is no ArrayResponse.");
  }
  seen.payload_bytes += response.data().size();
  seen.ended = true;
  if (keep) seen.payload += response.data();
  return absl::OkStatus();
}

double SecondsOf(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + static_cast<double>(duration.nanos()) / 1e9;
}

SeenStatistics ToSeen(const v1::ExecutionStatistics& statistics) {
  return {.upload_seconds = SecondsOf(statistics.upload()),
          .compile_seconds = SecondsOf(statistics.compile()),
          .queue_seconds = SecondsOf(statistics.queue()),
          .compute_seconds = SecondsOf(statistics.compute()),
          .download_seconds = SecondsOf(statistics.download()),
          .was_cached = statistics.was_cached(),
          .batch_size = statistics.batch_size()};
}

}  // namespace

grpc::Slice PatternSlice(uint64_t bytes) {
  return PatternSlices(std::min(bytes, kPatternBytes))[0];
}

Outgoing BareMessages(const std::string& method, const Shape& shape) {
  Outgoing outgoing = {.method = absl::StrCat("/opmill.bench.Bare/", method)};
  ForEachChunk(shape, [&](uint64_t, uint64_t size) {
    const std::vector<grpc::Slice> slices = PatternSlices(size);
    outgoing.messages.emplace_back(slices.data(), slices.size());
  });
  return outgoing;
}

Outgoing SourceMessage(uint64_t bytes) {
  Outgoing outgoing = {.method = "/opmill.bench.Bare/Source"};
  const grpc::Slice number(absl::StrCat(bytes));
  outgoing.messages.emplace_back(&number, 1);
  return outgoing;
}

Outgoing ExecuteMessage(const v1::OperatorDesc& desc, const Shape& shape) {
  Outgoing outgoing = {.method = absl::StrCat(kService, "Execute"),
                       .answer = Answer::kExecute,
                       .streams_answer = true};
  v1::ExecuteRequest header;
  *header.mutable_operator_() = desc;
  outgoing.messages.push_back(JoinInputs(header, PatternSlices(shape.bytes)));
  return outgoing;
}

Outgoing InferMessage(const std::string& model, const Shape& shape) {
  inference::ModelInferRequest header;
  header.set_model_name(model);
  (*header.mutable_parameters())["axes"].set_string_param("1");
  inference::ModelInferRequest::InferInputTensor& input = *header.add_inputs();
  input.set_name("input");
  input.set_datatype("FP32");
  input.add_shape(1);
  input.add_shape(static_cast<int64_t>(shape.bytes / sizeof(float)));
  Outgoing outgoing = {.method = kInfer, .answer = Answer::kInference};
  outgoing.messages.push_back(JoinBytes(header,
                                        inference::ModelInferRequest::kRawInputContentsFieldNumber,
                                        {PatternSlice(shape.bytes)}));
  return outgoing;
}

Outgoing GivenMessage(const std::string& request, bool is_inference) {
  Outgoing outgoing = {.method = is_inference ? kInfer : absl::StrCat(kService, "Execute"),
                       .answer = is_inference ? Answer::kInference : Answer::kExecute,
                       .streams_answer = !is_inference};
  const grpc::Slice slice(request);
  outgoing.messages.emplace_back(&slice, 1);
  return outgoing;
}

Outgoing ExecuteStreamMessages(const v1::OperatorDesc& desc, const Shape& shape) {
  Outgoing outgoing = {.method = absl::StrCat(kService, "ExecuteStream"),
                       .answer = Answer::kExecuteStream};
  v1::ExecuteStreamRequest header;
  header.set_execution_id(1);
  *header.mutable_begin()->mutable_operator_() = desc;
  ForEachChunk(shape, [&](uint64_t offset, uint64_t size) {
    std::vector<OutgoingChunk> chunks;
    for (grpc::Slice& slice : PatternSlices(size)) {
      const uint64_t slice_size = slice.size();
      chunks.push_back({.offset = offset, .data = std::move(slice)});
      offset += slice_size;
    }
    outgoing.messages.push_back(JoinChunks(header, std::move(chunks)));
    header.clear_begin();
  });
  return outgoing;
}

Outgoing AfternoonMessages(const std::string& operation, uint64_t columns, bool streamed,
                           const Shape& shape) {
  Outgoing outgoing = {
      .method = absl::StrCat("/opmill.bench.Afternoon/", streamed ? "ComputeStream" : "Compute"),
      .answer = Answer::kAfternoon};
  bench::ArrayRequest header;
  header.set_operation(operation);
  header.set_dtype("float32");
  header.add_shape(static_cast<int64_t>(shape.bytes / sizeof(float) / columns));
  header.add_shape(static_cast<int64_t>(columns));
  header.set_axis(1);
  const Shape cut = {shape.bytes, streamed ? shape.chunk_bytes : shape.bytes};
  ForEachChunk(cut, [&](uint64_t, uint64_t size) {
    outgoing.messages.push_back(AfternoonMessage(header, PatternSlices(size)));
    header.Clear();
  });
  return outgoing;
}

absl::Status Look(Answer answer, grpc::ByteBuffer& message, bool keep, Seen& seen) {
  if (answer == Answer::kBytes) {
    seen.payload_bytes += message.Length();
    seen.ended = true;
    return absl::OkStatus();
  }
  if (answer == Answer::kAfternoon) return LookAtAfternoon(message, keep, seen);
  if (answer == Answer::kInference) return LookAtInference(message, keep, seen);

  ASSIGN_OR_RETURN(const SplitMessage split, SplitMessage::Split(message, PayloadKind::kChunks));
  for (const IncomingChunk& chunk : split.chunks()) {
    seen.payload_bytes += chunk.data.size();
    if (!keep) continue;
    const size_t old_size = seen.payload.size();
    seen.payload.resize(old_size + chunk.data.size());
    chunk.data.CopyTo(reinterpret_cast<std::byte*>(seen.payload.data() + old_size));
  }
  if (answer == Answer::kExecute) {
    StackMessage<v1::ExecuteResponse> response;
    if (!response->ParseFromString(split.header())) return absl::InternalError("No response.");
    if (!response->has_statistics()) return absl::OkStatus();
    seen.statistics = ToSeen(response->statistics());
  } else {
    StackMessage<v1::ExecuteStreamResponse> response;
    if (!response->ParseFromString(split.header())) return absl::InternalError("No response.");
    if (response->has_status()) return absl::InternalError(response->status().message());
    if (!response->has_statistics()) return absl::OkStatus();
    seen.statistics = ToSeen(response->statistics());
  }
  seen.ended = true;
  return absl::OkStatus();
}

absl::StatusOr<Transferred> Transfer(grpc::GenericStub& stub, Outgoing& outgoing, bool keep) {
  return TransferCall(outgoing, keep).Run(stub);
}

}  // namespace opmill
