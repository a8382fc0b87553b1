// A cache of bytecode on disk, one file per key. Problems with the directory are not errors: a file
// that is missing, truncated, corrupt or from another version is a miss. A file that cannot be
// written is counted. The first problem of either kind is reported. Processes may share a
// directory.
#ifndef OPMILL_KERNELS_D3D12_SHADER_BYTECODE_CACHE_H_
#define OPMILL_KERNELS_D3D12_SHADER_BYTECODE_CACHE_H_

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace opmill {

// XDG_CACHE_HOME/opmill or ~/.cache/opmill; on Windows %LOCALAPPDATA%\opmill. UTF-8; empty if the
// environment names no home directory.
std::string DefaultCacheDirectory();

// Safe to use from many threads.
class BytecodeCache {
 public:
  struct Counters {
    uint64_t hits = 0;
    uint64_t misses = 0;          // including rejected files
    uint64_t rejected_files = 0;  // found, but incomplete or for another key
    uint64_t failed_writes = 0;
  };

  using OnProblem = std::function<void(const std::string& sentence)>;

  // `directory` is UTF-8 and need not exist; if it is empty, nothing is cached. When the files
  // exceed `max_bytes`, the next write removes the least recently used ones.
  BytecodeCache(absl::string_view directory, uint64_t max_bytes, OnProblem on_problem = nullptr);

  // Keys are raw Sha256 digests.
  std::optional<std::string> Read(absl::string_view key);
  // Like Read, but neither counts nor marks the file as used.
  std::optional<std::string> Peek(absl::string_view key) const;
  // The keys of the existing files, most recently used first; at most `max_keys`.
  std::vector<std::string> Keys(size_t max_keys) const;
  void Write(absl::string_view key, absl::string_view bytecode);

  Counters counters() const;

 private:
  struct File {
    std::filesystem::file_time_type last_use;
    uint64_t size;
    std::filesystem::path path;
  };

  std::filesystem::path PathOf(absl::string_view key, absl::string_view suffix) const;
  std::vector<File> Files() const;
  std::error_code TryWrite(absl::string_view key, absl::string_view bytecode);
  void Tell(const std::string& sentence) const;
  void RemoveOldest();

  const std::filesystem::path directory_;
  const uint64_t max_bytes_;
  const OnProblem on_problem_;
  absl::Mutex removal_mutex_;
  std::atomic<uint64_t> hits_{0};
  std::atomic<uint64_t> misses_{0};
  mutable std::atomic<uint64_t> rejected_files_{0};
  std::atomic<uint64_t> failed_writes_{0};
};

}  // namespace opmill

#endif  // OPMILL_KERNELS_D3D12_SHADER_BYTECODE_CACHE_H_
