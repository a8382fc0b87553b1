// A C++ client of several servers, whose tensors live on one each.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "client/client.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

class TensorServersTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { grpc_init(); }

  void SetUp() override {
    for (auto& server : servers_) {
      auto started = ServerProcess::Start({"--address=127.0.0.1:0", "--device=cpu"});
      ASSERT_TRUE(started.ok()) << started.status();
      server = *std::move(started);
    }
    client_ = ConnectTo(absl::StrCat(address(0), ",", address(1)));
  }

  const std::string& address(size_t server) const { return servers_[server]->address(); }

  static std::unique_ptr<Client> ConnectTo(const std::string& target) {
    absl::StatusOr<Client> client = Client::Connect(target, {.max_attempts = 1});
    EXPECT_TRUE(client.ok()) << client.status();
    return std::make_unique<Client>(*std::move(client));
  }

  static v1::OperatorDesc Identity(size_t rows) {
    v1::OperatorDesc desc;
    desc.mutable_named()->set_name("identity");
    v1::TensorDesc& input = *desc.mutable_named()->add_inputs();
    input.set_data_type(v1::DATA_TYPE_FLOAT32);
    input.add_sizes(static_cast<uint32_t>(rows));
    return desc;
  }

  static absl::Status Keep(Client& client, const std::string& name, const std::vector<float>& rows,
                           v1::ResidentOutput::Kind kind = v1::ResidentOutput::KIND_PUT) {
    v1::ResidentOutput to;
    to.set_name(name);
    to.set_kind(kind);
    if (kind == v1::ResidentOutput::KIND_PUT) to.set_capacity_rows(rows.size() + 10);
    return client
        .Execute(Identity(rows.size()), std::as_bytes(std::span(rows)), {.resident_outputs = {to}})
        .status();
  }

  static absl::StatusOr<std::vector<float>> Read(Client& client, const std::string& name,
                                                 size_t rows) {
    v1::ResidentInput from;
    from.set_name(name);
    const auto result =
        client.Execute(Identity(rows), absl::Span<const std::byte>(), {.resident_inputs = {from}});
    if (!result.ok()) return result.status();
    std::vector<float> elements(rows);
    std::memcpy(elements.data(), result->outputs[0].bytes.data(), rows * sizeof(float));
    return elements;
  }

  std::array<std::unique_ptr<ServerProcess>, 2> servers_;
  std::unique_ptr<Client> client_;
};

TEST_F(TensorServersTest, CallsGoWhereTheTensorIs) {
  const std::vector<float> large(1 << 19, 3);  // in chunks
  ASSERT_TRUE(Keep(*client_, "d", large).ok());
  const std::vector<std::string> names = {"a", "b", "c"};
  for (size_t i = 0; i < names.size(); ++i) {
    ASSERT_TRUE(Keep(*client_, names[i], {static_cast<float>(i), 7}).ok());
  }
  for (int round = 0; round < 4; ++round) {
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_EQ(*Read(*client_, names[i], 2), (std::vector<float>{static_cast<float>(i), 7}));
    }
    EXPECT_EQ(*Read(*client_, "d", large.size()), large);
  }
  // One after the other, and in place of the old one.
  ASSERT_TRUE(Keep(*client_, "a", {5, 5}).ok());
  for (size_t server = 0; server < 2; ++server) {
    EXPECT_EQ(ConnectTo(address(server))->ListTensors()->tensors_size(), 2) << server;
  }
  const v1::ListTensorsResponse all = *client_->ListTensors();
  ASSERT_EQ(all.tensors_size(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(all.tensors(i).name(), std::string(1, "abcd"[i]));
}

TEST_F(TensorServersTest, AnotherClientAsks) {
  for (const char* const name : {"a", "b"}) ASSERT_TRUE(Keep(*client_, name, {1, 2}).ok());
  const auto other = ConnectTo(absl::StrCat(address(1), ",", address(0)));
  for (const char* const name : {"a", "b"}) {
    ASSERT_TRUE(Keep(*other, name, {3}, v1::ResidentOutput::KIND_APPEND).ok());
    EXPECT_EQ(*Read(*other, name, 3), (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(other->ListTensors(name)->tensors(0).tensor().sizes(0), 3u);
  }
  ASSERT_TRUE(other->DeleteTensor("a").ok());
  // The first client still knows where it was.
  const absl::Status gone = Read(*client_, "a", 3).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(gone.message().substr(gone.message().find(": ")), ": There is no tensor \"a\" here.");
  const std::string asked = absl::StrCat(address(0), ", ", address(1));
  for (const absl::Status& status :
       {Read(*client_, "a", 3).status(), client_->ListTensors("a").status(),
        client_->DeleteTensor("a"), Keep(*client_, "a", {3}, v1::ResidentOutput::KIND_APPEND)}) {
    EXPECT_EQ(status, absl::NotFoundError(absl::StrCat(
                          "No server has a tensor \"a\"; these were asked: ", asked, ".")));
  }
}

TEST_F(TensorServersTest, TensorsOfTwoServers) {
  for (const char* const name : {"a", "b"}) ASSERT_TRUE(Keep(*client_, name, {1, 2}).ok());
  v1::ResidentInput from;
  from.set_name("a");
  v1::ResidentOutput to;
  to.set_name("b");
  to.set_kind(v1::ResidentOutput::KIND_PUT);
  EXPECT_EQ(client_
                ->Execute(Identity(2), absl::Span<const std::byte>(),
                          {.resident_inputs = {from}, .resident_outputs = {to}})
                .status(),
            absl::InvalidArgumentError(absl::StrCat(
                "A call computes on one server, but names tensors of several: \"a\" on ",
                address(0), ", \"b\" on ", address(1), ".")));
}

TEST_F(TensorServersTest, WhatTheOthersHaveStaysInReach) {
  for (const char* const name : {"a", "b"}) ASSERT_TRUE(Keep(*client_, name, {1, 2}).ok());
  servers_[0]->Signal(SIGKILL);
  ASSERT_EQ(servers_[0]->WaitForExit(), -SIGKILL);
  EXPECT_EQ(*Read(*client_, "b", 2), (std::vector<float>{1, 2}));
  EXPECT_EQ(Read(*client_, "a", 2).status().code(), absl::StatusCode::kUnavailable);
  const auto another = ConnectTo(absl::StrCat(address(0), ",", address(1)));
  EXPECT_EQ(*Read(*another, "b", 2), (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace opmill
