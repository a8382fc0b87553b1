// Writes files atomically.
#ifndef OPMILL_CLIENT_FILE_WRITER_H_
#define OPMILL_CLIENT_FILE_WRITER_H_

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace opmill {

// Writes to a temporary file next to `path` (or next to the target of a link), which Commit
// renames. Without Commit, nothing remains. `path` is UTF-8.
class FileWriter {
 public:
  // InvalidArgument if the file cannot be written: it is a folder or a device, or its folder does
  // not exist.
  static absl::Status CheckPath(const std::string& path);

  static absl::StatusOr<std::unique_ptr<FileWriter>> Create(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  absl::Status Append(absl::Span<const std::byte> bytes);
  absl::Status Commit();

  // For a program that is ended by a signal: removes all uncommitted files. Calls of writers on
  // other threads no longer return.
  static void AbandonAllForExit();

 private:
  struct Registry;
  FileWriter(std::filesystem::path path, std::filesystem::path temporary);

  void Abandon();

  const std::filesystem::path path_;
  const std::filesystem::path temporary_;
  std::mutex mutex_;  // held during every call
  std::ofstream stream_;
  bool is_committed_ = false;
};

// The whole file.
absl::Status WriteTextFile(const std::string& path, const std::string& text);

}  // namespace opmill

#endif  // OPMILL_CLIENT_FILE_WRITER_H_
