#include "server/access/access.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/slice.h>

#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/base/errors.h"
#include "server/observe/log.h"

namespace opmill {
namespace {

// Open to scripts and orchestrators; it reveals only whether the server is serving.
constexpr absl::string_view kOpenToAll = "/grpc.health.v1.Health/";
constexpr absl::string_view kOurService = "/opmill.v1.OperatorService/";
constexpr absl::string_view kScheme = "bearer ";

absl::string_view View(const grpc_slice& slice) {
  return {reinterpret_cast<const char*>(GRPC_SLICE_START_PTR(slice)), GRPC_SLICE_LENGTH(slice)};
}

std::optional<absl::string_view> BearerToken(absl::string_view authorization) {
  if (!absl::StartsWithIgnoreCase(authorization, kScheme)) return std::nullopt;
  return authorization.substr(kScheme.size());
}

// gRPC's C API can reload certificates and check metadata on any port. Its C++ API takes such
// credentials as a class, which is an interface in older versions and holds them in newer ones.
template <typename Base, bool is_interface = std::is_abstract_v<Base>>
class PortCredentials final : public Base {
 public:
  explicit PortCredentials(grpc_server_credentials* credentials) : credentials_(credentials) {}
  ~PortCredentials() override { grpc_server_credentials_release(credentials_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

template <typename Base>
class PortCredentials<Base, false> final : public Base {
 public:
  explicit PortCredentials(grpc_server_credentials* credentials) : Base(credentials) {}
};

}  // namespace

struct Access::Port {
  Access* access;
  std::atomic<uint64_t> version = 0;  // of the material that gRPC has

  // gRPC calls this before each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* port, grpc_ssl_server_certificate_config** config) {
    return static_cast<Port*>(port)->Fetch(config);
  }
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    std::shared_ptr<const TlsMaterial> material;
    {
      const absl::MutexLock lock(&access->mutex_);
      if (version.exchange(access->material_version_) == access->material_version_) {
        return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
      }
      material = access->material_;
    }
    const grpc_ssl_pem_key_cert_pair pair = {material->key.c_str(), material->certificates.c_str()};
    // gRPC requires authorities even if callers need no certificate; they are then not used.
    const std::string& authorities = material->client_authorities.empty()
                                         ? material->certificates
                                         : material->client_authorities;
    *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  // gRPC calls this before it reads the first message of a call.
  static void Check(void* port, grpc_auth_context*, const grpc_metadata* metadata, size_t count,
                    grpc_process_auth_metadata_done_cb done, void* user_data) {
    absl::string_view path;
    std::optional<absl::string_view> authorization;
    for (size_t i = 0; i < count; ++i) {
      if (View(metadata[i].key) == ":path") path = View(metadata[i].value);
      if (View(metadata[i].key) == "authorization") authorization = View(metadata[i].value);
    }
    const absl::Status status = static_cast<Port*>(port)->access->CheckToken(path, authorization);
    done(user_data, nullptr, 0, nullptr, 0, static_cast<grpc_status_code>(status.code()),
         status.ok() ? nullptr : std::string(status.message()).c_str());
  }
};

absl::StatusOr<std::unique_ptr<Access>> Access::Create(const AccessOptions& options) {
  std::unique_ptr<Access> access(new Access(options));
  std::vector<std::string> files;
  for (const std::string& file :
       {options.tls_cert, options.tls_key, options.tls_client_ca, options.token_file}) {
    if (!file.empty()) files.push_back(file);
  }
  if (!files.empty()) {
    access->watched_ = std::make_unique<WatchedFiles>(
        std::move(files), [access = access.get()] { access->Reload(); });
  }
  RETURN_IF_ERROR(access->Load());  // later changes are noticed
  return access;
}

Access::Access(const AccessOptions& options) : options_(options) {}
Access::~Access() = default;

absl::StatusOr<AccessTokens> Access::ReadTokens() const {
  ASSIGN_OR_RETURN(const std::string text, ReadWatchedFile(options_.token_file));
  absl::StatusOr<AccessTokens> tokens = AccessTokens::Parse(text);
  if (tokens.ok()) return tokens;
  return absl::FailedPreconditionError(absl::StrCat(
      "--token_file (", options_.token_file, ") cannot be used: ", tokens.status().message()));
}

absl::Status Access::Load() {
  if (options_.uses_tls()) {
    ASSIGN_OR_RETURN(TlsMaterial material, ReadTlsMaterial(options_));
    const absl::MutexLock lock(&mutex_);
    material_ = std::make_shared<const TlsMaterial>(std::move(material));
    ++material_version_;
  }
  if (!options_.token_file.empty()) {
    ASSIGN_OR_RETURN(AccessTokens tokens, ReadTokens());
    const absl::MutexLock lock(&mutex_);
    tokens_ = std::make_shared<const AccessTokens>(std::move(tokens));
  }
  return absl::OkStatus();
}

// Independent of each other: an error in the certificates does not prevent new tokens.
void Access::Reload() {
  const auto log = [](absl::string_view what, const absl::Status& status) {
    LogLine(status.ok() ? LogLevel::kInfo : LogLevel::kWarning,
            status.ok() ? "reloaded" : "not_reloaded")
        .Add("what", what)
        .Add(status);
  };
  if (options_.uses_tls()) {
    absl::StatusOr<TlsMaterial> material = ReadTlsMaterial(options_);
    const absl::Status status = material.status();
    if (status.ok()) {
      const absl::MutexLock lock(&mutex_);
      material_ = std::make_shared<const TlsMaterial>(*std::move(material));
      ++material_version_;
    }
    log("certificates", status);
  }
  if (!options_.token_file.empty()) {
    absl::StatusOr<AccessTokens> tokens = ReadTokens();
    const absl::Status status = tokens.status();
    if (status.ok()) {
      const absl::MutexLock lock(&mutex_);
      tokens_ = std::make_shared<const AccessTokens>(*std::move(tokens));
    }
    log("tokens", status);
  }
}

std::shared_ptr<const AccessTokens> Access::tokens() const {
  const absl::MutexLock lock(&mutex_);
  return tokens_;
}

absl::Time Access::certificate_expires() const {
  const absl::MutexLock lock(&mutex_);
  return material_ == nullptr ? absl::InfiniteFuture() : material_->expires;
}

std::shared_ptr<grpc::ServerCredentials> Access::MakeCredentials() {
  ports_.push_back(std::make_unique<Port>());
  Port* const port = ports_.back().get();
  port->access = this;
  grpc_server_credentials* credentials = nullptr;
  if (options_.uses_tls()) {
    const auto asks = options_.tls_client_ca.empty()
                          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
    credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(asks, &Port::Fetch, port));
  } else {
    credentials = grpc_insecure_server_credentials_create();
  }
  if (!options_.token_file.empty()) {
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = &Port::Check, .destroy = nullptr, .state = port});
  }
  return std::make_shared<PortCredentials<grpc::ServerCredentials>>(credentials);
}

