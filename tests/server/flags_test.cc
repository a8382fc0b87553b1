// The command line of the real server: accepted values, their sources, and errors.
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Ended {
  int code = 0;
  std::string text;  // stdout and stderr
};

// Runs the server in a shell, as "NAME=value ... opmill-server flags".
Ended RunServer(absl::string_view environment, absl::string_view flags) {
  const std::string command =
      absl::StrCat(environment, " \"", OPMILL_SERVER_PATH, "\" ", flags, " 2>&1");
  Ended ended;
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 4096> bytes;
  for (size_t count = 1; count > 0;) {
    count = std::fread(bytes.data(), 1, bytes.size(), pipe);
    ended.text.append(bytes.data(), count);
  }
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

// Parses the flags; the server then only lists adapters.
Ended Parse(absl::string_view environment, absl::string_view flags) {
  return RunServer(environment, absl::StrCat("--list_adapters ", flags));
}

void ExpectRefusal(const Ended& ended, absl::string_view sentence) {
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.text, absl::StrCat("opmill-server: ", sentence, "\n"));
}

TEST(Flags, RefusesValuesOutOfRange) {
  ExpectRefusal(Parse("", "--max_message_bytes=4095"),
                "--max_message_bytes is 4095; it must be at least 4KiB and at most 2047MiB.");
  ExpectRefusal(Parse("", "--max_message_bytes=2147483648"),
                "--max_message_bytes is 2GiB; it must be at least 4KiB and at most 2047MiB.");
  ExpectRefusal(Parse("", "--max_response_chunk_bytes=1"),
                "--max_response_chunk_bytes is 1; it must be at least 4KiB and at most 2047MiB.");
  ExpectRefusal(Parse("", "--max_executions=0"),
                "--max_executions is 0; it must be at least 1 and at most 4294967295.");
  ExpectRefusal(Parse("", "--max_executions_per_stream=0"),
                "--max_executions_per_stream is 0; it must be at least 1 and at most 4294967295.");
  ExpectRefusal(Parse("", "--max_streams=0"),
                "--max_streams is 0; it must be at least 1 and at most 4294967295.");
  ExpectRefusal(Parse("", "--max_queued=0"),
                "--max_queued is 0; it must be at least 1 and at most 4294967295.");
  ExpectRefusal(Parse("", "--max_calls_per_connection=2147483648"),
                "--max_calls_per_connection is 2147483648; it must be at least 1 and at most "
                "2147483647.");
  EXPECT_EQ(Parse("", "--caller_limits=executions=64,bytes=2GiB,rate=1000/s").code, 0);
  EXPECT_EQ(Parse("", "--caller_limits=").code, 0);
  EXPECT_THAT(Parse("", "--caller_limits=rate=0").text, HasSubstr("rate must be a number"));
  ExpectRefusal(Parse("", "--stall_timeout=0"), "--stall_timeout is 0; it must be at least 100ms.");
  EXPECT_EQ(Parse("", "--stall_timeout=inf").code, 0);
  ExpectRefusal(Parse("", "--max_model_compile_time=50ms"),
                "--max_model_compile_time is 50ms; it must be at least 100ms.");
  EXPECT_EQ(Parse("", "--max_model_compile_time=inf").code, 0);
  EXPECT_EQ(Parse("", "--memory_limit=1000000").code, 2);
  EXPECT_EQ(Parse("", "--memory_limit=1000000000 --max_bytes_in_flight=900000000").code, 2);
  ExpectRefusal(Parse("", "--drain_timeout=-1s"), "--drain_timeout is -1s; it must be at least 0.");
  ExpectRefusal(Parse("", "--address="),
                "--address is empty; it must name at least one host:port.");
}

TEST(Flags, ExplicitModelControlNeedsARepositoryAndLoadModelNeedsIt) {
  ExpectRefusal(Parse("", "--model_control_mode=explicit"),
                "--model_control_mode is \"explicit\", which needs --model_repository.");
  ExpectRefusal(Parse("", "--model_repository=/tmp --load_model=a,b"),
                "--load_model is \"a,b\", which needs --model_control_mode=explicit.");
  EXPECT_EQ(
      Parse("", "--model_repository=/tmp --model_control_mode=explicit --load_model='*'").code, 0);
}

