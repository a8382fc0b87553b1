// A temporary directory for one test, removed by the destructor.
#ifndef OPMILL_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_
#define OPMILL_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_

#include <filesystem>
#include <random>
#include <string>
#include <system_error>

#include "kernels/base/utf8_path.h"

namespace opmill {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() /
            ("opmill-" + std::to_string(random()) + std::to_string(random()));
    std::filesystem::create_directories(path_);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string utf8() const { return Utf8Name(path_); }

 private:
  std::filesystem::path path_;
};

}  // namespace opmill

#endif  // OPMILL_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_
