#include "client/connect_failure.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// End-to-end tests use this build's gRPC; these are messages of other versions.
TEST(ConnectFailure, ExplainsFailures) {
  EXPECT_EQ(ConnectFailure("host:1", false, "Connection refused."),
            "No server answers at host:1: Connection refused.");
  EXPECT_EQ(ConnectFailure("host:1", false,
                           "UNKNOWN: ipv4:10.0.0.1:1: Failed to connect to remote host: "
                           "Connection refused."),
            "No server answers at host:1: Connection refused.");
  EXPECT_EQ(ConnectFailure("dns:///host.example:1", false,
                           "The connection to the server failed: DNS resolution failed for "
                           "host.example:1: C-ares status is not ARES_SUCCESS: Domain name not "
                           "found."),
            "The name host.example cannot be resolved: Domain name not found.");
  EXPECT_THAT(ConnectFailure("host:1", true, "Connection refused."), StartsWith("No server"));
  EXPECT_EQ(ConnectFailure("host:1", false, "UNAVAILABLE: Socket closed"),
            "The server at host:1 closes clear-text connections at once: it probably accepts only "
            "TLS (UNAVAILABLE: Socket closed).");
  EXPECT_EQ(ConnectFailure("unix:/a", false, "UNKNOWN: unix:/a: No such file or directory."),
            "No server answers at unix:/a: No such file or directory.");
  EXPECT_EQ(ConnectFailure("host:1", false,
                           "INTERNAL: ipv4:10.0.0.1:1: Trying to connect an http1.x server."),
            "The server at host:1 speaks HTTP/1, not gRPC (INTERNAL: ipv4:10.0.0.1:1: Trying to "
            "connect an http1.x server).");
  EXPECT_THAT(ConnectFailure("host:1", true, "SSL routines:OPENSSL_internal:WRONG_VERSION_NUMBER"),
              HasSubstr("uses clear text, not TLS"));
  EXPECT_THAT(ConnectFailure("host:1", true, "OPENSSL_internal:CERTIFICATE_VERIFY_FAILED"),
              HasSubstr("was not accepted"));
  EXPECT_THAT(ConnectFailure("host:1", true, "recvmsg:Connection reset by peer"),
              HasSubstr("probably requires a client certificate"));
}

}  // namespace
}  // namespace opmill
