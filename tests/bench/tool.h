// The protocol of a measuring program that another program controls, to interleave several of them:
// one command per input line, one JSON response per output line.
#ifndef OPMILL_TESTS_BENCH_TOOL_H_
#define OPMILL_TESTS_BENCH_TOOL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opmill {

// "row operator=top_k axes=0 k=10"
class Command {
 public:
  static absl::StatusOr<Command> Parse(absl::string_view line);

  const std::string& verb() const { return verb_; }
  std::string Text(const std::string& name) const;  // empty if absent
  // Integers; 0, or an empty list, if absent.
  absl::StatusOr<uint64_t> Number(const std::string& name) const;
  absl::StatusOr<std::vector<uint32_t>> Numbers(const std::string& name) const;  // "1,2"

 private:
  std::string verb_;
  std::map<std::string, std::string> words_;
};

absl::StatusOr<std::vector<uint32_t>> ParseNumbers(absl::string_view text);

// A JSON object on one line.
class Json {
 public:
  Json& Add(absl::string_view name, double value);
  Json& Add(absl::string_view name, absl::string_view value);
  Json& Add(absl::string_view name, const std::vector<double>& values);
  std::string Text() const { return "{" + fields_ + "}"; }

 private:
  std::string& Name(absl::string_view name);

  std::string fields_;
};

// Handles commands until the end of the input. An error is answered with {"error": its message}.
void ServeCommands(const std::function<absl::StatusOr<Json>(const Command&)>& handle);

}  // namespace opmill

#endif  // OPMILL_TESTS_BENCH_TOOL_H_
