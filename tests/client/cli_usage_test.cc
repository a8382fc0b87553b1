// `opmill` in scripts, shells and programs: errors, waiting, completion, signals.
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/npy.h"
#include "gmock/gmock.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/health_check_service_interface.h"
#include "gtest/gtest.h"
#include "opmill/v1/service.grpc.pb.h"
#include "tests/client/shell_fixture.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

class UsageTest : public ShellTest {};

TEST_F(UsageTest, ExplainsHowToSetAToken) {
  std::ofstream(scratch_.path() / "tokens") << "alice 5f1c1b5c2d0e4c3a9f5b0f6d8a7e6c11\n";
  std::ofstream(scratch_.path() / "right") << "5f1c1b5c2d0e4c3a9f5b0f6d8a7e6c11\n";
  std::ofstream(scratch_.path() / "wrong") << "0b9f4c7d1e2a4f5b8c6d7e8f90a1b2c3\n";
  const auto server = ServerProcess::Start(
      {"--device=reference", absl::StrCat("--token_file=", scratch_.utf8(), "/tokens")});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string at = " --server " + (*server)->address();
  for (const std::string& command : {"info" + at, "demo" + at, "stats --token_file wrong" + at}) {
    const Finished refused = Run(command);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--token_file"), HasSubstr("OPMILL_TOKEN")))
        << command;
  }
  EXPECT_EQ(Run("info --token_file right" + at).exit_code, 0);
}

TEST_F(UsageTest, DistinguishesUnknownNamesFromServersThatAreDown) {
  // Resolvers answer for .onion without a query (RFC 7686).
  const Finished unknown = Run("health --server host.onion:50051");
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("The name host.onion cannot be resolved"),
                                 Not(HasSubstr("opmill-server"))));
  // Not a loopback address by its text, but refused by this machine.
  const Finished remote = Run("health --server 0.0.0.0:1");
  EXPECT_EQ(remote.exit_code, 3);
  EXPECT_EQ(remote.err,
            "opmill: No server answers at 0.0.0.0:1: Connection refused.\n"
            "The address comes from --server.\n");
  EXPECT_THAT(Shell("OPMILL_SERVER=0.0.0.0:1 $OPMILL health").err,
              HasSubstr("The address comes from OPMILL_SERVER."));
  EXPECT_THAT(Run("health --server localhost:1").err,
              HasSubstr("Start a server with: opmill-server --address=localhost:1"));
}

TEST_F(UsageTest, ReportsMisspelledVariables) {
  const Finished done = Shell("OPMILL_SERVR=secret OPMILL_TOKEN_FILE=t $OPMILL health");
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.err, "opmill: OPMILL_SERVR has no effect. Did you mean OPMILL_SERVER?\n");
  EXPECT_EQ(Shell("OPMILL_TOKN=t $OPMILL health --json").err,
            "{\"warning\":{\"message\":\"OPMILL_TOKN has no effect. Did you mean "
            "OPMILL_TOKEN?\"}}\n");
}

TEST_F(UsageTest, HelpNeedsNoValidVariables) {
  const Finished done = Shell("OPMILL_SERVER=no OPMILL_TOKN=t $OPMILL --help");
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.err, "");
  EXPECT_THAT(done.out, HasSubstr("runs DirectML operators on an OpMill server"));
}

TEST_F(UsageTest, WritesErrorsAsJson) {
  struct Case {
    const char* arguments;
    int exit_code;
    const char* code;
    const char* field;  // "" if absent
  };
  const Case cases[] = {
      {"compile top_k --shape 3 --axis 0 --k 9 --json", 1, "INVALID_ARGUMENT", "--k"},
      {"compile reduce --function sum --shape 3 --axes 9 --json", 2, "INVALID_ARGUMENT", "--axes"},
      {"compile reduce --function sum --shape 3 --axes x --json", 2, "INVALID_ARGUMENT", "--axes"},
      {"--json compile reduce --shape", 2, "INVALID_ARGUMENT", "--shape"},
      {"rnu --json", 2, "INVALID_ARGUMENT", ""},
      {"--json", 2, "INVALID_ARGUMENT", ""},
      {"health --server localhost --json", 2, "INVALID_ARGUMENT", ""},
      {"health --server 127.0.0.1:1 --json", 3, "UNAVAILABLE", ""},
      {"health --service no.such --json", 1, "NOT_FOUND", ""},
      {"health --json >/dev/full", 1, "UNKNOWN", ""},
  };
  for (const auto& [arguments, exit_code, code, field] : cases) {
    const Finished done = Run(arguments);
    EXPECT_EQ(done.exit_code, exit_code) << arguments;
    EXPECT_EQ(done.out, "") << arguments;
    const auto json = ParseJson(done.err);
    const auto& error = json.fields().at("error").struct_value().fields();
    EXPECT_EQ(error.at("code").string_value(), code) << arguments;
    EXPECT_NE(error.at("message").string_value(), "") << arguments;
    EXPECT_EQ(error.count("field") == 0 ? "" : error.at("field").string_value(), field)
        << arguments;
  }
}

