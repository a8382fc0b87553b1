// opmill: DirectML's operators from the command line, computed by an OpMill server.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/common.h"
#include "client/cli/verbs.h"
#include "grpcpp/grpcpp.h"
#include "proto/allocator.h"
#include "proto/process.h"

namespace opmill {
namespace {

std::vector<const Verb*> Verbs() {
  return {&RunVerb(),   &DemoVerb(),   &BenchVerb(),  &InfoVerb(),
          &StatsVerb(), &HealthVerb(), &CompileVerb()};
}

const Verb* FindVerb(const std::string& name) {
  for (const Verb* verb : Verbs()) {
    if (verb->name == name) return verb;
  }
  return nullptr;
}

int UnknownVerb(const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const Verb* verb : Verbs()) names.push_back(verb->name);
  std::fprintf(stderr, "opmill: There is no verb \"%s\".%s\n`opmill help` lists them.\n",
               name.c_str(), DidYouMean(name, names).c_str());
  return kBadCommandLine;
}

int Help(const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "help") {
    Print(HelpPage(Verbs()));
    return kDone;
  }
  const Verb* const verb = FindVerb(words[0]);
  if (verb == nullptr) return UnknownVerb(words[0]);
  Print(HelpPage(*verb));
  return kDone;
}

int Main(std::vector<std::string> words) {
  if (words.empty()) {
    std::fputs(HelpPage(Verbs()).c_str(), stderr);
    return kBadCommandLine;
  }
  const std::string name = words[0];
  words.erase(words.begin());
  if (name == "help" || name == "--help" || name == "-h") return Help(words);
  if (name == "--version") {
    Print("opmill " OPMILL_VERSION "\n");
    return kDone;
  }
  const Verb* const verb = FindVerb(name);
  if (verb == nullptr) return UnknownVerb(name);
  for (const std::string& word : words) {
    if (word == "--help" || word == "-h") return Help({name});
  }
  const absl::StatusOr<CommandLine> line = CommandLine::Parse(*verb, words);
  if (!line.ok()) {
    std::fprintf(stderr, "opmill: %s\n`opmill help %s` tells more.\n",
                 std::string(line.status().message()).c_str(), name.c_str());
    return kBadCommandLine;
  }
  return verb->run(*line);
}

}  // namespace
}  // namespace opmill

// gRPC is not shut down: the last poller of a connection may keep that waiting for 10 s, and on
// Windows its threads have been seen to hang the end of a process.
int main(int argc, char** argv) {
  opmill::WriteUtf8ToConsole();
  opmill::TuneAllocatorForLargeMessages();
  opmill::SetDefaultEnvironment("GRPC_VERBOSITY",
                                "NONE");  // what matters of its log is in its statuses
  grpc_init();
  int exit_code = opmill::Main(opmill::Arguments(argc, argv));
  if (std::fflush(stdout) != 0 && exit_code == opmill::kDone) {
    std::fputs("opmill: The result cannot be written to the standard output.\n", stderr);
    exit_code = opmill::kFailed;
  }
  std::fflush(stderr);
  std::_Exit(exit_code);
}
