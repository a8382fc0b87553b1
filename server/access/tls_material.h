// The server's certificate and key, and the authorities of its callers, from files.
#ifndef OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_
#define OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/options.h"

namespace opmill {

// PEM texts.
struct TlsMaterial {
  std::string certificates;  // the server's own, and those between it and its authority
  std::string key;
  std::string client_authorities;  // empty: callers show no certificate
  absl::Time expires;              // the server's own certificate
};

// FailedPrecondition, with the file and what is wrong with it, where a handshake would fail: what
// is no PEM, a key of another certificate or behind a password, a certificate that is not valid
// now.
absl::StatusOr<TlsMaterial> ReadTlsMaterial(const AccessOptions& files);

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_TLS_MATERIAL_H_
