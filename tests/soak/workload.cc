#include "tests/soak/workload.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/error.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace opmill {
namespace {

using Code = absl::StatusCode;

constexpr uint64_t kMostOnAStream = 12;

// Responses may be as long as the server's longest message.
std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // does not share a connection
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

v1::ExecuteRequest RequestOf(const SoakCase& c) {
  v1::ExecuteRequest request;
  *request.mutable_operator_() = c.desc();
  for (const std::vector<std::byte>& input : c.inputs()) {
    request.add_inputs(input.data(), input.size());
  }
  return request;
}

void SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
}

// Appends chunks; returns false if they are not consecutive.
bool Append(const google::protobuf::RepeatedPtrField<v1::TensorChunk>& chunks,
            std::vector<OutputTensor>& outputs) {
  for (const v1::TensorChunk& chunk : chunks) {
    if (chunk.tensor_index() >= outputs.size()) return false;
    std::vector<std::byte>& bytes = outputs[chunk.tensor_index()].bytes;
    if (chunk.offset() != bytes.size()) return false;
    const auto* data = reinterpret_cast<const std::byte*>(chunk.data().data());
    bytes.insert(bytes.end(), data, data + chunk.data().size());
  }
  return true;
}

}  // namespace

Workload::Workload(const std::string& address, SoakCases& cases, Ledger& ledger,
                   const Options& options)
    : address_(address),
      cases_(cases),
      ledger_(ledger),
      options_(options),
      channel_(Connect(address)),
      stub_(v1::OperatorService::NewStub(channel_)),
      tensors_(
          options.tensors,
          [this](const std::string& action, const absl::Status& status, std::vector<Code> allowed) {
            allowed.push_back(Code::kOk);
            End(absl::StrCat("tensor ", action), status, std::move(allowed), "a tensor");
          },
          [this](const std::string& action, const std::string& mistake) {
            ledger_.Fail(absl::StrCat(options_.server, " tensors, ", action), mistake);
          }) {}

void Workload::DoOne(Random& random) {
  const uint64_t choice = random.Below(100);
  if (choice < 25) return Execute(random);
  if (choice < 45) return tensors_.DoOne(client(), random);
  if (choice < 65) return ExecuteMany(random);
  if (choice < 72) return ExecuteInTime(random);
  if (choice < 79) return ReadSlowly(random);
  if (choice < 85) return SendBadDescriptor(random);
  if (choice < 91) return SendWrongBytes(random);
  if (choice < 95) return SendNonsense(random);
  return Ask(random);
}

void Workload::End(absl::string_view action, const absl::Status& status, std::vector<Code> allowed,
                   const std::string& what) {
  const std::string name = absl::StrCat(options_.server, " ", action);
  ledger_.Count(name, status.code());
  if (options_.may_be_unavailable) allowed.push_back(Code::kUnavailable);
  if (std::find(allowed.begin(), allowed.end(), status.code()) != allowed.end()) return;
  ledger_.Fail(name, absl::StrCat(Describe(status), " (", absl::StatusCodeToString(status.code()),
                                  ") of ", what));
}

void Workload::End(absl::string_view action, SoakCase& c, const absl::Status& status,
                   const std::vector<OutputTensor>& outputs, std::vector<Code> allowed) {
  allowed.push_back(Code::kOk);
  End(action, status, std::move(allowed), c.line());
  if (!status.ok()) return;
  const std::string mistake = c.FindMistake(outputs);
  if (mistake.empty()) return;
  ledger_.Fail(absl::StrCat(options_.server, " ", action), absl::StrCat(mistake, " of ", c.line()));
}

Client& Workload::client() {
  if (client_ == nullptr) {
    for (;;) {
      absl::StatusOr<Client> client = Client::Connect(
          address_, {.connect_timeout = options_.patience, .timeout = options_.patience});
      if (client.ok()) {
        client_ = std::make_unique<Client>(*std::move(client));
        break;
      }
      if (!options_.may_be_unavailable) {
        ledger_.Fail("connect", client.status().ToString());
        absl::SleepFor(absl::Seconds(1));
      }
    }
  }
  return *client_;
}

