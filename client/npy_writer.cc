#include "client/npy_writer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/file_writer.h"
#include "client/npy.h"
#include "kernels/base/errors.h"

namespace opmill {

NpyWriter::NpyWriter(std::unique_ptr<FileWriter> file) : file_(std::move(file)) {}
NpyWriter::~NpyWriter() = default;

absl::Status NpyWriter::CheckPath(const std::string& path) { return FileWriter::CheckPath(path); }

absl::StatusOr<std::unique_ptr<NpyWriter>> NpyWriter::Create(const std::string& path,
                                                             const v1::TensorDesc& desc,
                                                             bool is_bool) {
  if (desc.strides_size() > 0) {
    return absl::UnimplementedError(absl::StrCat(
        path, " cannot be written: the result has strides, which a .npy file cannot have."));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<FileWriter> file, FileWriter::Create(path));
  std::unique_ptr<NpyWriter> writer(new NpyWriter(std::move(file)));
  const std::vector<uint32_t> sizes(desc.sizes().begin(), desc.sizes().end());
  const std::string header = MakeNpyHeader(desc.data_type(), sizes, is_bool);
  RETURN_IF_ERROR(writer->Append(
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(header.data()), header.size())));
  return writer;
}

absl::Status NpyWriter::Append(absl::Span<const std::byte> bytes) { return file_->Append(bytes); }

absl::Status NpyWriter::Commit() { return file_->Commit(); }

}  // namespace opmill
