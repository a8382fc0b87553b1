// NumPy's files, as `opmill run` reads them.
#include <cstdint>

#include "absl/types/span.h"
#include "client/npy.h"
#include "tests/fuzz/check.h"

namespace opmill {
namespace {

void Run(absl::Span<const std::byte> file) {
  const absl::StatusOr<NpyHeader> header = ParseNpyHeader(file);
  if (!header.ok()) {
    FUZZ_CHECK(absl::IsInvalidArgument(header.status()) && IsSentence(header.status()),
               header.status().ToString());
    return;
  }
  FUZZ_CHECK(
      header->data_offset <= file.size() && header->data_bytes <= file.size() - header->data_offset,
      header->data_offset, " + ", header->data_bytes, " of ", file.size());
  FUZZ_CHECK(header->sizes.size() <= 8, header->sizes.size());
  const absl::StatusOr<v1::TensorDesc> desc = ToTensorDesc(*header);
  if (!desc.ok()) {
    FUZZ_CHECK(header->fortran_order && IsSentence(desc.status()), desc.status().ToString());
    return;
  }
  FUZZ_CHECK(static_cast<size_t>(desc->sizes_size()) == header->sizes.size(), "");
  FUZZ_CHECK(desc->strides_size() == 0 || desc->strides_size() == desc->sizes_size(), "");

  // The written header can be read.
  if (header->fortran_order) return;
  std::string written = MakeNpyHeader(header->dtype, header->sizes);
  FUZZ_CHECK(written.size() % 64 == 0, written.size());
  written.append(reinterpret_cast<const char*>(file.data()) + header->data_offset,
                 header->data_bytes);
  const absl::StatusOr<NpyHeader> again =
      ParseNpyHeader({reinterpret_cast<const std::byte*>(written.data()), written.size()});
  FUZZ_CHECK(again.ok() && again->sizes == header->sizes && again->dtype == header->dtype &&
                 again->data_bytes == header->data_bytes,
             written);
}

}  // namespace
}  // namespace opmill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opmill::Run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
