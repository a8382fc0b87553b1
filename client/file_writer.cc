#include "client/file_writer.h"

#include <cerrno>
#include <mutex>
#include <random>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/base/errors.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

absl::Status CannotWrite(const std::filesystem::path& path, absl::string_view why) {
  return absl::UnknownError(absl::StrCat(Utf8Name(path), " cannot be written: ", why, "."));
}

}  // namespace

// All writers. Its mutex is acquired before that of a writer.
struct FileWriter::Registry {
  std::mutex mutex;
  std::set<FileWriter*> writers;

  static Registry& Get() {
    static Registry* const registry = new Registry;
    return *registry;
  }
};

absl::Status FileWriter::CheckPath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path target = PathOf(path);
  const std::filesystem::file_status status = std::filesystem::status(target, error);
  if (std::filesystem::exists(status)) {
    if (std::filesystem::is_regular_file(status)) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file."));
  }
  const std::filesystem::path folder = target.parent_path();
  if (folder.empty() || std::filesystem::is_directory(folder, error)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " cannot be written: the folder does not exist."));
}

FileWriter::FileWriter(std::filesystem::path path, std::filesystem::path temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {
  std::lock_guard<std::mutex> lock(Registry::Get().mutex);
  stream_.open(temporary_, std::ios::binary | std::ios::trunc);
  Registry::Get().writers.insert(this);
}

absl::StatusOr<std::unique_ptr<FileWriter>> FileWriter::Create(const std::string& path) {
  absl::Status possible = CheckPath(path);
  if (!possible.ok()) return possible;
  std::error_code error;
  std::filesystem::path target = std::filesystem::weakly_canonical(PathOf(path), error);
  if (error) return CannotWrite(PathOf(path), error.message());
  std::filesystem::path temporary = target;
  temporary += absl::StrCat(".", absl::Hex(std::random_device()()), ".part");
  std::unique_ptr<FileWriter> writer(new FileWriter(target, std::move(temporary)));
  if (!writer->stream_) return CannotWrite(target, std::generic_category().message(errno));
  return writer;
}

FileWriter::~FileWriter() {
  std::lock_guard<std::mutex> lock(Registry::Get().mutex);
  Registry::Get().writers.erase(this);
  Abandon();
}

void FileWriter::Abandon() {
  if (is_committed_) return;
  stream_.close();
  std::error_code ignored;
  std::filesystem::remove(temporary_, ignored);
}

// The mutexes stay locked, so that no thread reports a removed file before the program ends.
void FileWriter::AbandonAllForExit() {
  Registry::Get().mutex.lock();
  for (FileWriter* const writer : Registry::Get().writers) {
    writer->mutex_.lock();
    writer->Abandon();
  }
}

absl::Status FileWriter::Append(absl::Span<const std::byte> bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  stream_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
  return stream_ ? absl::OkStatus() : CannotWrite(path_, "the disk refused the data");
}

absl::Status FileWriter::Commit() {
  std::lock_guard<std::mutex> lock(mutex_);
  stream_.close();
  if (!stream_) return CannotWrite(path_, "the disk refused the data");
  std::error_code error;
  std::filesystem::rename(temporary_, path_, error);
  if (error) return CannotWrite(path_, error.message());
  is_committed_ = true;
  return absl::OkStatus();
}

absl::Status WriteTextFile(const std::string& path, const std::string& text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> writer, FileWriter::Create(path));
  RETURN_IF_ERROR(writer->Append({reinterpret_cast<const std::byte*>(text.data()), text.size()}));
  return writer->Commit();
}

}  // namespace opmill
