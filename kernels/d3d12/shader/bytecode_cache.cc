#include "kernels/d3d12/shader/bytecode_cache.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <random>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/base/process_io.h"
#include "kernels/base/regular_file.h"
#include "kernels/base/sha256.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

namespace fs = std::filesystem;

// File format: magic and version (8 bytes), key, digest of the payload, size of the payload (8
// bytes, little-endian), payload. A new format gets a new version, and with it a new magic.
constexpr absl::string_view kMagic = "OPMBYTE1";
constexpr size_t kSizeBytes = 8;
constexpr size_t kHeaderBytes = 8 + 2 * kSha256Bytes + kSizeBytes;
constexpr uint64_t kMaxFileBytes = uint64_t{16} << 20;  // compiled kernels have some kilobytes

constexpr absl::string_view kSuffix = ".dxbc";
constexpr absl::string_view kUnfinishedSuffix = ".unfinished";

// The error of the last call. Streams report it in errno, or not at all.
std::error_code LastError() {
  return errno != 0 ? std::error_code(errno, std::generic_category())
                    : std::make_error_code(std::errc::io_error);
}

std::string SizeField(uint64_t size) {
  std::string field;
  for (size_t shift = 0; shift < 8 * kSizeBytes; shift += 8) {
    field.push_back(static_cast<char>(size >> shift & 0xFF));
  }
  return field;
}

std::string Header(absl::string_view key, absl::string_view payload) {
  return absl::StrCat(kMagic, key, Sha256(payload), SizeField(payload.size()));
}

// Unique per thread and process.
std::string UniqueSuffix() {
  std::random_device random;
  return absl::StrFormat(".%08x%08x%s", random(), random(), kUnfinishedSuffix);
}

fs::path EnvironmentPath(const char* name) { return PathOf(Environment(name).value_or("")); }

#ifdef _WIN32
fs::path UserCachePath() { return EnvironmentPath("LOCALAPPDATA"); }
#else
fs::path UserCachePath() {
  fs::path cache = EnvironmentPath("XDG_CACHE_HOME");
  if (cache.is_absolute()) return cache;  // the XDG specification ignores relative paths
  const fs::path home = EnvironmentPath("HOME");
  return home.empty() ? fs::path() : home / ".cache";
}
#endif

}  // namespace

std::string DefaultCacheDirectory() {
  const fs::path user_cache = UserCachePath();
  if (!user_cache.is_absolute()) return {};
  return Utf8Name(user_cache / "opmill");
}

BytecodeCache::BytecodeCache(absl::string_view directory, uint64_t max_bytes, OnProblem on_problem)
    : directory_(opmill::PathOf(directory)),
      max_bytes_(max_bytes),
      on_problem_(std::move(on_problem)) {}

void BytecodeCache::Tell(const std::string& sentence) const {
  if (on_problem_) on_problem_(sentence);
}

std::optional<std::string> BytecodeCache::Read(absl::string_view key) {
  if (directory_.empty()) return std::nullopt;
  std::optional<std::string> bytecode = Peek(key);
  if (!bytecode.has_value()) {
    misses_.fetch_add(1, std::memory_order_relaxed);
    return std::nullopt;
  }
  hits_.fetch_add(1, std::memory_order_relaxed);
  // Records the last use; in a read-only directory the old time remains.
  std::error_code ignored;
  fs::last_write_time(PathOf(key, kSuffix), fs::file_time_type::clock::now(), ignored);
  return bytecode;
}

std::optional<std::string> BytecodeCache::Peek(absl::string_view key) const {
  const std::string path = Utf8Name(PathOf(key, kSuffix));
  const absl::StatusOr<std::string> file = ReadRegularFile(path, kMaxFileBytes, path);
  if (!file.ok()) return std::nullopt;
  const absl::string_view payload =
      absl::string_view(*file).substr(std::min(kHeaderBytes, file->size()));
  if (absl::StartsWith(*file, Header(key, payload))) return std::string(payload);
  if (rejected_files_.fetch_add(1, std::memory_order_relaxed) == 0) {
    Tell(absl::StrCat("A file of the shader cache, ", path,
                      ", is damaged; its kernel is compiled again. Further damaged files are not "
                      "reported."));
  }
  return std::nullopt;
}

