// Runs commands as users type them.
#ifndef OPMILL_TESTS_CLIENT_SHELL_H_
#define OPMILL_TESTS_CLIENT_SHELL_H_

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"

namespace opmill {

struct Finished {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline std::string ReadWhole(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Runs the command with `sh` in `folder`. The command must not contain single quotes. $OPMILL is
// the program; `environment` is a list of NAME=value.
inline Finished RunShell(const std::filesystem::path& folder, const std::string& environment,
                         const std::string& command) {
  const int status =
      std::system(absl::StrCat("cd ", folder.string(), " && ", environment,
                               " OPMILL=" OPMILL_CLI_PATH " sh -c '", command, "' >.out 2>.err")
                      .c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadWhole(folder / ".out"),
          ReadWhole(folder / ".err")};
}

inline google::protobuf::Struct ParseJson(const std::string& text) {
  google::protobuf::Struct json;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &json);
  EXPECT_TRUE(status.ok()) << text;
  return json;
}

}  // namespace opmill

#endif  // OPMILL_TESTS_CLIENT_SHELL_H_
