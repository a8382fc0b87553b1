// Access control by TLS certificates and bearer tokens. They are read from files, and read again
// when the files change.
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
#include "server/access/forwarding.h"
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

  // Credentials for one listening address. This object must outlive the server that uses them.
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials();

  // Requests that the files are read again even if they have not changed. The result is logged.
  void ReloadSoon() {
    if (watched_ != nullptr) watched_->CallBack();
  }

  // For callers that gRPC does not check. Returns what CallerOf does: the name of the token, else
  // `certificate_name`, which the TLS of the caller has verified; or the error for the caller.
  // `authorization` is the value of the header field.
  absl::StatusOr<std::string> NameCaller(absl::string_view path,
                                         std::optional<absl::string_view> authorization,
                                         absl::string_view certificate_name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  const Forwarding& forwarding() const { return forwarding_; }
  // Null without TLS. Another object after each change of the files.
  std::shared_ptr<const TlsMaterial> tls_material() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The name of the caller's token, else of its certificate; empty if neither is required.
  std::string CallerOf(const grpc::CallbackServerContext& context) const;

  // When the server's certificate expires; InfiniteFuture without TLS.
  absl::Time certificate_expires() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of calls without a valid token.
  uint64_t refused_calls() const { return refused_calls_; }

 private:
  struct Port;  // the state of gRPC's callbacks

  explicit Access(const AccessOptions& options);
  absl::Status Load() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<AccessTokens> ReadTokens() const;
  void Reload() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status CheckToken(absl::string_view path, std::optional<absl::string_view> authorization)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<const AccessTokens> tokens() const ABSL_LOCKS_EXCLUDED(mutex_);

  const AccessOptions options_;
  const Forwarding forwarding_;
  std::atomic<uint64_t> refused_calls_ = 0;
  std::vector<std::unique_ptr<Port>> ports_;
  mutable absl::Mutex mutex_;
  // Null without TLS.
  std::shared_ptr<const TlsMaterial> material_ ABSL_GUARDED_BY(mutex_);
  uint64_t material_version_ ABSL_GUARDED_BY(mutex_) = 0;
  // Null if no token is required.
  std::shared_ptr<const AccessTokens> tokens_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<WatchedFiles> watched_;  // last: its thread uses all of the above
};

}  // namespace opmill

#endif  // OPMILL_SERVER_ACCESS_ACCESS_H_
