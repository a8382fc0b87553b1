#include "client/cli/npz_writer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/zip_format.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

constexpr uint16_t kVersion20 = 20;
constexpr uint16_t kVersion45 = 45;  // with 64-bit sizes
// 1980-01-01, the first date of zip. A constant, so that equal results give equal archives.
constexpr uint32_t kDate = 0x00210000;

class RecordBuilder {
 public:
  RecordBuilder& U16(uint64_t value) { return Put(value, 2); }
  RecordBuilder& U32(uint64_t value) { return Put(value, 4); }
  RecordBuilder& U64(uint64_t value) { return Put(value, 8); }
  std::string Take() { return std::move(text_); }

 private:
  RecordBuilder& Put(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) text_.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
    return *this;
  }
  std::string text_;
};

uint64_t Or64(uint64_t value) { return std::min<uint64_t>(value, zip::kMax32); }

}  // namespace

absl::StatusOr<std::unique_ptr<NpzWriter>> NpzWriter::Create(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> file, FileWriter::Create(path));
  return std::unique_ptr<NpzWriter>(new NpzWriter(std::move(file)));
}

absl::Status NpzWriter::Append(const std::string& record) {
  size_ += record.size();
  return file_->Append(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(record.data()), record.size()));
}

absl::Status NpzWriter::Add(const std::string& name, absl::Span<const std::byte> npy) {
  const std::string file_name = absl::StrCat(name, ".npy");
  if (file_name.size() > zip::kMax16) {
    return absl::InvalidArgumentError(
        absl::StrCat("The name ", Excerpt(name), " is too long for a .npz archive."));
  }
  const uint64_t offset = size_;
  const uint64_t bytes = npy.size();
  const uint64_t crc = crc32_z(0, reinterpret_cast<const Bytef*>(npy.data()), npy.size());
  // One condition for all three values in both records.
  const bool is_64 = bytes >= zip::kMax32 || offset >= zip::kMax32;
  const uint16_t version = is_64 ? kVersion45 : kVersion20;
  const std::string sizes = RecordBuilder().U64(bytes).U64(bytes).Take();
  std::string local_extra;
  std::string extra;
  if (is_64) {
    local_extra = RecordBuilder().U16(zip::kExtra64).U16(16).Take() + sizes;
    extra = RecordBuilder().U16(zip::kExtra64).U16(24).Take() + sizes +
            RecordBuilder().U64(offset).Take();
  }
  const uint64_t shown_bytes = is_64 ? zip::kMax32 : bytes;
  const std::string common = RecordBuilder()
                                 .U16(version)
                                 .U16(zip::kUtf8)
                                 .U16(zip::kStored)
                                 .U32(kDate)
                                 .U32(crc)
                                 .U32(shown_bytes)
                                 .U32(shown_bytes)
                                 .U16(file_name.size())
                                 .Take();
  absl::StrAppend(&directory_, RecordBuilder().U32(zip::kEntrySignature).U16(version).Take(),
                  common,
                  RecordBuilder()
                      .U16(extra.size())
                      .U16(0)  // comment
                      .U16(0)  // disk
                      .U16(0)
                      .U32(0)
                      .U32(is_64 ? zip::kMax32 : offset)
                      .Take(),
                  file_name, extra);
  ++members_;
  RETURN_IF_ERROR(
      Append(absl::StrCat(RecordBuilder().U32(zip::kLocalSignature).Take(), common,
                          RecordBuilder().U16(local_extra.size()).Take(), file_name, local_extra)));
  size_ += npy.size();
  return file_->Append(npy);
}

absl::Status NpzWriter::Commit() {
  const uint64_t offset = size_;
  std::string end = std::move(directory_);
  const uint64_t directory_bytes = end.size();
  if (members_ >= zip::kMax16 || offset >= zip::kMax32 || directory_bytes >= zip::kMax32) {
    absl::StrAppend(&end,
                    RecordBuilder()
                        .U32(zip::kEnd64Signature)
                        .U64(zip::kEnd64Bytes - 12)  // the bytes after this field
                        .U16(kVersion45)
                        .U16(kVersion45)
                        .U32(0)  // disks
                        .U32(0)
                        .U64(members_)
                        .U64(members_)
                        .U64(directory_bytes)
                        .U64(offset)
                        .Take(),
                    RecordBuilder()
                        .U32(zip::kLocatorSignature)
                        .U32(0)
                        .U64(offset + directory_bytes)
                        .U32(1)
                        .Take());
  }
  const uint64_t shown_members = std::min<uint64_t>(members_, zip::kMax16);
  absl::StrAppend(&end, RecordBuilder()
                            .U32(zip::kEndSignature)
                            .U16(0)  // disks
                            .U16(0)
                            .U16(shown_members)
                            .U16(shown_members)
                            .U32(Or64(directory_bytes))
                            .U32(Or64(offset))
                            .U16(0)  // comment
                            .Take());
  absl::Status status = Append(end);
  return status.ok() ? file_->Commit() : status;
}

}  // namespace opmill
