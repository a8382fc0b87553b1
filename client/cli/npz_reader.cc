#include "client/cli/npz_reader.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cli/zip_format.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

using Bytes = absl::Span<const std::byte>;

// Deflate encodes at most 258 bytes in 2 bits.
constexpr uint64_t kMaxInflation = 1032;

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("The .npz archive is damaged: ", what, "."));
}

template <typename Integer>
Integer LittleEndian(Bytes bytes, size_t offset) {
  Integer value = 0;
  for (size_t i = 0; i < sizeof(Integer); ++i) {
    value = static_cast<Integer>(value | static_cast<Integer>(bytes[offset + i]) << (8 * i));
  }
  return value;
}
uint16_t U16(Bytes bytes, size_t offset) { return LittleEndian<uint16_t>(bytes, offset); }
uint32_t U32(Bytes bytes, size_t offset) { return LittleEndian<uint32_t>(bytes, offset); }
uint64_t U64(Bytes bytes, size_t offset) { return LittleEndian<uint64_t>(bytes, offset); }

// The record at `offset`; absent if it is not completely within the file or of another kind.
std::optional<Bytes> Record(Bytes file, uint64_t offset, size_t size, uint32_t signature) {
  if (offset > file.size() || file.size() - offset < size) return std::nullopt;
  const Bytes record = file.subspan(static_cast<size_t>(offset));
  if (U32(record, 0) != signature) return std::nullopt;
  return record;
}

struct Directory {
  uint64_t members = 0;
  uint64_t offset = 0;
};

// Searches backwards from the end of the file, because a comment may follow the record.
absl::StatusOr<Directory> FindDirectory(Bytes file) {
  const size_t last = file.size() < zip::kEndBytes ? 0 : file.size() - zip::kEndBytes;
  for (size_t back = 0; back <= std::min<size_t>(last, zip::kMax16); ++back) {
    const size_t at = last - back;
    const std::optional<Bytes> end = Record(file, at, zip::kEndBytes, zip::kEndSignature);
    if (!end || U16(*end, 20) != file.size() - at - zip::kEndBytes) continue;
    Directory directory{U16(*end, 10), U32(*end, 16)};
    if (directory.members < zip::kMax16 && directory.offset < zip::kMax32) return directory;
    if (at < zip::kLocatorBytes) return directory;
    const std::optional<Bytes> locator =
        Record(file, at - zip::kLocatorBytes, zip::kLocatorBytes, zip::kLocatorSignature);
    if (!locator) return directory;
    const std::optional<Bytes> end64 =
        Record(file, U64(*locator, 8), zip::kEnd64Bytes, zip::kEnd64Signature);
    if (!end64) return Damaged("the end record of its directory is not at the stated offset");
    return Directory{U64(*end64, 32), U64(*end64, 48)};
  }
  return absl::InvalidArgumentError(
      "The file is not a .npz archive, or its end is missing: it has no zip directory.");
}

// Replaces `values` that are all ones by the 64-bit values of the extra fields, in this order.
bool TakeZip64(Bytes extra, absl::Span<uint64_t* const> values) {
  while (extra.size() >= 4) {
    const uint16_t kind = U16(extra, 0);
    const size_t size = U16(extra, 2);
    if (extra.size() - 4 < size) return false;
    Bytes field = extra.subspan(4, size);
    extra = extra.subspan(4 + size);
    if (kind != zip::kExtra64) continue;
    for (uint64_t* const value : values) {
      if (*value != zip::kMax32) continue;
      if (field.size() < 8) return false;
      *value = U64(field, 0);
      field.remove_prefix(8);
    }
    return true;
  }
  return true;
}

