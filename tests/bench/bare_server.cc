// A gRPC server without logic: the upper limit for any gRPC service. The last part of a method's
// name says what it does:
//   Unary    responds to a message with 64 bytes, the size of a small execution's response
//   Sink     receives messages, and responds with one when they end
//   Source   responds to "N" with N bytes
//   InOut    receives messages and, when they end, responds with as many bytes, as an operator must
//            whose first output may depend on its last input
//   Echo     responds to each message with the same message
//   Execute, ExecuteStream   as InOut, in messages that protobuf takes for OpMill's
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/process_memory.h"

ABSL_FLAG(std::string, address, "127.0.0.1:0", "where to listen");
ABSL_FLAG(std::string, allocator, "tuned",
          "tuned: the process is set up as opmill-server's is, its allocator and abseil's locks; "
          "default: as everyone builds it");

namespace opmill {
namespace {

constexpr size_t kChunkBytes = size_t{1} << 20;
constexpr size_t kSmallAnswerBytes = 64;

grpc::ByteBuffer Zeros(size_t bytes) {
  static std::string* const zeros = new std::string(kChunkBytes, '\0');
  const grpc::Slice slice(zeros->data(), std::min(bytes, kChunkBytes), grpc::Slice::STATIC_SLICE);
  return grpc::ByteBuffer(&slice, 1);
}

// The header of field 1000, of which protobuf knows nothing, with this many bytes.
std::string UnknownField(size_t bytes) {
  std::string header = "\xC2\x3E";
  for (; bytes >= 0x80; bytes >>= 7) header += static_cast<char>(bytes | 0x80);
  header += static_cast<char>(bytes);
  return header;
}

class BareCall : public grpc::ServerGenericBidiReactor {
 public:
  explicit BareCall(const std::string& method)
      : unary_(absl::EndsWith(method, "/Unary")),
        source_(absl::EndsWith(method, "/Source")),
        is_execution_(absl::StrContains(method, "/Execute")),
        in_out_(is_execution_ || absl::EndsWith(method, "/InOut")),
        echo_(absl::EndsWith(method, "/Echo")) {
    StartRead(&incoming_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return InputsEnded();
    if (unary_) return Last(kSmallAnswerBytes);
    if (source_) return BeginSource();
    if (echo_) {
      outgoing_.Swap(&incoming_);
      return StartWrite(&outgoing_);
    }
    if (in_out_) to_send_ += incoming_.Length();
    incoming_.Clear();
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    outgoing_.Clear();
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "The caller is gone."));
    if (echo_) return StartRead(&incoming_);
    WriteNext();
  }

  void OnDone() override { delete this; }

 private:
  void InputsEnded() {
    if (in_out_) return WriteNext();
    if (echo_) return Finish(grpc::Status::OK);
    Last(kSmallAnswerBytes);
  }

  void BeginSource() {
    std::vector<grpc::Slice> slices;
    std::string number;
    if (incoming_.Dump(&slices).ok()) {
      for (const grpc::Slice& slice : slices) {
        number.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      }
    }
    if (!absl::SimpleAtoi(number, &to_send_)) {
      return Finish(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                                 absl::StrCat("This is no number of bytes: ", number)));
    }
    WriteNext();
  }

  void WriteNext() {
    if (to_send_ <= kChunkBytes) return Last(to_send_);
    SetOutgoing(kChunkBytes);
    to_send_ -= kChunkBytes;
    StartWrite(&outgoing_);
  }

  void Last(size_t bytes) {
    SetOutgoing(bytes);
    StartWriteAndFinish(&outgoing_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void SetOutgoing(size_t bytes) {
    outgoing_ = Zeros(bytes);
    if (!is_execution_) return;
    std::vector<grpc::Slice> slices;
    if (!outgoing_.Dump(&slices).ok()) std::abort();
    slices.insert(slices.begin(), grpc::Slice(UnknownField(bytes)));
    outgoing_ = grpc::ByteBuffer(slices.data(), slices.size());
  }

  const bool unary_;
  const bool source_;
  const bool is_execution_;
  const bool in_out_;
  const bool echo_;
  uint64_t to_send_ = 0;
  grpc::ByteBuffer incoming_;
  grpc::ByteBuffer outgoing_;
};

class BareService : public grpc::CallbackGenericService {
 public:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new BareCall(context->method());
  }
};

}  // namespace
}  // namespace opmill

// Serves until it is killed. Logs as opmill-server does.
int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_allocator) == "tuned") opmill::TuneForServing();
  opmill::BareService service;
  grpc::ServerBuilder builder;
  int port = 0;
  builder.RegisterCallbackGenericService(&service);
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort(absl::GetFlag(FLAGS_address), grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) return EXIT_FAILURE;
  std::fprintf(stderr, "{\"event\":\"serving\",\"address\":\"127.0.0.1:%d\"}\n", port);
  server->Wait();
}