std::vector<std::string> BytecodeCache::Keys(size_t max_keys) const {
  std::vector<File> files = Files();
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.last_use > b.last_use; });
  std::vector<std::string> keys;
  for (const File& file : files) {
    if (keys.size() == max_keys) break;
    const std::string name = file.path.stem().string();
    const bool is_key = name.size() == 2 * kSha256Bytes &&
                        std::all_of(name.begin(), name.end(), absl::ascii_isxdigit);
    if (is_key && file.path.extension() == opmill::PathOf(kSuffix)) {
      keys.push_back(absl::HexStringToBytes(name));
    }
  }
  return keys;
}

void BytecodeCache::Write(absl::string_view key, absl::string_view bytecode) {
  if (directory_.empty()) return;
  const std::error_code error = TryWrite(key, bytecode);
  if (!error) {
    RemoveOldest();
  } else if (failed_writes_.fetch_add(1, std::memory_order_relaxed) == 0) {
    Tell(absl::StrCat("The shader cache, ", Utf8Name(directory_), ", cannot be written (",
                      error.message(),
                      "): kernels are compiled again after a restart. Further failures are not "
                      "reported."));
  }
}

BytecodeCache::Counters BytecodeCache::counters() const {
  return {.hits = hits_.load(std::memory_order_relaxed),
          .misses = misses_.load(std::memory_order_relaxed),
          .rejected_files = rejected_files_.load(std::memory_order_relaxed),
          .failed_writes = failed_writes_.load(std::memory_order_relaxed)};
}

fs::path BytecodeCache::PathOf(absl::string_view key, absl::string_view suffix) const {
  return directory_ / absl::StrCat(absl::BytesToHexString(key), suffix);
}

// Readers see the complete file or none, because it is renamed when it is complete.
std::error_code BytecodeCache::TryWrite(absl::string_view key, absl::string_view bytecode) {
  if (kHeaderBytes + bytecode.size() > std::min(kMaxFileBytes, max_bytes_)) {
    return std::make_error_code(std::errc::file_too_large);
  }
  std::error_code error;
  fs::create_directories(directory_, error);
  if (error) return error;
  const fs::path unfinished = PathOf(key, UniqueSuffix());
  errno = 0;
  std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
  if (!file.is_open()) return LastError();
  file << Header(key, bytecode) << bytecode;
  file.close();
  if (file.fail()) {
    error = LastError();
  } else {
    fs::rename(unfinished, PathOf(key, kSuffix), error);
  }
  std::error_code ignored;
  if (error) fs::remove(unfinished, ignored);
  return error;
}

// Includes unfinished files: nothing else would remove those of a crashed process.
std::vector<BytecodeCache::File> BytecodeCache::Files() const {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path extension = entry->path().extension();
    if (extension != opmill::PathOf(kSuffix) && extension != opmill::PathOf(kUnfinishedSuffix)) {
      continue;
    }
    std::error_code gone;  // another process may remove it first
    File file = {entry->last_write_time(gone), 0, entry->path()};
    if (!gone) file.size = entry->file_size(gone);
    if (!gone) files.push_back(std::move(file));
  }
  return files;
}

void BytecodeCache::RemoveOldest() {
  absl::MutexLock lock(&removal_mutex_);
  std::vector<File> files = Files();
  uint64_t total = 0;
  for (const File& file : files) total += file.size;
  if (total <= max_bytes_) return;
  std::sort(files.begin(), files.end(),
            [](const File& a, const File& b) { return a.last_use < b.last_use; });
  for (const File& file : files) {
    if (total <= max_bytes_) break;
    std::error_code ignored;
    if (fs::remove(file.path, ignored)) total -= file.size;
  }
}

}  // namespace opmill
