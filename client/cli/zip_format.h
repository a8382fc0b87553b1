// Constants of the zip format: signatures, sizes of records, special values.
#ifndef OPMILL_CLIENT_CLI_ZIP_FORMAT_H_
#define OPMILL_CLIENT_CLI_ZIP_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace opmill::zip {

// Signatures of records, and their sizes without names and extra fields.
inline constexpr uint32_t kLocalSignature = 0x04034B50;
inline constexpr size_t kLocalBytes = 30;
inline constexpr uint32_t kEntrySignature = 0x02014B50;
inline constexpr size_t kEntryBytes = 46;
inline constexpr uint32_t kEndSignature = 0x06054B50;
inline constexpr size_t kEndBytes = 22;
inline constexpr uint32_t kEnd64Signature = 0x06064B50;
inline constexpr size_t kEnd64Bytes = 56;
inline constexpr uint32_t kLocatorSignature = 0x07064B50;
inline constexpr size_t kLocatorBytes = 20;

// Means that the value is in a 64-bit record.
inline constexpr uint16_t kMax16 = 0xFFFF;
inline constexpr uint32_t kMax32 = 0xFFFFFFFF;
inline constexpr uint16_t kExtra64 = 1;

inline constexpr uint16_t kStored = 0;
inline constexpr uint16_t kDeflated = 8;
inline constexpr uint16_t kEncrypted = 1;   // a flag
inline constexpr uint16_t kUtf8 = 1 << 11;  // a flag: the name is UTF-8

}  // namespace opmill::zip

#endif  // OPMILL_CLIENT_CLI_ZIP_FORMAT_H_
