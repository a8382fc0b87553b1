#include <optional>

#include "gtest/gtest.h"
#include "kernels/base/server_address.h"

namespace opmill {
namespace {

TEST(IsLoopback, IsTrueOnlyForLocalAddresses) {
  for (const char* address : {"127.0.0.1:1", "127.255.0.10:65535", "localhost:50051", "[::1]:0",
                              "unix:/run/opmill.sock"}) {
    EXPECT_TRUE(IsLoopback(address)) << address;
  }
  for (const char* address :
       {"127.0.0.1.evil.example:1", "127.evil.example:1", "128.0.0.1:1", "127.0.0.256:1",
        "127.0.0:1", "0.0.0.0:1", "[::]:1", "localhost.example:1", ":1", "127..0.1:1",
        // The resolver reads these differently: 0127 is 87.
        "0127.0.0.1:1", "127.0.0.01:1", "127.0.\t0.1:1", " 127.0.0.1:1", "127.0.0.+1:1",
        "127.0.0.0x1:1"}) {
    EXPECT_FALSE(IsLoopback(address)) << address;
  }
}

TEST(PortOf, IsTheNumberBehindTheLastColon) {
  EXPECT_EQ(PortOf("127.0.0.1:50051"), 50051u);
  EXPECT_EQ(PortOf("[::1]:0"), 0u);
  EXPECT_EQ(PortOf("name:65535"), 65535u);
  for (const char* address : {"name", "name:", ":1", "name:65536", "name:-1", "name:+1", "name: 1",
                              "name:1 ", "name:01", "name:http", "unix:1"}) {
    EXPECT_EQ(PortOf(address), std::nullopt) << address;
  }
}

}  // namespace
}  // namespace opmill