TEST_F(UsageTest, PrintsItsVersion) {
  const Finished version = Run("version");
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, StartsWith("opmill "));
  EXPECT_EQ(Run("-v").out, version.out);
  EXPECT_EQ(Run("--version").out, version.out);
  EXPECT_EQ(absl::StrCat("opmill ",
                         ParseJson(Run("version --json").out).fields().at("version").string_value(),
                         "\n"),
            version.out);
}

TEST_F(UsageTest, AcceptsCommonFlagsBeforeTheVerb) {
  for (const char* const arguments :
       {"--server $OPMILL_SERVER --json health", "--json --server=$OPMILL_SERVER health",
        "--json health --server $OPMILL_SERVER", "--deadline 5s health --json"}) {
    EXPECT_EQ(Run(arguments).out, "{\"status\":\"SERVING\"}\n") << arguments;
  }
  EXPECT_EQ(Run("--server 127.0.0.1:1 --help run").out, Run("help run").out);
  const std::pair<const char*, const char*> refused[] = {
      {"--sevrer x:1 info", "--sevrer is not allowed before the verb. Did you mean --server?"},
      {"--axes 0 run argmin", "--axes is not allowed before the verb."},
      {"--server x:1", "A verb is required"},
      {"--server", "A verb is required"},
      {"--server 127.0.0.1:1 info --server 127.0.0.1:1", "--server is given twice."}};
  for (const auto& [arguments, sentence] : refused) {
    const Finished done = Run(arguments);
    EXPECT_EQ(done.exit_code, 2) << arguments;
    EXPECT_THAT(done.err, HasSubstr(sentence)) << arguments;
  }
}

// Starts the response of an execution, and pauses until the caller is gone.
class HalfAnswers : public v1::OperatorService::Service {
  grpc::Status GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                             v1::GetServerInfoResponse* info) override {
    info->mutable_limits()->set_max_message_bytes(1 << 20);
    return grpc::Status::OK;
  }
  grpc::Status Execute(grpc::ServerContext* context, const v1::ExecuteRequest*,
                       grpc::ServerWriter<v1::ExecuteResponse>* writer) override {
    v1::ExecuteResponse response;
    v1::TensorDesc& output = *response.mutable_started()->add_outputs();
    output.set_data_type(v1::DATA_TYPE_FLOAT32);
    output.add_sizes(2);
    response.mutable_started()->add_output_bytes(8);
    response.add_chunks()->set_data("half");
    writer->Write(response);
    while (!context->IsCancelled()) absl::SleepFor(absl::Milliseconds(1));
    return grpc::Status::CANCELLED;
  }
};

// A running server whose health is NOT_SERVING at first.
std::unique_ptr<grpc::Server> StartFakeServer(int& port) {
  static HalfAnswers service;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(absl::StrCat("127.0.0.1:", port), grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server) server->GetHealthCheckService()->SetServingStatus(false);
  return server;
}

TEST_F(UsageTest, WaitsUntilTheServerServes) {
  int port = 0;
  std::unique_ptr<grpc::Server> server = StartFakeServer(port);
  ASSERT_NE(server, nullptr);
  const std::string wait = absl::StrCat("health --server 127.0.0.1:", port, " --wait ");
  const Finished late = Run(wait + "700ms");
  EXPECT_EQ(late.exit_code, 1);
  EXPECT_EQ(late.out, "NOT_SERVING\n");
  {
    std::thread serves([&] {
      absl::SleepFor(absl::Seconds(1));
      server->GetHealthCheckService()->SetServingStatus(true);
    });
    const Finished done = Run(wait + "30s");
    serves.join();
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, "SERVING\n");
  }
  server->Shutdown(std::chrono::system_clock::now());
  server.reset();
  const absl::Time begun = absl::Now();
  const Finished absent = Run(wait + "700ms");
  EXPECT_EQ(absent.exit_code, 3);
  EXPECT_THAT(absent.err, HasSubstr("No server answers at"));
  EXPECT_GE(absl::Now() - begun, absl::Milliseconds(400));
  // A server that starts while it waits.
  std::thread starts([&] {
    absl::SleepFor(absl::Seconds(1));
    server = StartFakeServer(port);
    if (server) server->GetHealthCheckService()->SetServingStatus(true);
  });
  const Finished done = Run(wait + "30s");
  starts.join();
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "SERVING\n");
  EXPECT_LT(absl::Now() - begun, absl::Seconds(20));
}