// The directory entry at `offset`, which is advanced to the next entry.
absl::StatusOr<NpzMember> ReadEntry(Bytes file, uint64_t& offset) {
  const std::optional<Bytes> entry = Record(file, offset, zip::kEntryBytes, zip::kEntrySignature);
  if (!entry) return Damaged("its directory is truncated");
  const size_t name_bytes = U16(*entry, 28);
  const size_t extra_bytes = U16(*entry, 30);
  const size_t entry_bytes = zip::kEntryBytes + name_bytes + extra_bytes + U16(*entry, 32);
  if (entry->size() < entry_bytes) return Damaged("its directory is truncated");
  offset += entry_bytes;

  NpzMember member;
  member.name.assign(reinterpret_cast<const char*>(entry->data()) + zip::kEntryBytes, name_bytes);
  member.is_encrypted = (U16(*entry, 8) & zip::kEncrypted) != 0;
  member.method = U16(*entry, 10);
  member.crc = U32(*entry, 16);
  member.bytes = U32(*entry, 24);
  uint64_t compressed_bytes = U32(*entry, 20);
  uint64_t local_offset = U32(*entry, 42);
  const std::string name = Excerpt(member.name);
  if (!TakeZip64(entry->subspan(zip::kEntryBytes + name_bytes, extra_bytes),
                 {&member.bytes, &compressed_bytes, &local_offset})) {
    return Damaged(absl::StrCat("the sizes of ", name, " cannot be read"));
  }
  const std::optional<Bytes> local =
      Record(file, local_offset, zip::kLocalBytes, zip::kLocalSignature);
  if (!local) return Damaged(absl::StrCat(name, " is not where the directory says"));
  const size_t skipped = zip::kLocalBytes + U16(*local, 26) + U16(*local, 28);
  if (local->size() < skipped || local->size() - skipped < compressed_bytes) {
    return Damaged(absl::StrCat(name, " extends past the end of the file"));
  }
  member.compressed = local->subspan(skipped, static_cast<size_t>(compressed_bytes));
  if (member.method == zip::kStored && member.bytes != compressed_bytes) {
    return Damaged(
        absl::StrCat(name, " is stored in ", compressed_bytes, " bytes and claims ", member.bytes));
  }
  if (member.method == zip::kDeflated && member.bytes / kMaxInflation > compressed_bytes) {
    return Damaged(absl::StrCat(name, " claims ", member.bytes, " bytes, more than its ",
                                compressed_bytes, " compressed ones can hold"));
  }
  member.name = std::string(absl::StripSuffix(member.name, ".npy"));
  return member;
}

// Reads the bytes of a member sequentially.
class MemberReader {
 public:
  explicit MemberReader(const NpzMember& member) : member_(member), rest_(member.compressed) {
    // Raw deflate; fails only without memory.
    if (member.method == zip::kDeflated) is_ready_ = inflateInit2(&stream_, -MAX_WBITS) == Z_OK;
  }
  ~MemberReader() {
    if (member_.method == zip::kDeflated && is_ready_) inflateEnd(&stream_);
  }
  MemberReader(const MemberReader&) = delete;
  MemberReader& operator=(const MemberReader&) = delete;

  // Reads exactly `size` bytes.
  absl::Status Read(std::byte* out, size_t size) {
    if (!is_ready_)
      return absl::ResourceExhaustedError("There is not enough memory to decompress it.");
    if (member_.method == zip::kStored) {
      if (rest_.size() < size) return EndsEarly();
      std::copy_n(rest_.data(), size, out);
      rest_.remove_prefix(size);
      return absl::OkStatus();
    }
    while (size > 0) {
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(rest_.data()));
      stream_.avail_in = static_cast<uInt>(std::min<size_t>(rest_.size(), kMaxStep));
      stream_.next_out = reinterpret_cast<Bytef*>(out);
      stream_.avail_out = static_cast<uInt>(std::min<size_t>(size, kMaxStep));
      const uInt given = stream_.avail_in;
      const uInt room = stream_.avail_out;
      const int result = inflate(&stream_, Z_NO_FLUSH);
      const uInt written = room - stream_.avail_out;
      rest_.remove_prefix(given - stream_.avail_in);
      out += written;
      size -= written;
      if (result == Z_STREAM_END && size > 0) return EndsEarly();
      if (result == Z_DATA_ERROR || result == Z_NEED_DICT) {
        return Damaged("its compressed bytes are not a deflate stream");
      }
      if (written == 0 && stream_.avail_in == given) return EndsEarly();
    }
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kMaxStep = size_t{1} << 30;  // zlib uses 32-bit sizes

  absl::Status EndsEarly() const {
    return Damaged(absl::StrCat("it claims ", member_.bytes, " bytes and ends early"));
  }

  const NpzMember& member_;
  Bytes rest_;
  z_stream stream_ = {};
  bool is_ready_ = true;
};