// The error message, or for a valid size the exit code, shows how the size was parsed.
TEST(Flags, ByteSizesAcceptUnits) {
  for (const absl::string_view flag :
       {"max_message_bytes", "max_response_chunk_bytes", "max_tensor_bytes", "max_bytes_in_flight",
        "max_scratch_bytes", "max_idle_bytes", "memory_limit"}) {
    const std::string flags = flag == "memory_limit" ? "" : "--memory_limit=64GiB ";
    EXPECT_EQ(Parse("", absl::StrCat(flags, "--", flag, "=1.5GiB")).code, 0) << flag;
    EXPECT_EQ(Parse("", absl::StrCat(flags, "--", flag, "=1610612736")).code, 0) << flag;
    const Ended unreadable = Parse("", absl::StrCat(flags, "--", flag, "=1XB"));
    EXPECT_EQ(unreadable.code, 2) << flag;
    EXPECT_THAT(unreadable.text,
                StartsWith(absl::StrCat("opmill-server: --", flag,
                                        " is \"1XB\". A size is a number of bytes, or a number")));
  }
  EXPECT_EQ(Parse("", "--max_message_bytes=2047MiB --memory_limit=64GiB").code, 0);
  const ScratchDirectory directory;
  const std::string path = (directory.path() / "file").string();
  std::ofstream(path) << "--max_message_bytes=3GB\n";
  ExpectRefusal(Parse("", absl::StrCat("--flagfile=", path)),
                "--max_message_bytes is 3GB; it must be at least 4KiB and at most 2047MiB.");
  ExpectRefusal(Parse("OPMILL_MAX_MESSAGE_BYTES=3.5KiB", ""),
                "--max_message_bytes is 3584; it must be at least 4KiB and at most 2047MiB.");
  const std::string forms =
      "is \"4Gi\". A size is a number of bytes, or a number with KiB, MiB, GiB, TiB, kB, MB, GB or "
      "TB: 64MiB, 1.5GiB. Did you mean 4GiB?";
  ExpectRefusal(Parse("OPMILL_MEMORY_LIMIT=4Gi", ""), "OPMILL_MEMORY_LIMIT " + forms);
  ExpectRefusal(Parse("", "--memory_limit=4Gi"), "--memory_limit " + forms);
  ExpectRefusal(
      Parse("", "--memory_limit=1MB"),
      "--memory_limit is 1MB; it must be at least 648MiB: 256MiB for the process and "
      "--max_executions "
      "(16384), 64MiB for live kernels, 8MiB for compiled operators, 192MiB for messages with a "
      "--max_message_bytes of 64MiB, and 128MiB for tensors.");
}

