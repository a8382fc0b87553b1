#include "server/tensors/tensor_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/base/errors.h"
#include "kernels/base/npy.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSuffix = ".npy";

absl::Status Refuse(absl::string_view why) { return absl::InvalidArgumentError(why); }

// Fails if the file ends before.
bool ReadFrom(std::ifstream& file, uint64_t offset, absl::Span<std::byte> to) {
  return file.seekg(static_cast<std::streamoff>(offset)) &&
         file.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
}

DataType DataTypeOf(const NpyDtype& dtype) {
  const std::string name = NameOf(dtype);
  const auto* const found =
      std::find_if(kAllDataTypes.begin(), kAllDataTypes.end(),
                   [&](DataType type) { return absl::EqualsIgnoreCase(ToString(type), name); });
  return found == kAllDataTypes.end() ? DataType::kUnknown : *found;
}

absl::StatusOr<NpyHeader> ReadHeader(std::ifstream& file, uint64_t file_bytes) {
  std::vector<std::byte> bytes(
      static_cast<size_t>(std::min(file_bytes, uint64_t{kNpyPrefixBytes})));
  if (!ReadFrom(file, 0, absl::MakeSpan(bytes))) return Refuse("It cannot be read.");
  ASSIGN_OR_RETURN(const size_t header_bytes, NpyHeaderBytes(bytes));
  bytes.resize(static_cast<size_t>(std::min<uint64_t>(file_bytes, header_bytes)));
  if (!ReadFrom(file, 0, absl::MakeSpan(bytes))) return Refuse("It cannot be read.");
  if (bytes.size() < header_bytes) return ParseNpyHeader(bytes);  // reports what is missing
  ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(bytes, NpyDtypes::kOfOperators));
  RETURN_IF_ERROR(CheckNpyLength(header, file_bytes));
  return header;
}

absl::StatusOr<TensorDesc> TensorOf(const NpyHeader& header) {
  if (header.fortran_order && header.sizes.size() > 1) {
    return Refuse("The array is in Fortran order; save it with numpy.ascontiguousarray(x).");
  }
  if (header.data_bytes == 0) return Refuse("The array has no elements.");
  TensorDesc tensor = {.data_type = DataTypeOf(header.dtype), .sizes = header.sizes};
  // A tensor without dimensions is an input of models only.
  if (!tensor.sizes.empty()) RETURN_IF_ERROR(CheckTensor(tensor, "array"));
  return tensor;
}

// What tells that a file has changed.
struct Version {
  uint64_t bytes = 0;
  fs::file_time_type written;

  friend bool operator==(const Version&, const Version&) = default;
};

absl::StatusOr<Version> VersionOf(const fs::path& path) {
  std::error_code error;
  Version version;
  if (!fs::is_regular_file(path, error)) return Refuse("It is not a regular file.");
  version.bytes = fs::file_size(path, error);
  if (!error) version.written = fs::last_write_time(path, error);
  if (error) return Refuse(absl::StrCat("It cannot be examined: ", error.message(), "."));
  return version;
}

TensorContents ContentsOf(const fs::path& path, const Version& version, uint64_t data_offset) {
  return [path, version, data_offset](uint64_t offset, absl::Span<std::byte> to) -> absl::Status {
    std::ifstream file(path, std::ios::binary);
    const bool is_read = file && ReadFrom(file, data_offset + offset, to);
    const absl::StatusOr<Version> now = VersionOf(path);
    if (is_read && now.ok() && *now == version) return absl::OkStatus();
    return absl::FailedPreconditionError(
        absl::StrCat(Utf8Name(path), " has changed since the server has started."));
  };
}

absl::StatusOr<TensorFile> Open(const fs::path& path) {
  ASSIGN_OR_RETURN(const Version version, VersionOf(path));
  std::ifstream file(path, std::ios::binary);
  if (!file) return Refuse("It cannot be opened.");
  ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(file, version.bytes));
  ASSIGN_OR_RETURN(TensorDesc tensor, TensorOf(header));
  return TensorFile{.path = Utf8Name(path),
                    .name = Utf8Name(path.stem()),
                    .tensor = std::move(tensor),
                    .contents = ContentsOf(path, version, header.data_offset)};
}

}  // namespace

std::string CannotBeServed(absl::string_view path, const absl::Status& why) {
  return absl::StrCat("--tensors: ", path, " cannot be served. ", why.message());
}

absl::StatusOr<std::vector<TensorFile>> FindTensorFiles(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  fs::directory_iterator at(PathOf(folder), error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    const std::string name = Utf8Name(at->path().filename());
    if (absl::EndsWith(name, kSuffix) && !absl::StartsWith(name, ".")) paths.push_back(at->path());
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tensors (", folder, ") cannot be read: ", error.message(), "."));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<TensorFile> files;
  for (const fs::path& path : paths) {
    absl::StatusOr<TensorFile> file = Open(path);
    if (!file.ok()) {
      return absl::Status(file.status().code(), CannotBeServed(Utf8Name(path), file.status()));
    }
    files.push_back(*std::move(file));
  }
  return files;
}

}  // namespace opmill
