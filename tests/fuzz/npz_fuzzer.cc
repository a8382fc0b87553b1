// NumPy's archives, as `opmill run` reads them.
#include <cstdint>

#include "absl/types/span.h"
#include "client/cli/npz_reader.h"
#include "tests/fuzz/check.h"

namespace opmill {
namespace {

// Larger arrays add nothing to the test.
constexpr size_t kMaxInflatedBytes = size_t{64} << 20;

void RunMember(const NpzMember& member, absl::Span<const std::byte> file) {
  FUZZ_CHECK(member.compressed.data() >= file.data() &&
                 member.compressed.data() + member.compressed.size() <= file.data() + file.size(),
             member.compressed.size());
  const absl::StatusOr<NpyHeader> header = ReadNpzHeader(member, NpyDtypes::kCastable);
  if (!header.ok()) {
    FUZZ_CHECK(IsSentence(header.status()), header.status().ToString());
    return;
  }
  FUZZ_CHECK(header->data_offset <= member.bytes &&
                 header->data_bytes <= member.bytes - header->data_offset,
             header->data_offset, " + ", header->data_bytes, " of ", member.bytes);
  if (header->data_bytes > kMaxInflatedBytes) return;
  const absl::StatusOr<InputBytes> bytes = ReadNpzElements(member, *header, nullptr);
  if (!bytes.ok()) {
    FUZZ_CHECK(IsSentence(bytes.status()), bytes.status().ToString());
    return;
  }
  FUZZ_CHECK(bytes->size == header->data_bytes, bytes->size);
}

void Run(absl::Span<const std::byte> file) {
  const absl::StatusOr<std::vector<NpzMember>> members = ReadNpzDirectory(file);
  if (!members.ok()) {
    FUZZ_CHECK(absl::IsInvalidArgument(members.status()) && IsSentence(members.status()),
               members.status().ToString());
    return;
  }
  FUZZ_CHECK(!members->empty(), "");
  for (const NpzMember& member : *members) RunMember(member, file);
}

}  // namespace
}  // namespace opmill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opmill::Run({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
