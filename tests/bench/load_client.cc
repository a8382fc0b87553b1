// Calls the measured servers; controlled by bench.py:
//
//   connect server=NAME target=HOST:PORT
//   transfer server= kind= bytes= [chunk=] [desc=] [operation= columns=] [save=FILE]
//     kind: Sink, InOut, Echo, Source, stream, execute, afternoon, afternoon_stream
//   load server= kind=Unary|execute|stream|infer|afternoon concurrency= milliseconds= bytes=
//     [desc=] [model=] [operation= columns=] [expect=HEX | expect_file=FILE]
//   hold server= streams= [executions= desc=]    opens streams whose executions wait for input
//   release                                      closes these streams
//
// `desc` is an OperatorDesc in protobuf's text format, without spaces. In its place, and that of
// `model` and `bytes`, `request=FILE` may have the whole message for kind=execute and kind=infer.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/grpcpp.h"
#include "kernels/base/errors.h"
#include "kernels/base/process_memory.h"
#include "tests/bench/held_stream.h"
#include "tests/bench/small_load.h"
#include "tests/bench/tool.h"
#include "tests/bench/transfer.h"

ABSL_FLAG(std::string, allocator, "tuned", "tuned as bare_server's, or default");

namespace opmill {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, " cannot be read."));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::StatusOr<v1::OperatorDesc> ParseDesc(const std::string& text) {
  v1::OperatorDesc desc;
  if (google::protobuf::TextFormat::ParseFromString(text, &desc)) return desc;
  return absl::InvalidArgumentError(absl::StrCat("This is no OperatorDesc: ", text));
}

class LoadClient {
 public:
  absl::StatusOr<Json> Handle(const Command& command) {
    if (command.verb() == "connect") return Connect(command);
    if (command.verb() == "transfer") return Transfer(command);
    if (command.verb() == "load") return Load(command);
    if (command.verb() == "hold") return Hold(command);
    if (command.verb() == "release") {
      held_.clear();
      return Json();
    }
    return absl::NotFoundError(absl::StrCat("There is no command ", command.verb(), "."));
  }

 private:
  struct Connection {
    std::string target;
    std::unique_ptr<grpc::GenericStub> stub;
  };

