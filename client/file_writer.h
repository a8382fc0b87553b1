// A file that appears whole or not at all.
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

// Written under another name beside `path` (or beside what that links to), and renamed by Commit.
// Without that nothing is left of it. `path` is UTF-8.
class FileWriter {
 public:
  // InvalidArgument where a file of that name cannot be written: a folder, a device, no such
  // folder.
  static absl::Status CheckPath(const std::string& path);

  static absl::StatusOr<std::unique_ptr<FileWriter>> Create(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  absl::Status Append(absl::Span<const std::byte> bytes);
  absl::Status Commit();

  // For a program that a signal ends: removes what has not been committed. May run beside other
  // threads, whose calls of writers do not return any more.
  static void AbandonAllForExit();

 private:
  struct Registry;
  FileWriter(std::filesystem::path path, std::filesystem::path temporary);

  void Abandon();

  const std::filesystem::path path_;
  const std::filesystem::path temporary_;
  std::mutex mutex_;  // held in every call
  std::ofstream stream_;
  bool is_committed_ = false;
};

}  // namespace opmill

#endif  // OPMILL_CLIENT_FILE_WRITER_H_
