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

// A file in an archive. It refers to the archive's bytes.
struct NpzMember {
  std::string name;  // without ".npy"; arbitrary bytes
  uint16_t method = 0;
  bool is_encrypted = false;
  uint32_t crc = 0;
  uint64_t bytes = 0;                      // of the .npy file
  absl::Span<const std::byte> compressed;  // has `bytes` bytes if it is stored
};

// Lists the members in the order of the archive, each name once. Returns InvalidArgument, with the
// reason, if the file is not an archive or is damaged. Members never extend beyond `file` or claim
// more bytes than it can hold.
absl::StatusOr<std::vector<NpzMember>> ReadNpzDirectory(absl::Span<const std::byte> file);

// Inflates no more than the header. The array is inside the member.
absl::StatusOr<NpyHeader> ReadNpzHeader(const NpzMember& member, NpyDtypes dtypes);

// The elements of an array with this header: in place if the member is stored (`archive` keeps them
// alive), otherwise inflated. Verifies the checksum of the whole member.
absl::StatusOr<InputBytes> ReadNpzElements(const NpzMember& member, const NpyHeader& header,
                                           std::shared_ptr<const void> archive);

}  // namespace opmill

#endif  // OPMILL_CLIENT_CLI_NPZ_READER_H_