absl::Status CheckCrc(uint32_t actual, const NpzMember& member) {
  if (actual == member.crc) return absl::OkStatus();
  return Damaged("its checksum is not the one in the directory");
}

}  // namespace

absl::StatusOr<std::vector<NpzMember>> ReadNpzDirectory(Bytes file) {
  ASSIGN_OR_RETURN(const Directory directory, FindDirectory(file));
  uint64_t offset = directory.offset;
  std::vector<NpzMember> members;
  std::set<std::string> names;
  for (uint64_t i = 0; i < directory.members; ++i) {
    ASSIGN_OR_RETURN(NpzMember member, ReadEntry(file, offset));
    if (absl::EndsWith(member.name, "/")) continue;  // a folder
    if (!names.insert(member.name).second) {
      return Damaged(absl::StrCat("it holds ", Excerpt(member.name), " twice"));
    }
    members.push_back(std::move(member));
  }
  if (members.empty()) return absl::InvalidArgumentError("The .npz archive holds no array.");
  return members;
}

absl::StatusOr<NpyHeader> ReadNpzHeader(const NpzMember& member, NpyDtypes dtypes) {
  if (member.is_encrypted) {
    return absl::InvalidArgumentError("It is encrypted; NumPy's archives never are.");
  }
  if (member.method != zip::kStored && member.method != zip::kDeflated) {
    return absl::InvalidArgumentError(
        absl::StrCat("It is compressed by method ", member.method,
                     "; only stored (0) and deflated (8) arrays can be read."));
  }
  MemberReader reader(member);
  std::vector<std::byte> header(
      static_cast<size_t>(std::min<uint64_t>(member.bytes, kNpyPrefixBytes)));
  RETURN_IF_ERROR(reader.Read(header.data(), header.size()));
  ASSIGN_OR_RETURN(const size_t header_bytes, NpyHeaderBytes(header));
  const size_t begun = std::min(header.size(), header_bytes);
  header.resize(header_bytes);
  RETURN_IF_ERROR(reader.Read(header.data() + begun, header_bytes - begun));
  absl::StatusOr<NpyHeader> parsed = ReadNpyHeader(header, dtypes);
  if (!parsed.ok()) return parsed.status();
  RETURN_IF_ERROR(CheckNpyLength(*parsed, member.bytes));
  return parsed;
}

absl::StatusOr<InputBytes> ReadNpzElements(const NpzMember& member, const NpyHeader& header,
                                           std::shared_ptr<const void> archive) {
  if (member.method == zip::kStored) {
    const Bytes all = member.compressed;
    const auto* bytes = reinterpret_cast<const Bytef*>(all.data());
    RETURN_IF_ERROR(CheckCrc(static_cast<uint32_t>(crc32_z(0, bytes, all.size())), member));
    return InputBytes{all.data() + header.data_offset, header.data_bytes, std::move(archive)};
  }
  std::shared_ptr<std::byte[]> elements(new (std::nothrow) std::byte[header.data_bytes]);
  if (elements == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "There is not enough memory for its elements (", header.data_bytes, " bytes)."));
  }
  MemberReader reader(member);
  uLong crc = 0;
  const auto read = [&](std::byte* out, size_t size) {
    absl::Status status = reader.Read(out, size);
    if (status.ok()) crc = crc32_z(crc, reinterpret_cast<const Bytef*>(out), size);
    return status;
  };
  std::vector<std::byte> around(header.data_offset);
  absl::Status status = read(around.data(), around.size());
  if (status.ok()) status = read(elements.get(), header.data_bytes);
  // The checksum includes data after the array.
  around.resize(size_t{1} << 16);
  uint64_t rest = member.bytes - header.data_offset - header.data_bytes;
  while (status.ok() && rest > 0) {
    const size_t step = static_cast<size_t>(std::min<uint64_t>(rest, around.size()));
    status = read(around.data(), step);
    rest -= step;
  }
  if (status.ok()) status = CheckCrc(static_cast<uint32_t>(crc), member);
  if (!status.ok()) return status;
  const std::byte* const data = elements.get();
  return InputBytes{data, header.data_bytes, std::move(elements)};
}

}  // namespace opmill