void Workload::Execute(Random& random) {
  SoakCase& c = cases_.Pick(random);
  MemorySink sink;
  const auto end = client().Execute(c.desc(), c.bytes(), sink, {.timeout = options_.patience});
  End("execute", c, end.status(), sink.outputs());
}

void Workload::ExecuteInTime(Random& random) {
  SoakCase& c = cases_.Pick(random);
  MemorySink sink;
  const auto end = client().Execute(c.desc(), c.bytes(), sink,
                                    {.timeout = absl::Milliseconds(1 + random.Below(30))});
  End("short deadline", c, end.status(), sink.outputs(), {Code::kDeadlineExceeded});
}

void Workload::ExecuteMany(Random& random) {
  struct One {
    SoakCase* c = nullptr;
    MemorySink sink;
    bool cancels = false;
    absl::Status end = absl::UnknownError("It never ended.");
  };
  std::deque<One> all;  // a deque, so that addresses are stable
  absl::StatusOr<std::unique_ptr<ExecutionStream>> stream = client().OpenStream(options_.patience);
  if (!stream.ok()) return End("stream", stream.status(), {}, "OpenStream");
  for (uint64_t count = 1 + random.Below(kMostOnAStream); count > 0; --count) {
    One& one = all.emplace_back();
    one.c = &cases_.Pick(random);
    one.cancels = random.OneIn(8);
    const uint64_t id = (*stream)->Begin(
        one.c->desc(), one.c->bytes(), one.sink,
        [&one](const absl::StatusOr<v1::ExecutionStatistics>& end) { one.end = end.status(); });
    if (!one.cancels) continue;
    absl::SleepFor(absl::Microseconds(random.Below(5000)));
    (*stream)->Cancel(id);
  }
  const bool breaks_off = random.OneIn(10);
  if (breaks_off) {
    stream->reset();
  } else {
    const absl::Status finished = (*stream)->Finish();
    End("stream", finished, {Code::kOk}, "Finish");
  }
  for (One& one : all) {
    std::vector<Code> allowed;
    if (one.cancels || breaks_off) allowed.push_back(Code::kCancelled);
    End(breaks_off ? "broken-off stream" : "on a stream", *one.c, one.end, one.sink.outputs(),
        std::move(allowed));
  }
}

void Workload::ReadSlowly(Random& random) {
  SoakCase& c = cases_.Pick(random);
  if (TotalBytes(c.bytes()) > size_t{16} << 20) return;  // more than one message
  grpc::ClientContext context;
  SetDeadline(context, options_.patience);
  const auto reader = stub_->Execute(&context, RequestOf(c));
  const bool leaves = random.OneIn(3);
  std::vector<OutputTensor> outputs;
  bool in_order = true;
  for (v1::ExecuteResponse response; reader->Read(&response);) {
    if (response.has_started()) outputs.resize(response.started().outputs_size());
    in_order = Append(response.chunks(), outputs) && in_order;
    absl::SleepFor(absl::Milliseconds(random.Below(40)));
    if (leaves) context.TryCancel();
  }
  const absl::Status status = FromGrpcStatus(reader->Finish(), /*caller_cancelled=*/leaves);
  if (!in_order) ledger_.Fail("slow reader", "chunks that do not follow each other");
  End("slow reader", c, status, outputs,
      leaves ? std::vector{Code::kCancelled} : std::vector<Code>());
}

