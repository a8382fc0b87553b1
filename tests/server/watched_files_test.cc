#include "server/access/watched_files.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(20);

class WatchedFilesTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return (scratch_.path() / name).string(); }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name + ".new"), std::ios::binary) << text;
    Replace(name);
  }

  void Replace(const std::string& name) const {
    Change([&](std::error_code& error) {
      std::filesystem::rename(Path(name + ".new"), Path(name), error);
    });
  }

  // Windows does not allow replacing or removing a file while the watcher reads it.
  static void Change(const std::function<void(std::error_code&)>& change) {
    std::error_code error;
    for (int i = 0; i < 100; ++i) {
      change(error);
      if (!error) return;
      absl::SleepFor(kInterval / 4);
    }
    FAIL() << error.message();
  }

  void AwaitChanges(int count) {
    for (int i = 0; i < 500 && changes_ < count; ++i) absl::SleepFor(kInterval);
    absl::SleepFor(4 * kInterval);
    EXPECT_EQ(changes_, count);
  }

  const ScratchDirectory scratch_;
  std::atomic<int> changes_ = 0;
};

TEST_F(WatchedFilesTest, CallOnceForEachNewContent) {
  Write("a", "1");
  Write("b", "1");
  const WatchedFiles watched(
      {Path("a"), Path("b")}, [this] { ++changes_; }, kInterval);
  AwaitChanges(0);
  Write("a", "2");
  AwaitChanges(1);
  Write("a", "2");  // another file, the same content
  AwaitChanges(1);
  Write("b", "2");
  AwaitChanges(2);
  Change([&](std::error_code& error) { std::filesystem::remove(Path("b"), error); });
  AwaitChanges(3);
  Write("b", "2");
  AwaitChanges(4);
}

TEST_F(WatchedFilesTest, SeeThroughLinks) {
  Write("old", "1");
  Write("new", "2");
  std::error_code error;
  std::filesystem::create_symlink("old", Path("link"), error);
  if (error) GTEST_SKIP() << "No links here: " << error.message();
  const WatchedFiles watched(
      {Path("link")}, [this] { ++changes_; }, kInterval);
  std::filesystem::create_symlink("new", Path("link.new"));
  Replace("link");
  AwaitChanges(1);
}

TEST_F(WatchedFilesTest, TellTheReasonsApartWhyTheyCannotBeRead) {
  const WatchedFiles watched(
      {Path("a")}, [this] { ++changes_; }, kInterval);
  AwaitChanges(0);
  std::filesystem::create_directory(Path("a"));
  AwaitChanges(1);
}

}  // namespace
}  // namespace opmill