TEST_F(UsageTest, DoesNotWaitForPermanentErrors) {
  const absl::Time begun = absl::Now();
  EXPECT_EQ(Run("health --wait 60s").out, "SERVING\n");
  EXPECT_EQ(Run("health --wait 60s --service no.such").exit_code, 1);
  EXPECT_EQ(Run("health --wait soon").exit_code, 2);
  EXPECT_LT(absl::Now() - begun, absl::Seconds(30));
}

// The completions of bash for the last of these words, as readline passes them.
std::vector<std::string> Completions(const Finished& done) {
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.err, "");
  return absl::StrSplit(done.out, '\n', absl::SkipEmpty());
}

TEST_F(UsageTest, CompletesInBash) {
  const auto complete = [&](const std::string& words) {
    return Completions(Shell(
        absl::StrCat("bash -c \"source <($OPMILL completion bash); COMP_WORDS=(opmill ", words,
                     "); COMP_CWORD=\\$((\\${#COMP_WORDS[@]} - 1)); _opmill; "
                     "printf \\\"%s\\\\n\\\" \\\"\\${COMPREPLY[@]}\\\"\"")));
  };
  std::ofstream(scratch_.path() / "my x.npy") << "x";
  EXPECT_THAT(complete("he"), ElementsAre("health", "help"));
  EXPECT_THAT(complete("--server host:1 he"), ElementsAre("health", "help"));
  EXPECT_THAT(complete("--ser"), ElementsAre("--server"));
  EXPECT_THAT(complete("run a"), IsSupersetOf({"argmin", "argmax", "add", "average", "arctan2"}));
  EXPECT_THAT(complete("run argmin --dir"), ElementsAre("--direction"));
  EXPECT_THAT(complete("run argmin --direction i"), ElementsAre("increasing"));
  EXPECT_THAT(complete("run argmin --direction = i"), ElementsAre("increasing"));
  EXPECT_THAT(complete("run argmin --direction = "), ElementsAre("increasing", "decreasing"));
  EXPECT_THAT(complete("run argmin --direction=d"), ElementsAre("--direction=decreasing"));
  EXPECT_THAT(complete("run --axes 0 --input my"), ElementsAre("my x.npy"));
  EXPECT_THAT(complete("run reduce --function log_"), ElementsAre("log_sum", "log_sum_exp"));
  EXPECT_THAT(complete("bench --dtype uint1"), ElementsAre("uint16"));
  EXPECT_THAT(complete("bench --feature_level 6.4"), ElementsAre("6.4"));
  EXPECT_THAT(complete("completion z"), ElementsAre("zsh"));
  EXPECT_THAT(complete("help ben"), ElementsAre("bench"));
  EXPECT_THAT(complete("run --axes x"), IsEmpty());
}

TEST_F(UsageTest, WritesScriptsThatShellsAccept) {
  for (const char* const shell : {"bash", "zsh", "fish"}) {
    const Finished script = Run(absl::StrCat("completion ", shell));
    EXPECT_EQ(script.exit_code, 0);
    for (const char* const word : {"run", "index_type", "uint64", "opmill", "tls_server_name"}) {
      EXPECT_THAT(script.out, HasSubstr(word)) << shell;
    }
    if (Shell(absl::StrCat("command -v ", shell)).exit_code != 0) {
      std::cout << "The script for " << shell << " is not parsed: the shell is not installed.\n";
      continue;
    }
    const Finished parsed =
        Shell(absl::StrCat("$OPMILL completion ", shell, " >script; ", shell, " -n script"));
    EXPECT_EQ(parsed.exit_code, 0) << parsed.err;
    EXPECT_EQ(parsed.err, "") << shell;
  }
  EXPECT_THAT(Run("completion tcsh").err, HasSubstr("There is no script for \"tcsh\""));
  EXPECT_EQ(Run("completion").exit_code, 2);
}

