// Checks that the examples in README.md work as shown: the project that uses the installed library,
// and the commands. tests/python/ checks the Python program.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/shell.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The README's code blocks of a language, in order.
std::vector<std::string> ReadmeBlocks(absl::string_view language) {
  std::vector<std::string> blocks;
  const std::string begin = absl::StrCat("\n```", language, "\n");
  const std::string text = ReadWhole(OPMILL_SOURCE_DIRECTORY "/README.md");
  for (size_t at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
    at += begin.size();
    blocks.push_back(text.substr(at, text.find("\n```\n", at) + 1 - at));
  }
  return blocks;
}

void Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class Readme : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server = ServerProcess::Start({"--device=reference"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  // The output of the command in the scratch directory; on failure "", and the test fails.
  std::string OutputOf(const std::string& command) const {
    const Finished done = RunShell(scratch_.path(), environment(), command);
    EXPECT_EQ(done.exit_code, 0) << command << "\n" << done.out << done.err;
    return done.exit_code == 0 ? done.out : "";
  }
  // Stops at the first command that fails.
  std::string OutputOfScript(const std::string& script) const {
    Write(scratch_.path() / "script.sh", script);
    return OutputOf("bash -e script.sh");
  }
  // The environment after the README's first lines: with `opmill`, and with a Python that has the
  // required packages.
  std::string environment() const {
    return absl::StrCat("OPMILL_SERVER=", server_->address(),
                        " PATH=", std::filesystem::path(OPMILL_CLI_PATH).parent_path().string(),
                        ":", std::filesystem::path(OPMILL_PYTHON).parent_path().string(), ":$PATH");
  }

  std::unique_ptr<ServerProcess> server_;
  const ScratchDirectory scratch_;
};

TEST_F(Readme, CompilesItsProjectAgainstTheInstalledLibrary) {
  const std::vector<std::string> project = ReadmeBlocks("cmake");
  const std::vector<std::string> program = ReadmeBlocks("cpp");
  ASSERT_EQ(project.size(), 1u);
  ASSERT_EQ(program.size(), 1u);
  Write(scratch_.path() / "CMakeLists.txt", project[0]);
  Write(scratch_.path() / "row_sums.cc", program[0]);
  OutputOf(OPMILL_CMAKE " --install " OPMILL_BUILD_DIRECTORY " --prefix prefix");
  OutputOf(OPMILL_CMAKE " -B build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH=$PWD/prefix");
  OutputOf(OPMILL_CMAKE " --build build");
  EXPECT_EQ(OutputOf(absl::StrCat("build/row_sums ", server_->address())), "6 60\n");
  EXPECT_EQ(OutputOf("prefix/bin/opmill health"), "SERVING\n");

  // A project with headers of the same names as those of this tree.
  const std::filesystem::path own = scratch_.path() / "own";
  for (const char* const header :
       {"client/client.h", "client/execution.h", "proto/payload.h", "google/rpc/status.pb.h"}) {
    std::filesystem::create_directories((own / header).parent_path());
    Write(own / header, "inline int Own() { return 1; }\n");
  }
  Write(own / "own.cc",
        "#include \"client/client.h\"\n"
        "#include \"opmill/client/client.h\"\n"
        "#include \"opmill/client/error.h\"\n"
        "int main() { return opmill::Client::Connect(\"\").ok() ? Own() : 0; }\n");
  Write(own / "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.25)\n"
        "project(own LANGUAGES CXX)\n"
        "include_directories(BEFORE ${CMAKE_SOURCE_DIR})\n"
        "find_package(opmill CONFIG REQUIRED)\n"
        "add_library(own OBJECT own.cc)\n"
        "target_link_libraries(own PRIVATE opmill::client)\n");
  OutputOf(OPMILL_CMAKE " -S own -B own/build -DCMAKE_PREFIX_PATH=$PWD/prefix");
  OutputOf(OPMILL_CMAKE " --build own/build");
}

TEST_F(Readme, RunsItsCommandsInAnyFolder) {
  const std::vector<std::string> scripts = ReadmeBlocks("sh");
  ASSERT_EQ(scripts.size(), 1u);
  EXPECT_THAT(OutputOfScript(scripts[0]),
              AllOf(HasSubstr("SERVING\n"), HasSubstr("indices (1000, 5) uint32 -> indices.npy"),
                    HasSubstr("concurrency")));
  for (const char* const file : {"best.npy", "values.npy", "indices.npy", "bench.svg"}) {
    EXPECT_TRUE(std::filesystem::exists(scratch_.path() / file)) << file;
  }
}

}  // namespace
}  // namespace opmill