TEST(Flags, AnAddressHasAHostAndAPort) {
  for (const absl::string_view address :
       {"127.0.0.1", "127.0.0.1:", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:x", ":1"}) {
    ExpectRefusal(
        Parse("", absl::StrCat("--address=[::1]:0,", address)),
        absl::StrCat("--address is \"", address,
                     "\"; it must be host:port with a port from 0 to 65535, or unix:path."));
  }
}

TEST(Flags, ClearTextOnReachableAddressesRequiresInsecure) {
  for (const absl::string_view address :
       {"0.0.0.0:50051", "[::]:0", "192.168.1.1:50051", "example.com:1", "127.example:1",
        "127.0.0.1.example:1", "127.0.0.256:1", "128.0.0.1:1"}) {
    ExpectRefusal(Parse("", absl::StrCat("--address=127.0.0.1:0,", address)),
                  absl::StrCat("--address is \"", address,
                               "\", which other machines can reach, and would use clear text: set "
                               "--tls_cert and --tls_key, or --insecure if everyone on that "
                               "network may read and send."));
    EXPECT_EQ(Parse("", absl::StrCat("--insecure --address=", address)).code, 0);
    EXPECT_EQ(Parse("OPMILL_INSECURE=true", absl::StrCat("--address=", address)).code, 0);
    EXPECT_EQ(Parse("", absl::StrCat("--tls_cert=c --tls_key=k --address=", address)).code, 0);
  }
  EXPECT_EQ(Parse("", "--address=localhost:0,127.1.2.3:0,[::1]:0,unix:/tmp/socket").code, 0);
}

TEST(Flags, TlsCertificateAndKeyRequireEachOther) {
  ExpectRefusal(
      Parse("", "--tls_cert=c"),
      "--tls_cert is given without --tls_key; a certificate and its key belong together.");
  ExpectRefusal(
      Parse("", "--tls_key=k"),
      "--tls_key is given without --tls_cert; a certificate and its key belong together.");
  ExpectRefusal(Parse("", "--tls_client_ca=c"),
                "--tls_client_ca requires TLS: set --tls_cert and --tls_key too.");
}

TEST(Flags, OfWordsSayWhichWordsThereAre) {
  ExpectRefusal(Parse("", "--log_format=xml"),
                "--log_format is \"xml\"; it must be one of text, json.");
  ExpectRefusal(Parse("", "--log_level=loud"),
                "--log_level is \"loud\"; it must be one of debug, info, warning, error.");
  ExpectRefusal(
      Parse("", "--device=quantum"),
      "--device is \"quantum\"; it must be one of auto, hardware, software, cpu, reference.");
  ExpectRefusal(Parse("", "--standby=maybe"),
                "--standby is \"maybe\"; it must be one of auto, on, off.");
  ExpectRefusal(Parse("", "--small_work=disk"),
                "--small_work is \"disk\"; it must be one of auto, gpu, cpu.");
  ExpectRefusal(Parse("", "--model_control_mode=on"),
                "--model_control_mode is \"on\"; it must be one of none, poll, explicit.");
}

TEST(Flags, AreAllThatTheServerTakes) {
  ExpectRefusal(Parse("", "serve"), "\"serve\" is not a flag; opmill-server takes only flags.");
  ExpectRefusal(Parse("", "--colour=red"), "opmill-server has no flag --colour.");
  ExpectRefusal(Parse("", "--memroy_limit=1GiB"),
                "opmill-server has no flag --memroy_limit. Did you mean --memory_limit?");
  ExpectRefusal(Parse("", "-adress=localhost:1"),
                "opmill-server has no flag -adress. Did you mean --address?");
  ExpectRefusal(Parse("", "--flagfiles=x"),
                "opmill-server has no flag --flagfiles. Did you mean --flagfile?");
  ExpectRefusal(Parse("", "--noaddress"),
                "opmill-server has no flag --noaddress. Did you mean --address?");
}

TEST(Flags, SayWhatTheyAccept) {
  ExpectRefusal(Parse("", "--drain_timeout=30"),
                "--drain_timeout is \"30\". A duration is a number with ms, s, m or h: 500ms, 30s, "
                "2m; or inf. Did you mean 30s?");
  ExpectRefusal(
      Parse("OPMILL_STALL_TIMEOUT=soon", ""),
      "OPMILL_STALL_TIMEOUT is \"soon\". A duration is a number with ms, s, m or h: 500ms, "
      "30s, 2m; or inf.");
  ExpectRefusal(Parse("", "--insecure=maybe"),
                "--insecure is \"maybe\". It must be true or false.");
  ExpectRefusal(Parse("", "--max_streams=-1"),
                "--max_streams is \"-1\". It must be a number from 0 to 4294967295.");
  ExpectRefusal(Parse("", "--caller_limits=rat=1"),
                "--caller_limits is \"rat=1\". \"rat\" is not one of executions, bytes and rate.");
  ExpectRefusal(Parse("", "--memory_limit"), "--memory_limit needs a value: --memory_limit=VALUE.");
  ExpectRefusal(Parse("", "--log_file --insecure"), "--log_file needs a value: --log_file=VALUE.");
  ExpectRefusal(Parse("", "--flagfile"), "--flagfile needs a value: --flagfile=FILE.");
  ExpectRefusal(Parse("", "--device=softwear"),
                "--device is \"softwear\"; it must be one of auto, hardware, software, cpu, "
                "reference. Did you mean software?");
}

TEST(Flags, AreAcceptedInEveryForm) {
  for (const absl::string_view form : {"--max_streams=7", "-max_streams=7", "--max_streams 7"}) {
    EXPECT_EQ(Parse("", form).code, 0) << form;
  }
  const std::string open = "--address=0.0.0.0:0 ";
  for (const absl::string_view form : {"--insecure", "-insecure", "--insecure=true"}) {
    EXPECT_EQ(Parse("", open + std::string(form)).code, 0) << form;
  }
  EXPECT_EQ(Parse("OPMILL_INSECURE=1", open + "--noinsecure").code, 2);
}

TEST(Flags, VariablesThatSetNothingAreReported) {
  const std::string fails = "--device=reference --insecure --address=256.0.0.1:1";
  const Ended ended = RunServer(
      "OPMILL_MEMROY_LIMIT=secret OPMILL_PORT=1 OPMILL_SERVER=x:1 OPMILL_TOKEN=t "
      "OPMILL_LOG_LEVEL=warning",
      fails);
  EXPECT_THAT(ended.text,
              AllOf(HasSubstr("warning environment error=\"OPMILL_MEMROY_LIMIT sets no flag. Did "
                              "you mean OPMILL_MEMORY_LIMIT?\""),
                    HasSubstr("error=\"OPMILL_PORT sets no flag.\""),
                    Not(HasSubstr("OPMILL_SERVER sets")), Not(HasSubstr("OPMILL_TOKEN sets")),
                    Not(HasSubstr("OPMILL_LOG_LEVEL sets")), Not(HasSubstr("secret"))));
}

TEST(Flags, CanBeSetInTheEnvironment) {
  ExpectRefusal(Parse("OPMILL_MAX_STREAMS=0", ""),
                "--max_streams is 0; it must be at least 1 and at most 4294967295.");
  EXPECT_EQ(Parse("OPMILL_MAX_STREAMS=7 OPMILL_LOG_FORMAT=json OPMILL_DRAIN_TIMEOUT=2m", "").code,
            0);
  ExpectRefusal(Parse("OPMILL_MAX_STREAMS=many", ""),
                "OPMILL_MAX_STREAMS is \"many\". It must be a number from 0 to 4294967295.");
}

// One of two values is invalid, so the exit code shows which one was used.
TEST(Flags, CommandLineOverridesFilesAndFilesOverrideTheEnvironment) {
  const ScratchDirectory directory;
  const auto file = [&directory](absl::string_view name, absl::string_view text) {
    const std::string path = (directory.path() / std::string(name)).string();
    std::ofstream(path) << text;
    return absl::StrCat("--flagfile=", path);
  };
  const std::string bad_file = file("bad", "--max_streams=0\n");
  const std::string good_file = file("good", "# a comment\n--max_streams=8\n--log_format=json\n");
  EXPECT_EQ(Parse("OPMILL_MAX_STREAMS=0", "--max_streams=8").code, 0);
  EXPECT_EQ(Parse("OPMILL_MAX_STREAMS=8", "--max_streams=0").code, 2);
  EXPECT_EQ(Parse("OPMILL_MAX_STREAMS=0", good_file).code, 0);
  EXPECT_EQ(Parse("OPMILL_MAX_STREAMS=8", bad_file).code, 2);
  EXPECT_EQ(Parse("", bad_file + " --max_streams=8").code, 0);
  EXPECT_EQ(Parse("", good_file + " --max_streams=0").code, 2);
}

TEST(Flags, FlagFilesMayNestAndAreUtf8) {
  const ScratchDirectory directory;
  const auto write = [&directory](absl::string_view name, absl::string_view text) {
    const std::string path = absl::StrCat(directory.path().string(), "/", name);
    std::ofstream(path) << text;
    return path;
  };
  const std::string inner = write("größe 数", "--max_streams=0\r\n");
  const std::string outer = write("outer", absl::StrCat("\xEF\xBB\xBF--flagfile=", inner, "\n"));
  for (const absl::string_view form : {"--flagfile=", "-flagfile=", "--flagfile "}) {
    ExpectRefusal(Parse("", absl::StrCat(form, outer)),
                  "--max_streams is 0; it must be at least 1 and at most 4294967295.");
  }
  const std::string good = write("good", "\n");
  EXPECT_EQ(Parse("", absl::StrCat("--flagfile=", good, ",", good)).code, 0);
  const std::string word = write("word", "# a comment\nmax_streams=1\n");
  ExpectRefusal(
      Parse("", absl::StrCat("--flagfile=", word)),
      absl::StrCat("Line 2 of --flagfile=", word,
                   " is \"max_streams=1\"; a line is a flag (--name=value), a comment (#) "
                   "or empty."));
  const std::string screen = write("screen", "\33[2J" + std::string(1000, 'x'));
  ExpectRefusal(
      Parse("", absl::StrCat("--flagfile=", screen)),
      absl::StrCat("Line 1 of --flagfile=", screen, " is \"\\033[2J", std::string(196, 'x'),
                   "...\"; a line is a flag (--name=value), a comment (#) or empty."));
  ExpectRefusal(Parse("", "--flagfile=/nowhere"),
                "--flagfile=/nowhere cannot be read: No such file or directory.");
  ExpectRefusal(Parse("", "--flagfile=/dev/zero"), "--flagfile=/dev/zero is not a regular file.");
  ExpectRefusal(Parse("", absl::StrCat("--flagfile=", directory.path().string())),
                absl::StrCat("--flagfile=", directory.path().string(), " is not a regular file."));
  const std::string itself = write("itself", "");
  write("itself", absl::StrCat("--flagfile=", itself, "\n"));
  ExpectRefusal(Parse("", absl::StrCat("--flagfile=", itself)),
                absl::StrCat("--flagfile=", itself, " is nested more than 10 deep."));
}

// The Windows implementation is tested under Wine: tests/windows.
TEST(Flags, AServiceIsForWindows) {
  ExpectRefusal(Parse("", "--service=start"),
                "--service is \"start\"; it must be one of none, install, uninstall, run.");
  for (const char* action : {"install", "uninstall", "run"}) {
    const Ended ended = RunServer("", absl::StrCat("--device=reference --service=", action));
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.text, HasSubstr("opmill-server: --service is for Windows;"));
  }
}