void Workload::SendBadDescriptor(Random& random) {
  v1::OperatorDesc desc = cases_.PickSmall(random).desc();
  switch (random.Below(3)) {
    case 0:
      desc.Clear();
      break;
    case 1: {
      v1::TopKDesc& top_k = *desc.mutable_top_k();
      top_k.set_k(0);
      top_k.set_axis(99);
      break;
    }
    default:
      desc.mutable_hardmax()->mutable_input()->set_data_type(static_cast<v1::DataType>(77));
      break;
  }
  MemorySink sink;
  const std::byte bytes[8] = {};
  const auto end = client().Execute(desc, InputBytes{bytes, sizeof(bytes)}, sink,
                                    {.timeout = options_.patience});
  End("bad descriptor", end.status(), {Code::kInvalidArgument}, desc.ShortDebugString());
}

// Chunks with gaps or for unknown ids, on a stream whose other execution must succeed.
void Workload::SendWrongBytes(Random& random) {
  SoakCase& c = cases_.PickSmall(random);
  grpc::ClientContext context;
  SetDeadline(context, options_.patience);
  const auto stream = stub_->ExecuteStream(&context);
  v1::ExecuteStreamRequest good;
  good.set_execution_id(1);
  *good.mutable_begin()->mutable_operator_() = c.desc();
  for (const std::vector<std::byte>& input : c.inputs()) {
    v1::TensorChunk& whole = *good.add_chunks();
    whole.set_tensor_index(static_cast<uint32_t>(good.chunks_size() - 1));
    whole.set_data(input.data(), input.size());
  }
  v1::ExecuteStreamRequest bad;
  bad.set_execution_id(2);
  v1::TensorChunk& chunk = *bad.add_chunks();
  chunk.set_data("x");
  if (random.OneIn(2)) {
    *bad.mutable_begin()->mutable_operator_() = c.desc();
    chunk.set_offset(1 + random.Below(100));
  }
  bool sent = stream->Write(bad) && stream->Write(good);
  sent = stream->WritesDone() && sent;
  std::vector<OutputTensor> outputs;
  absl::Status ends[2] = {absl::UnavailableError("no end"), absl::UnavailableError("no end")};
  for (v1::ExecuteStreamResponse response; stream->Read(&response);) {
    if (response.execution_id() < 1 || response.execution_id() > 2) {
      ledger_.Fail("wrong bytes", response.ShortDebugString());
      continue;
    }
    if (response.has_started()) outputs.resize(response.started().outputs_size());
    if (!Append(response.chunks(), outputs)) ledger_.Fail("wrong bytes", "chunks out of order");
    absl::Status& end = ends[response.execution_id() - 1];
    if (response.has_statistics()) end = absl::OkStatus();
    if (response.has_status()) end = FromRpcStatus(response.status());
  }
  End("wrong bytes, stream", FromGrpcStatus(stream->Finish()), {Code::kOk}, c.line());
  End("wrong bytes, good one", c, ends[0], outputs);
  End("wrong bytes", ends[1], {Code::kInvalidArgument}, c.line());
}

void Workload::SendNonsense(Random& random) {
  std::string bytes(1 + random.Below(200), '\xFF');
  for (size_t i = 12; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random.Bits());
  const grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1);
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  SetDeadline(context, options_.patience);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, "/opmill.v1.OperatorService/Execute", &queue);
  grpc::Status status;
  grpc::ByteBuffer response;
  const auto wait = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  call->StartCall(nullptr);
  if (wait()) {
    call->WriteLast(request, grpc::WriteOptions(), nullptr);
    wait();
    call->Read(&response, nullptr);
    wait();
  }
  call->Finish(&status, nullptr);
  wait();
  End("nonsense", FromGrpcStatus(status), {Code::kInvalidArgument}, "bytes that are no message");
}

void Workload::Ask(Random& random) {
  switch (random.Below(4)) {
    case 0:
      return End("server info", client().GetServerInfo().status(), {Code::kOk}, "");
    case 1:
      return End("statistics", client().GetStatistics().status(), {Code::kOk}, "");
    case 2:
      return End("health", client().CheckHealth().status(), {Code::kOk}, "");
    default:
      return End("compile", client().Compile(cases_.PickSmall(random).desc()).status(), {Code::kOk},
                 "");
  }
}

}  // namespace opmill
