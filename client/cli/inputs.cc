#include "client/cli/inputs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/npz_reader.h"
#include "client/mapped_file.h"
#include "client/names.h"
#include "client/npy.h"
#include "client/npy_cast.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"
#include "kernels/base/process_io.h"
#include "kernels/base/utf8_path.h"

namespace opmill {
namespace {

using Load = std::function<absl::StatusOr<InputBytes>()>;

constexpr absl::string_view kArchiveMagic = "PK\x03\x04";

// The operator type that loses the least information.
std::string NearestType(NpyDtype dtype) {
  if (dtype.kind == 'b') return "uint8";
  if (dtype.kind == 'f' && dtype.bytes == 8) return "float32";
  dtype.is_big_endian = false;
  return NameOf(dtype);
}

absl::Status CheckType(const NpyHeader& header, v1::DataType cast) {
  if (cast != v1::DATA_TYPE_UNSPECIFIED) return CheckCast(header.dtype, cast);
  if (IsOfOperators(header.dtype)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "The array's type is ", NameOf(header.dtype),
      ", which no operator accepts; convert it with --cast ", NearestType(header.dtype), "."));
}

absl::StatusOr<InputBytes> LoadAndCast(const NpyHeader& header, v1::DataType to, const Load& load) {
  ASSIGN_OR_RETURN(const InputBytes raw, load());
  const size_t bytes = header.data_bytes / header.dtype.bytes * ElementBytes(to);
  std::shared_ptr<std::byte[]> elements(new (std::nothrow) std::byte[bytes]);
  if (elements == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "There is not enough memory for its elements as ", NameOf(to), " (", bytes, " bytes)."));
  }
  RETURN_IF_ERROR(CastElements(header, {raw.data, raw.size}, to, elements.get()));
  const std::byte* const data = elements.get();
  return InputBytes{data, bytes, std::move(elements)};
}

absl::Status AboutInput(const std::string& name, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(name, ": ", status.message()));
}

// The array with this header, or the error.
InputArray MakeArray(std::string name, std::string stem, absl::StatusOr<NpyHeader> header,
                     v1::DataType cast, Load load) {
  InputArray array{.name = std::move(name), .stem = std::move(stem)};
  if (header.ok()) {
    array.dtype = header->dtype;
    if (absl::Status status = CheckType(*header, cast); !status.ok()) header = std::move(status);
  }
  if (header.ok() && cast != v1::DATA_TYPE_UNSPECIFIED && DataTypeOf(header->dtype) != cast) {
    load = [from = *header, cast, raw = std::move(load)] { return LoadAndCast(from, cast, raw); };
    header->dtype = DtypeOf(cast);
  }
  absl::StatusOr<v1::TensorDesc> desc =
      header.ok() ? ToTensorDesc(*header) : absl::StatusOr<v1::TensorDesc>(header.status());
  if (!desc.ok()) {
    array.status = AboutInput(array.name, desc.status());
    return array;
  }
  array.desc = *std::move(desc);
  array.load = [name = array.name, load = std::move(load)]() -> absl::StatusOr<InputBytes> {
    absl::StatusOr<InputBytes> bytes = load();
    if (!bytes.ok()) return AboutInput(name, bytes.status());
    return bytes;
  };
  return array;
}

// Reads until there are `size` bytes or the input ends. Allocates memory as data arrives.
void ReadUpTo(size_t size, std::vector<std::byte>& bytes) {
  constexpr size_t kMinStep = size_t{1} << 20;
  while (bytes.size() < size) {
    const size_t had = bytes.size();
    bytes.resize(had + std::min(size - had, std::max(had, kMinStep)));
    bytes.resize(had + std::fread(bytes.data() + had, 1, bytes.size() - had, stdin));
    if (bytes.size() == had) return;
  }
}

absl::StatusOr<NpyHeader> ReadStandardInput(std::vector<std::byte>& bytes) {
  UseBytes(stdin);
  ReadUpTo(kNpyPrefixBytes, bytes);
  if (bytes.empty()) return absl::InvalidArgumentError("It is empty; a .npy file is expected.");
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (absl::StartsWith(text, kArchiveMagic)) {
    return absl::InvalidArgumentError("It is a .npz archive; only a .npy file can be piped.");
  }
  ASSIGN_OR_RETURN(const size_t header_bytes, NpyHeaderBytes(bytes));
  ReadUpTo(header_bytes, bytes);
  if (bytes.size() < header_bytes) return ParseNpyHeader(bytes);  // reports what is missing
  ASSIGN_OR_RETURN(NpyHeader header, ReadNpyHeader(absl::MakeConstSpan(bytes).first(header_bytes),
                                                   NpyDtypes::kCastable));
  ReadUpTo(header.data_offset + header.data_bytes, bytes);
  RETURN_IF_ERROR(CheckNpyLength(header, bytes.size()));
  return header;
}