TEST(Flags, LogFileIsAppendedTo) {
  const ScratchDirectory directory;
  const std::string path = (directory.path() / "a log").string();
  const std::string flags =
      absl::StrCat("--device=reference --insecure --address=256.0.0.1:1 --log_file='", path, "'");
  for (int lines = 1; lines <= 2; ++lines) {  // the file is appended to
    const Ended ended = RunServer("", flags);
    EXPECT_EQ(ended.code, 1);
    EXPECT_THAT(ended.text, Not(HasSubstr("not_started")));
    std::ifstream file(path);
    int found = 0;
    for (std::string line; std::getline(file, line);) {
      if (absl::StrContains(line, " not_started ")) ++found;
    }
    EXPECT_EQ(found, lines);
  }
  const Ended ended = RunServer("", "--log_file=/nowhere/at/all");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.text,
              StartsWith("opmill-server: /nowhere/at/all cannot be opened for writing"));
}

TEST(Flags, HelpListsFlagsAndVersionPrintsTheVersion) {
  const Ended help = RunServer("", "--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(RunServer("", "-h").text, help.text);
  EXPECT_THAT(help.text, HasSubstr("serves DirectML's operators over gRPC."));
  for (const char* flag : {"--address", "--device", "--max_bytes_in_flight", "--drain_timeout",
                           "--operator_cache_capacity", "--log_level"}) {
    EXPECT_THAT(help.text, HasSubstr(flag));
  }
  EXPECT_THAT(help.text, HasSubstr("--max_message_bytes (default 64MiB)\n"));
  const Ended version = RunServer("", "--version");
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.text, StartsWith("opmill-server 0."));
}

TEST(Flags, HelpNeedsNoValidFlags) {
  const std::string help = RunServer("", "--help").text;
  for (const char* variable : {"OPMILL_DRAIN_TIMEOUT=5", "OPMILL_FLAGFILE=/nowhere"}) {
    EXPECT_EQ(RunServer(variable, "--help").text, help) << variable;
  }
  for (const char* flags : {"--no_such_flag --help", "--flagfile=/nowhere -h", "serve --help"}) {
    EXPECT_EQ(RunServer("", flags).text, help) << flags;
  }
  EXPECT_THAT(RunServer("OPMILL_DEVICE=5 OPMILL_MAX_QUEUED=x", "--version").text,
              StartsWith("opmill-server 0."));
}

TEST(Flags, AnUnavailableAddressEndsTheServerWithAnError) {
  const Ended ended = RunServer("", "--device=reference --insecure --address=256.0.0.1:1");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(
      ended.text,
      HasSubstr(
          "The server cannot listen at 256.0.0.1:1: the address is not local, or is in use."));
}

}  // namespace
}  // namespace opmill