absl::Status Access::CheckToken(absl::string_view path,
                                std::optional<absl::string_view> authorization) {
  if (absl::StartsWith(path, kOpenToAll)) return absl::OkStatus();
  const std::optional<absl::string_view> token =
      authorization.has_value() ? BearerToken(*authorization) : std::nullopt;
  if (token.has_value() && tokens()->NameOf(*token).has_value()) return absl::OkStatus();
  ++refused_calls_;
  absl::Status status = absl::UnauthenticatedError(
      token.has_value()
          ? "This server does not know the token."
          : "This server requires a token: send the metadata \"authorization: Bearer TOKEN\".");
  LogLine(LogLevel::kInfo, "refuse")
      .Add("rpc", absl::ConsumePrefix(&path, kOurService) && path.size() < 32 ? path : "another")
      .Add(status);
  return status;
}

absl::StatusOr<std::string> Access::NameCaller(absl::string_view path,
                                               std::optional<absl::string_view> authorization,
                                               absl::string_view certificate_name) {
  if (options_.token_file.empty()) return std::string(certificate_name);
  RETURN_IF_ERROR(CheckToken(path, authorization));
  return tokens()->NameOf(*BearerToken(*authorization)).value_or("");
}

std::shared_ptr<const TlsMaterial> Access::tls_material() const {
  const absl::MutexLock lock(&mutex_);
  return material_;
}

std::string Access::CallerOf(const grpc::CallbackServerContext& context) const {
  if (const std::shared_ptr<const AccessTokens> known = tokens()) {
    const auto found = context.client_metadata().find("authorization");
    if (found == context.client_metadata().end()) return "";
    const std::optional<absl::string_view> token =
        BearerToken({found->second.data(), found->second.size()});
    return token.has_value() ? known->NameOf(*token).value_or("") : "";
  }
  if (options_.tls_client_ca.empty()) return "";
  const std::vector<grpc::string_ref> names = context.auth_context()->GetPeerIdentity();
  return names.empty() ? "" : std::string(names[0].data(), names[0].size());
}

}  // namespace opmill
