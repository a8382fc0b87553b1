// Access control by TLS certificates and bearer tokens, which are read from files, and again when
// the files change.
#ifndef OPMILL_SERVER_ACCESS_ACCESS_H_
#define OPMILL_SERVER_ACCESS_ACCESS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "server/access/access_tokens.h"
#include "server/access/tls_material.h"
#include "server/access/watched_files.h"
#include "server/config/options.h"

namespace opmill {

// If a changed file is unusable, the previous contents stay in effect and a warning is logged. New
// certificates apply to new connections, new tokens to the next call. Thread-safe.
class Access {
 public:
  static absl::StatusOr<std::unique_ptr<Access>> Create(const AccessOptions& options);
  ~Access();

  // The credentials for one listening address. This object must outlive the gRPC server that uses
  // them.
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials();

  // Schedules a reload of the files, changed or not. The result is logged.
  void ReloadSoon() {
    if (watched_ != nullptr) watched_->CallBack();
  }

  // The name of the caller's token, or else of its certificate. Empty if the server requires
  // neither.
  std::string CallerOf(const grpc::CallbackServerContext& context) const;

  // The expiry of the server's certificate; InfiniteFuture without TLS.
  absl::Time certificate_expires() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of calls that were refused because they carried no known token.
  uint64_t refused_calls() const { return refused_calls_; }

 private:
  struct Port;  // the argument of gRPC's callbacks

  explicit Access(const AccessOptions& options);
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<AccessTokens> ReadTokens() const;
  void Reload() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckToken(absl::string_view path, std::optional<absl::string_view> authorization)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const AccessTokens> tokens() const ABSL_LOCKS_EXCLUDED(mutex_);

  const AccessOptions options_;
  std::atomic<uint64_t> refused_calls_ = 0;
  std::vector<std::unique_ptr<Port>> ports_;
  mutable absl::Mutex mutex_;
  // Null without TLS.
  std::shared_ptr<const TlsMaterial> material_ ABSL_GUARDED_BY(mutex_);
  uint64_t material_version_ ABSL_GUARDED_BY(mutex_) = 0;
  // Null if no token file is configured.
  std::shared_ptr<const AccessTokens> tokens_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WatchedFiles> watched_;  // declared last: its thread uses the members above
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_ACCESS_H_
