// The server's certificate and key, and the certificate authorities for its callers, read from
// files.
#ifndef OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_
#define OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace opmill {

// All texts are PEM.
struct TlsMaterial {
  std::string certificates;  // the server's own, then intermediate certificates
  std::string key;
  std::string client_authorities;  // empty: callers need no certificate
  absl::Time expires;              // of the server's own certificate
};

// Reads and checks the files. Returns FailedPrecondition, naming the file and the problem, if a
// handshake would fail: the file is not PEM, the key belongs to another certificate or has a
// password, or a certificate is not currently valid.
absl::StatusOr<TlsMaterial> ReadTlsMaterial(const AccessOptions& files);

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_