InputArray OpenStandardInput(v1::DataType cast) {
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  const absl::StatusOr<NpyHeader> header = ReadStandardInput(*bytes);
  Load load;
  if (header.ok()) {
    load = [bytes, offset = header->data_offset, size = header->data_bytes] {
      return InputBytes{bytes->data() + offset, size, bytes};
    };
  }
  return MakeArray("standard input", "stdin", header, cast, std::move(load));
}

InputArray OpenNpy(const std::string& path, const std::shared_ptr<const MappedFile>& file,
                   v1::DataType cast) {
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(file->bytes(), NpyDtypes::kCastable);
  Load load;
  if (header.ok()) {
    load = [file, offset = header->data_offset, size = header->data_bytes] {
      return InputBytes{file->bytes().data() + offset, size, file};
    };
  }
  return MakeArray(path, Utf8Name(PathOf(path).stem()), header, cast, std::move(load));
}

InputArray OpenMember(const std::string& path, const std::shared_ptr<const MappedFile>& file,
                      const NpzMember& member, v1::DataType cast) {
  const absl::StatusOr<NpyHeader> header = ReadNpzHeader(member, NpyDtypes::kCastable);
  Load load;
  if (header.ok()) {
    load = [file, member, header = *header] { return ReadNpzElements(member, header, file); };
  }
  return MakeArray(absl::StrCat(path, ":", Excerpt(member.name)), member.name, header, cast,
                   std::move(load));
}

std::string NamesOf(const std::vector<NpzMember>& members) {
  constexpr size_t kMost = 10;
  std::string names;
  for (size_t i = 0; i < std::min(members.size(), kMost); ++i) {
    absl::StrAppend(&names, i == 0 ? "" : ", ", Excerpt(members[i].name));
  }
  return names + (members.size() > kMost ? ", ..." : "");
}

// One member, or all members.
std::vector<InputArray> OpenNpz(const std::string& path,
                                const std::shared_ptr<const MappedFile>& file,
                                const std::optional<std::string>& name, v1::DataType cast) {
  const absl::StatusOr<std::vector<NpzMember>> members = ReadNpzDirectory(file->bytes());
  if (!members.ok()) return {{.name = path, .status = AboutInput(path, members.status())}};
  std::vector<InputArray> arrays;
  for (const NpzMember& member : *members) {
    if (!name || member.name == *name) arrays.push_back(OpenMember(path, file, member, cast));
  }
  if (arrays.empty()) {
    arrays.push_back(
        {.name = path,
         .status = absl::InvalidArgumentError(absl::StrCat(
             path, " holds no array ", Excerpt(*name), "; it holds ", NamesOf(*members), "."))});
  }
  return arrays;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(PathOf(path), ignored);
}

}  // namespace

std::vector<InputArray> OpenInputs(const std::string& word, v1::DataType cast) {
  if (word == kStandardStream) return {OpenStandardInput(cast)};
  std::string path = word;
  std::optional<std::string> member;
  const absl::string_view suffix = kArchiveSuffix;
  const size_t colon = word.find(absl::StrCat(suffix, ":"));
  if (colon != std::string::npos && !Exists(word)) {
    path = word.substr(0, colon + suffix.size());
    member = word.substr(colon + suffix.size() + 1);
  }
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return {{.name = path, .status = file.status()}};
  const absl::string_view text(reinterpret_cast<const char*>((*file)->bytes().data()),
                               (*file)->bytes().size());
  if (member || absl::EndsWith(path, kArchiveSuffix) || absl::StartsWith(text, kArchiveMagic)) {
    return OpenNpz(path, *std::move(file), member, cast);
  }
  return {OpenNpy(path, *std::move(file), cast)};
}

absl::Status CheckIsOne(absl::string_view argument, const std::vector<InputArray>& arrays) {
  if (arrays.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(argument, " holds ", arrays.size(),
                                                 " arrays; select one of them, for example ",
                                                 arrays.front().name, "."));
}

absl::StatusOr<InputArray> OpenInput(const std::string& word, v1::DataType cast) {
  std::vector<InputArray> arrays = OpenInputs(word, cast);
  RETURN_IF_ERROR(CheckIsOne(word, arrays));
  RETURN_IF_ERROR(arrays.front().status);
  return std::move(arrays.front());
}

}  // namespace opmill
