#include "kernels/base/process_io.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/scratch_directory.h"

#ifdef _WIN32
#include "kernels/base/utf16.h"
#endif

namespace opmill {
namespace {

TEST(Process, TakesTheEnvironmentAsItIs) {
  constexpr char kName[] = "PROCESS_TEST_VARIABLE";
  EXPECT_EQ(Environment(kName), std::nullopt);
  SetDefaultEnvironment(kName, "first");
  EXPECT_EQ(Environment(kName), "first");
  SetDefaultEnvironment(kName, "second");
  EXPECT_EQ(Environment(kName), "first");
}

TEST(Process, AppendsToFilesOfAnyName) {
  const ScratchDirectory directory;
  const std::string path = directory.utf8() + "/l\xc3\xb6g";
  for (const char* line : {"one\n", "two\n"}) {
    const absl::StatusOr<FILE*> file = OpenForAppending(path);
    ASSERT_TRUE(file.ok()) << file.status();
    std::fputs(line, *file);
    std::fclose(*file);
  }
  std::ifstream file(directory.path() / std::filesystem::path(u8"l\u00f6g"));
  std::string text;
  ASSERT_TRUE(std::getline(file, text));
  EXPECT_EQ(text.substr(0, 3), "one");
  ASSERT_TRUE(std::getline(file, text));
  EXPECT_EQ(text.substr(0, 3), "two");
  EXPECT_FALSE(OpenForAppending(directory.utf8() + "/no/such/folder").ok());
}

#ifdef _WIN32
TEST(Utf16, IsUtf8AndBack) {
  const std::string text = "a \xc3\xb6 \xe2\x82\xac \xf0\x9f\x98\x80";
  EXPECT_EQ(Utf16(text), L"a \u00f6 \u20ac \U0001f600");
  EXPECT_EQ(Utf8(Utf16(text).c_str()), text);
  EXPECT_EQ(Utf8(Utf16("").c_str()), "");
  EXPECT_EQ(Utf16("\xff"), L"\ufffd");
}
#endif

}  // namespace
}  // namespace opmill
