// Runs the real `opmill` in a shell against a real server.
#ifndef OPMILL_TESTS_CLIENT_SHELL_FIXTURE_H_
#define OPMILL_TESTS_CLIENT_SHELL_FIXTURE_H_

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/npy.h"
#include "gtest/gtest.h"
#include "tests/client/shell.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {

// One server per test suite, and a scratch directory per test.
class ShellTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server = ServerProcess::Start({"--device=reference"});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = server->release();
  }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }

  std::string Path(const std::string& name) const { return (scratch_.path() / name).string(); }
  std::string Read(const std::string& name) const { return ReadWhole(Path(name)); }

  // Runs the command in the scratch directory, with OPMILL_SERVER set.
  Finished Shell(const std::string& command) const {
    return RunShell(scratch_.path(), absl::StrCat("OPMILL_SERVER=", server_->address()), command);
  }
  Finished Run(const std::string& arguments) const { return Shell("$OPMILL " + arguments); }

  void Save(const std::string& name, const std::vector<uint32_t>& sizes,
            const std::vector<float>& elements) const {
    std::ofstream file(Path(name), std::ios::binary);
    file << MakeNpyHeader(v1::DATA_TYPE_FLOAT32, sizes);
    file.write(reinterpret_cast<const char*>(elements.data()),
               static_cast<std::streamsize>(elements.size() * sizeof(float)));
  }

  static inline ServerProcess* server_ = nullptr;
  const ScratchDirectory scratch_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_CLIENT_SHELL_FIXTURE_H_
