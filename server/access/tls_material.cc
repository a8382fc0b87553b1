#include "server/access/tls_material.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/base/errors.h"
#include "server/access/watched_files.h"

namespace opmill {
namespace {

struct Deleter {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

// OpenSSL would ask for a password on the terminal.
int NoPassword(char*, int, int, void*) { return -1; }

absl::Status Bad(absl::string_view flag, absl::string_view file, absl::string_view what) {
  ERR_clear_error();
  return absl::FailedPreconditionError(absl::StrCat("--", flag, " (", file, ") ", what));
}

// OpenSSL's reason for the last failure.
std::string Reason() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "unknown" : reason;
}

Owned<BIO> Reader(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

absl::Time ToTime(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return absl::InfinitePast();
  return absl::FromTM(parts, absl::UTCTimeZone());
}

// Returns the first certificate of the file, the server's own. Checks that all others are readable.
absl::StatusOr<Owned<X509>> ReadCertificates(absl::string_view flag, absl::string_view file,
                                             const std::string& text) {
  const Owned<BIO> reader = Reader(text);
  Owned<X509> first(PEM_read_bio_X509(reader.get(), nullptr, &NoPassword, nullptr));
  if (first == nullptr) return Bad(flag, file, "holds no certificate in PEM.");
  while (Owned<X509>(PEM_read_bio_X509(reader.get(), nullptr, &NoPassword, nullptr))) {
  }
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return Bad(flag, file, "holds a certificate that cannot be read, after one that can be.");
  }
  ERR_clear_error();
  return first;
}

// Loads them as gRPC will.
absl::Status Load(const AccessOptions& files, X509* certificate, EVP_PKEY* key) {
  const Owned<SSL_CTX> context(SSL_CTX_new(TLS_method()));
  if (context == nullptr) return absl::InternalError("OpenSSL gives no context.");
  if (SSL_CTX_use_certificate(context.get(), certificate) != 1) {
    return Bad("tls_cert", files.tls_cert, absl::StrCat("cannot be used: ", Reason(), "."));
  }
  if (SSL_CTX_use_PrivateKey(context.get(), key) != 1) {
    return Bad("tls_key", files.tls_key, absl::StrCat("cannot be used: ", Reason(), "."));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TlsMaterial> ReadTlsMaterial(const AccessOptions& files) {
  TlsMaterial material;
  ASSIGN_OR_RETURN(material.certificates, ReadWatchedFile(files.tls_cert));
  ASSIGN_OR_RETURN(material.key, ReadWatchedFile(files.tls_key));
  ERR_clear_error();
  ASSIGN_OR_RETURN(const Owned<X509> own,
                   ReadCertificates("tls_cert", files.tls_cert, material.certificates));
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(Reader(material.key).get(), nullptr, &NoPassword, nullptr));
  if (key == nullptr) {
    return Bad("tls_key", files.tls_key, "holds no key in PEM, or an encrypted one.");
  }
  if (X509_check_private_key(own.get(), key.get()) != 1) {
    return Bad("tls_key", files.tls_key,
               absl::StrCat("is not the key of the certificate in ", files.tls_cert, "."));
  }
  const absl::Time now = absl::Now();
  const absl::Time begins = ToTime(X509_get0_notBefore(own.get()));
  material.expires = ToTime(X509_get0_notAfter(own.get()));
  if (begins > now || material.expires <= now) {
    return Bad("tls_cert", files.tls_cert,
               absl::StrCat("holds a certificate that is valid from ", absl::FormatTime(begins),
                            " to ", absl::FormatTime(material.expires), ", and not now."));
  }
  RETURN_IF_ERROR(Load(files, own.get(), key.get()));
  if (!files.tls_client_ca.empty()) {
    ASSIGN_OR_RETURN(material.client_authorities, ReadWatchedFile(files.tls_client_ca));
    RETURN_IF_ERROR(
        ReadCertificates("tls_client_ca", files.tls_client_ca, material.client_authorities)
            .status());
  }
  return material;
}

}  // namespace opmill