  absl::StatusOr<Json> Connect(const Command& command) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const std::string target = command.Text("target");
    const std::shared_ptr<grpc::Channel> channel =
        grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
    if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(20)))) {
      return absl::UnavailableError(absl::StrCat("No server answers at ", target, "."));
    }
    connections_[command.Text("server")] = {target, std::make_unique<grpc::GenericStub>(channel)};
    return Json();
  }

  absl::StatusOr<Connection*> Find(const Command& command) {
    const auto found = connections_.find(command.Text("server"));
    if (found != connections_.end()) return &found->second;
    return absl::NotFoundError(absl::StrCat(command.Text("server"), " is not connected."));
  }

  static absl::StatusOr<Outgoing> Messages(const Command& command) {
    const std::string kind = command.Text("kind");
    if (const std::string path = command.Text("request"); !path.empty()) {
      ASSIGN_OR_RETURN(const std::string request, ReadFile(path));
      return GivenMessage(request, kind == "infer");
    }
    Shape shape;
    ASSIGN_OR_RETURN(shape.bytes, command.Number("bytes"));
    ASSIGN_OR_RETURN(const uint64_t chunk_bytes, command.Number("chunk"));
    if (chunk_bytes != 0) shape.chunk_bytes = chunk_bytes;
    if (kind == "Source") return SourceMessage(shape.bytes);
    if (kind == "execute" || kind == "stream") {
      ASSIGN_OR_RETURN(const v1::OperatorDesc desc, ParseDesc(command.Text("desc")));
      return kind == "execute" ? ExecuteMessage(desc, shape) : ExecuteStreamMessages(desc, shape);
    }
    if (kind == "infer") return InferMessage(command.Text("model"), shape);
    if (absl::StartsWith(kind, "afternoon")) {
      ASSIGN_OR_RETURN(const uint64_t columns, command.Number("columns"));
      if (columns == 0) return absl::InvalidArgumentError("columns is missing.");
      return AfternoonMessages(command.Text("operation"), columns, kind == "afternoon_stream",
                               shape);
    }
    if (kind != "StreamedAnswer") return BareMessages(kind, shape);
    Outgoing outgoing = BareMessages("Unary", shape);
    outgoing.streams_answer = true;
    return outgoing;
  }

  absl::StatusOr<Json> Transfer(const Command& command) {
    ASSIGN_OR_RETURN(Connection* const connection, Find(command));
    ASSIGN_OR_RETURN(Outgoing outgoing, Messages(command));
    const std::string path = command.Text("save");
    ASSIGN_OR_RETURN(const Transferred done,
                     opmill::Transfer(*connection->stub, outgoing, !path.empty()));
    if (!path.empty() && !(std::ofstream(path, std::ios::binary) << done.seen.payload)) {
      return absl::UnavailableError(absl::StrCat(path, " cannot be written."));
    }
    const SeenStatistics& statistics = done.seen.statistics;
    return Json()
        .Add("seconds", absl::ToDoubleSeconds(done.duration))
        .Add("received_bytes", static_cast<double>(done.seen.payload_bytes))
        .Add("upload_s", statistics.upload_seconds)
        .Add("compile_s", statistics.compile_seconds)
        .Add("queue_s", statistics.queue_seconds)
        .Add("compute_s", statistics.compute_seconds)
        .Add("download_s", statistics.download_seconds)
        .Add("was_cached", statistics.was_cached ? 1.0 : 0.0);
  }

  absl::StatusOr<Json> Load(const Command& command) {
    ASSIGN_OR_RETURN(Connection* const connection, Find(command));
    LoadPlan plan;
    ASSIGN_OR_RETURN(const uint64_t concurrency, command.Number("concurrency"));
    ASSIGN_OR_RETURN(const uint64_t milliseconds, command.Number("milliseconds"));
    plan.concurrency = static_cast<uint32_t>(concurrency);
    plan.duration = absl::Milliseconds(milliseconds);
    plan.warm_up = plan.duration / 5;
    std::string expected = absl::HexStringToBytes(command.Text("expect"));
    if (const std::string path = command.Text("expect_file"); !path.empty()) {
      ASSIGN_OR_RETURN(expected, ReadFile(path));
    }
    absl::StatusOr<LoadReport> report;
    if (command.Text("kind") == "stream") {
      ASSIGN_OR_RETURN(const v1::OperatorDesc desc, ParseDesc(command.Text("desc")));
      ASSIGN_OR_RETURN(const uint64_t bytes, command.Number("bytes"));
      const grpc::Slice input = PatternSlice(bytes);
      ASSIGN_OR_RETURN(Client client, Client::Connect(connection->target));
      report = RunExecutions(client, desc,
                             {reinterpret_cast<const std::byte*>(input.begin()), input.size(), {}},
                             plan, expected);
    } else {
      ASSIGN_OR_RETURN(const Outgoing outgoing, Messages(command));
      report = RunCalls(*connection->stub, outgoing, plan, expected);
    }
    if (!report.ok()) return report.status();
    if (report->latencies.empty()) return absl::DeadlineExceededError("No call ended in time.");
    return Json()
        .Add("calls_per_s", CallsPerSecond(*report))
        .Add("p50_s", absl::ToDoubleSeconds(Quantile(*report, 0.5)))
        .Add("p90_s", absl::ToDoubleSeconds(Quantile(*report, 0.9)))
        .Add("p99_s", absl::ToDoubleSeconds(Quantile(*report, 0.99)))
        .Add("mean_batch", static_cast<double>(report->server.batch_size) /
                               static_cast<double>(report->latencies.size()));
  }

  absl::StatusOr<Json> Hold(const Command& command) {
    ASSIGN_OR_RETURN(Connection* const connection, Find(command));
    ASSIGN_OR_RETURN(const uint64_t streams, command.Number("streams"));
    ASSIGN_OR_RETURN(const uint64_t executions, command.Number("executions"));
    for (uint64_t i = 0; i < streams; ++i) {
      held_.push_back(std::make_unique<HeldStream>(*connection->stub));
      if (executions == 0) continue;
      ASSIGN_OR_RETURN(const v1::OperatorDesc desc, ParseDesc(command.Text("desc")));
      RETURN_IF_ERROR(held_.back()->Begin(desc, executions));
    }
    return Json();
  }

  std::map<std::string, Connection> connections_;
  std::vector<std::unique_ptr<HeldStream>> held_;
};

}  // namespace
}  // namespace opmill

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_allocator) == "tuned") opmill::TuneForServing();
  grpc_init();  // never undone: the last shutdown may wait 10 s for gRPC's poller
  opmill::LoadClient client;
  opmill::ServeCommands([&](const opmill::Command& command) { return client.Handle(command); });
  std::_Exit(EXIT_SUCCESS);
}
