// NumPy's .npz archives: zip files of .npy files, stored (numpy.savez) or deflated
// (numpy.savez_compressed).
#ifndef OPMILL_CLIENT_CLI_NPZ_READER_H_
#define OPMILL_CLIENT_CLI_NPZ_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/execution.h"
#include "client/npy.h"

namespace opmill {

// One file of an archive, which is inside the archive's bytes.
struct NpzMember {
  std::string name;  // as NumPy has it, without ".npy"; any bytes
  uint16_t method = 0;
  bool is_encrypted = false;
  uint32_t crc = 0;
  uint64_t bytes = 0;                      // of the .npy file
  absl::Span<const std::byte> compressed;  // as many bytes where it is stored
};

// In the order of the archive, each name once. InvalidArgument, with the reason, for what is no
// archive, or a damaged one: no member reaches out of `file` or claims more bytes than it can hold.
absl::StatusOr<std::vector<NpzMember>> ReadNpzDirectory(absl::Span<const std::byte> file);

// Inflates no more than the header. The array is inside the member.
absl::StatusOr<NpyHeader> ReadNpzHeader(const NpzMember& member, NpyDtypes dtypes);

// The elements of an array with this header: in place, kept by `archive`, where the member is
// stored, else inflated. The whole member is checked against its checksum.
absl::StatusOr<InputBytes> ReadNpzElements(const NpzMember& member, const NpyHeader& header,
                                           std::shared_ptr<const void> archive);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_NPZ_READER_H_
