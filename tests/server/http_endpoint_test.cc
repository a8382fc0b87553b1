// Tests with pages larger than the socket buffers; tests/end_to_end/test_http_endpoint.py has the
// rest.
#include "server/metrics/http_endpoint.h"

#include <array>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/base/server_address.h"
#include "server/network/system_socket.h"

namespace opmill {
namespace {

constexpr size_t kBodyBytes = 32 << 20;

class HttpEndpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto endpoint = HttpEndpoint::Listen(
        "127.0.0.1:0",
        {{"/large", [] { return HttpEndpoint::Answer{.body = std::string(kBodyBytes, 'x')}; }}});
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
  }

  SystemSocket Ask() const {
    const SystemSocket connection = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(PortOf(endpoint_->address()).value_or(0)));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    constexpr absl::string_view kRequest = "GET /large HTTP/1.1\r\n\r\n";
    EXPECT_EQ(Send(connection, kRequest.data(), kRequest.size()), kRequest.size());
    return connection;
  }

  // Reads until the end or an error.
  static std::string ReadAll(SystemSocket connection) {
    std::string text;
    std::array<char, 65536> bytes;
    for (std::ptrdiff_t count = 1; count > 0;) {
      count = Receive(connection, bytes.data(), bytes.size());
      if (count > 0) text.append(bytes.data(), static_cast<size_t>(count));
    }
    return text;
  }

  std::unique_ptr<HttpEndpoint> endpoint_;
};

TEST_F(HttpEndpointTest, SendsAPageInPiecesToASlowReader) {
  const SystemSocket connection = Ask();
  absl::SleepFor(absl::Seconds(1));
  const std::string text = ReadAll(connection);
  CloseSocket(connection);
  EXPECT_TRUE(absl::StrContains(text, absl::StrCat("Content-Length: ", kBodyBytes, "\r\n")));
  EXPECT_EQ(text.size() - text.find("\r\n\r\n") - 4, kBodyBytes);
}

TEST_F(HttpEndpointTest, ClosesAConnectionThatDoesNotReadForFiveSeconds) {
  const SystemSocket connection = Ask();
  absl::SleepFor(absl::Seconds(6));
  const std::string text = ReadAll(connection);
  CloseSocket(connection);
  EXPECT_TRUE(absl::StartsWith(text, "HTTP/1.1 200 OK\r\n"));
  EXPECT_LT(text.size(), kBodyBytes);
}

TEST_F(HttpEndpointTest, EndsWhileAPageIsBeingRead) {
  const SystemSocket connection = Ask();
  absl::SleepFor(absl::Milliseconds(200));
  const absl::Time began = absl::Now();
  endpoint_.reset();
  EXPECT_LT(absl::Now() - began, absl::Seconds(4));  // it does not wait for the reader
  CloseSocket(connection);
}

}  // namespace
}  // namespace opmill
