#include "kernels/base/regular_file.h"

#include <filesystem>
#include <fstream>
#include <string>

#ifndef _WIN32
#include <sys/stat.h>
#endif

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

class ReadRegularFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const {
    return absl::StrCat(scratch_.utf8(), "/", name);
  }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
    return Path(name);
  }

  static std::string ErrorOf(const std::string& path) {
    const auto read = ReadRegularFile(path, 1000, "The file");
    return read.ok() ? "read " + *read : std::string(read.status().message());
  }

  const ScratchDirectory scratch_;
};

TEST_F(ReadRegularFileTest, ReadsAllBytes) {
  const std::string text = std::string(100'000, 'x') + '\0' + "end";
  EXPECT_EQ(ReadRegularFile(Write("file", text), text.size(), "").value(), text);
  EXPECT_EQ(ReadRegularFile(Write("empty", ""), 0, "").value(), "");
}

TEST_F(ReadRegularFileTest, SaysWhyItReadsNothing) {
  const auto absent = ReadRegularFile(Path("absent"), 1, "It");
  EXPECT_TRUE(absl::IsNotFound(absent.status())) << absent.status();
  EXPECT_EQ(ErrorOf(Write("long", std::string(1001, 'x'))),
            "The file has 1001 bytes; the limit is 1000.");
  const absl::string_view sentence = absent.status().message();
  EXPECT_TRUE(absl::StartsWith(sentence, "It cannot be read: ")) << sentence;
  EXPECT_TRUE(absl::EndsWith(sentence, ".") && !absl::EndsWith(sentence, "..")) << sentence;
#ifndef _WIN32
  EXPECT_EQ(ErrorOf(Path("absent")), "The file cannot be read: No such file or directory.");
  EXPECT_EQ(ErrorOf(scratch_.utf8()), "The file is not a regular file.");
#endif
}

#ifndef _WIN32
// Each of these would keep a reader waiting, or has no end.
TEST_F(ReadRegularFileTest, NeverWaits) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", Path("link"));
  for (const std::string& path :
       {Path("pipe"), Path("link"), std::string("/dev/zero"), std::string("/dev/ptmx")}) {
    EXPECT_EQ(ErrorOf(path), "The file is not a regular file.") << path;
  }
  // A regular file by its type. Only root may open it.
  std::filesystem::create_symlink("/proc/kmsg", Path("kernel"));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ReadRegularFile(Path("kernel"), 1000, "It").value_or(""), "");
  }
}
#endif

}  // namespace
}  // namespace opmill
