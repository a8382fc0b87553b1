// Reads the server's certificate and key, and the authorities of its callers.
#ifndef OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_
#define OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace opmill {

// All texts are PEM.
struct TlsMaterial {
  std::string certificates;  // the server's own, followed by the intermediate ones
  std::string key;
  std::string client_authorities;  // empty: callers need no certificate
  absl::Time expires;              // the server's own certificate
};

// Returns FailedPrecondition, with the file and the error, if a handshake would fail: invalid PEM,
// an encrypted key, a key that does not match the certificate, or a certificate that is not valid
// now.
absl::StatusOr<TlsMaterial> ReadTlsMaterial(const AccessOptions& files);

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_
