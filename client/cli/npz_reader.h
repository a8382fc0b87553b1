// Reads NumPy's .npz archives: zip files of .npy files, stored (numpy.savez) or deflated
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

// One file of an archive. Refers to the bytes of the archive.
struct NpzMember {
  std::string name;  // without ".npy"; may contain any bytes
  uint16_t method = 0;
  bool is_encrypted = false;
  uint32_t crc = 0;
  uint64_t bytes = 0;                      // of the .npy file
  absl::Span<const std::byte> compressed;  // the file itself if it is stored
};

// The members in the order of the archive; names are unique. InvalidArgument if `file` is not an
// archive or is damaged. Members lie within `file` and claim no more bytes than they can hold.
absl::StatusOr<std::vector<NpzMember>> ReadNpzDirectory(absl::Span<const std::byte> file);

// Decompresses only the header. The array lies within the member.
absl::StatusOr<NpyHeader> ReadNpzHeader(const NpzMember& member, NpyDtypes dtypes);

// The elements of an array with this header: in place and owned by `archive` if the member is
// stored, else decompressed. Verifies the checksum of the whole member.
absl::StatusOr<InputBytes> ReadNpzElements(const NpzMember& member, const NpyHeader& header,
                                           std::shared_ptr<const void> archive);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_NPZ_READER_H_