TEST_F(UsageTest, LeavesNoFileWhenASignalEndsARun) {
  int port = 0;
  const std::unique_ptr<grpc::Server> server = StartFakeServer(port);
  ASSERT_NE(server, nullptr);
  {
    const float elements[] = {1, 2};
    std::ofstream file(scratch_.path() / "x.npy", std::ios::binary);
    file << MakeNpyHeader(v1::DATA_TYPE_FLOAT32, {2});
    file.write(reinterpret_cast<const char*>(elements), sizeof(elements));
  }
  const std::pair<const char*, int> signals[] = {{"TERM", 143}, {"INT", 130}, {"HUP", 129}};
  for (const auto& [name, exit_code] : signals) {
    // Shells make background jobs ignore SIGINT.
    const Finished done = Shell(absl::StrCat(
        "env --default-signal=INT $OPMILL run hardmax --input x.npy --axes 0 --output y.npy "
        "--server 127.0.0.1:",
        port,
        " & run=$!; until ls *.part >seen 2>/dev/null; do kill -0 $run || exit 99; done; kill -",
        name, " $run; wait $run; code=$?; ls; exit $code"));
    EXPECT_EQ(done.exit_code, exit_code) << name << done.err;
    EXPECT_THAT(ReadWhole(scratch_.path() / "seen"), StartsWith("y.npy.")) << name;
    EXPECT_EQ(done.out, "seen\nx.npy\n") << name;
    EXPECT_THAT(done.err, Not(HasSubstr("opmill:"))) << name;  // only the shell's message
  }
}

TEST_F(UsageTest, MeasuresSeveralConcurrencies) {
  const std::string bench =
      "bench --operator hardmax --shape 9,9 --axes 1 --duration 200ms --concurrency 1,2,8";
  const Finished table = Run(bench + " --chart chart.svg");
  ASSERT_EQ(table.exit_code, 0) << table.err;
  const std::vector<std::string> lines = absl::StrSplit(table.out, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 4u) << table.out;
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(lines[0], ' ', absl::SkipEmpty())),
              ElementsAre("concurrency", "calls/s", "GB/s", "p50", "p90", "p99"));
  EXPECT_THAT(lines[1], StartsWith("1 "));
  EXPECT_THAT(lines[3], StartsWith("8 "));

  const std::string chart = ReadWhole(scratch_.path() / "chart.svg");
  for (const char* const part : {"hardmax, float32 (9, 9)", ">p50<", ">p90<", ">p99<", ">8<",
                                 "Calls per second", "Concurrent executions"}) {
    EXPECT_THAT(chart, HasSubstr(part));
  }
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(chart, "<polyline")).size(), 5u);
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(chart, "<circle")).size(), 13u);
  const Finished parsed =
      Shell("python3 -c \"import xml.dom.minidom as x; x.parse(\\\"chart.svg\\\")\"");
  EXPECT_EQ(parsed.exit_code, 0) << parsed.err;

  const auto json = ParseJson(Run(bench + " --json").out);
  const auto& runs = json.fields().at("runs").list_value().values();
  ASSERT_EQ(runs.size(), 3);
  for (int i = 0; i < runs.size(); ++i) {
    const auto& run = runs[i].struct_value().fields();
    EXPECT_EQ(run.at("concurrency").number_value(), i == 0 ? 1 : i == 1 ? 2 : 8);
    EXPECT_GT(run.at("calls_per_s").number_value(), 0);
    EXPECT_GT(run.at("latency_s").struct_value().fields().at("p90").number_value(), 0);
  }
  EXPECT_THAT(Run("bench --operator hardmax --shape 9 --axes 0 --concurrency 1,x").err,
              HasSubstr("--concurrency: \"x\" is not an integer"));
  const Finished unwritable =
      Run("bench --operator hardmax --shape 9 --axes 0 --duration 50ms --chart no/such.svg");
  EXPECT_EQ(unwritable.exit_code, 1);
  EXPECT_THAT(unwritable.err, HasSubstr("no/such.svg cannot be written"));
}

TEST_F(UsageTest, PrintsMeasurementsBeforeAnError) {
  const auto server =
      ServerProcess::Start({"--device=reference", "--max_executions=200", "--max_queued=32"});
  ASSERT_TRUE(server.ok()) << server.status();
  const Finished done =
      Run(absl::StrCat("bench --operator hardmax --shape 9 --axes 0 --rpc execute --duration 1s "
                       "--concurrency 1,1000 --server ",
                       (*server)->address()));
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.out, HasSubstr("\n1 "));
  EXPECT_THAT(done.err, HasSubstr("max_executions"));
}

}  // namespace
}  // namespace opmill
