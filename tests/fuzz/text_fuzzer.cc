// Short texts from outside: token files, trace contexts, addresses, flag files. The first byte
// selects the kind.
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "kernels/base/server_address.h"
#include "server/access/access_tokens.h"
#include "server/flags/flag_files.h"
#include "server/network/listen_address.h"
#include "server/traces/trace_context.h"
#include "tests/fuzz/check.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

void TokenFile(const std::string& text) {
  const absl::StatusOr<AccessTokens> tokens = AccessTokens::Parse(text);
  if (!tokens.ok()) {
    FUZZ_CHECK(absl::IsFailedPrecondition(tokens.status()) && IsSentence(tokens.status()),
               tokens.status().ToString());
  }
  size_t lines = 0;
  size_t named = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++lines;
    const std::vector<absl::string_view> words =
        absl::StrSplit(absl::StripAsciiWhitespace(line), absl::ByAnyChar(" \t"), absl::SkipEmpty());
    if (words.size() != 2 || absl::StartsWith(words[0], "#")) continue;
    if (!tokens.ok()) {
      // An error message never contains a token.
      FUZZ_CHECK(words[1].size() < AccessTokens::kMinTokenLength ||
                     !absl::StrContains(tokens.status().message(), words[1]),
                 tokens.status().ToString());
      continue;
    }
    FUZZ_CHECK(tokens->NameOf(words[1]) == std::string(words[0]), words[0]);
    FUZZ_CHECK(!tokens->NameOf(words[1].substr(1)).has_value() || tokens->size() > 1, words[0]);
    ++named;
  }
  if (tokens.ok()) {
    FUZZ_CHECK(tokens->size() == named && named <= lines, named);
    FUZZ_CHECK(!tokens->NameOf("").has_value(), "an empty token");
  }
}

void Traceparent(const std::string& text) {
  const std::optional<TraceContext> read = ReadTraceparent(text);
  if (!read.has_value()) return;
  // It is written unescaped to headers and to the log.
  FUZZ_CHECK(text.size() >= 55 && text.size() <= 256, text.size());
  for (const char c : text) FUZZ_CHECK(c > ' ' && c < '\x7F', text);
  const std::vector<std::string> parts = absl::StrSplit(text, '-');
  FUZZ_CHECK(parts.size() >= 4 && parts[0].size() == 2 && parts[1].size() == 32 &&
                 parts[2].size() == 16 && parts[3].size() == 2,
             text);
  FUZZ_CHECK(parts[1] != std::string(32, '0') && parts[2] != std::string(16, '0'), text);
  const std::string again = TraceparentOf(*read);
  FUZZ_CHECK(again.substr(2, 51) == text.substr(2, 51), again);
  FUZZ_CHECK(again.back() == (read->is_sampled ? '1' : '0'), again);
}

void Address(const std::string& text) {
  const absl::Status checked = CheckAddress(text);
  FUZZ_CHECK(checked.ok() == (absl::StartsWith(text, "unix:") || PortOf(text).has_value()), text);
  if (const std::optional<uint32_t> port = PortOf(text)) {
    FUZZ_CHECK(*port <= 65535 && text.rfind(':') > 0, text);
  }
  if (!checked.ok() || !IsLoopback(text) || absl::StartsWith(text, "unix:")) return;
  // Only addresses that are certainly local.
  const std::string host = text.substr(0, text.rfind(':'));
  FUZZ_CHECK(host == "localhost" || host == "[::1]" || absl::StartsWith(host, "127."), text);
  FUZZ_CHECK(host.find_first_not_of("localhst[:]0123456789.") == std::string::npos, text);
}

void FlagFile(const std::string& text) {
  static const ScratchDirectory directory;
  const std::string name = (directory.path() / "flags").string();
  {
    std::ofstream file(name, std::ios::binary | std::ios::trunc);
    file << text;
  }
  const absl::StatusOr<std::vector<std::string>> flags =
      WithFlagFiles({"server", "--flagfile=" + name, "last"});
  if (!flags.ok()) {
    FUZZ_CHECK(!absl::IsInternal(flags.status()) && IsSentence(flags.status()),
               flags.status().ToString());
    return;
  }
  FUZZ_CHECK(flags->front() == "server" && flags->back() == "last", flags->size());
  for (size_t i = 1; i + 1 < flags->size(); ++i) {
    FUZZ_CHECK(absl::StartsWith((*flags)[i], "-"), (*flags)[i]);
  }
}

}  // namespace
}  // namespace opmill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'T':
      opmill::TokenFile(text);
      break;
    case 'P':
      opmill::Traceparent(text);
      break;
    case 'A':
      opmill::Address(text);
      break;
    case 'F':
      opmill::FlagFile(text);
      break;
    default:
      break;
  }
  return 0;
}
