// Uses more kernels than a server may have live: they are created and released, every result is
// right, and neither memory nor compilation grows.
#include <cstdint>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "gtest/gtest.h"
#include "tests/soak/soak_case.h"
#include "tests/support/quantities.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

// The smallest memory limit with the default limits, and the number of live kernels that
// server/config/memory_plan.cc allows for it.
constexpr uint64_t kMemoryLimit = 704 * kMebibyte;
constexpr uint64_t kMaxLiveKernels = 42;
// Kernels of the operator that was just compiled, and of those being evicted.
constexpr uint64_t kSlack = 16;

class LiveKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    auto server =
        ServerProcess::Start({"--device=software", absl::StrCat("--memory_limit=", kMemoryLimit),
                              absl::StrCat("--shader_cache=", cache_.utf8())});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    auto client = Client::Connect(server_->address(), {.timeout = absl::Minutes(5)});
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = std::make_unique<Client>(*std::move(client));
  }

  void ExpectRightAnswers() {
    for (const std::unique_ptr<SoakCase>& c : cases_.small()) {
      MemorySink sink;
      const auto end = client_->Execute(c->desc(), c->bytes(), sink);
      ASSERT_TRUE(end.ok()) << end.status() << " of " << c->line();
      ASSERT_EQ(c->FindMistake(sink.outputs()), "") << c->line();
    }
  }

  v1::DeviceStatistics Device() {
    const auto statistics = client_->GetStatistics();
    EXPECT_TRUE(statistics.ok()) << statistics.status();
    return statistics.ok() ? statistics->device() : v1::DeviceStatistics();
  }

  const ScratchDirectory cache_;
  SoakCases cases_{/*seed=*/1, /*count=*/70, /*large=*/false};
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(LiveKernels, ComeAndGoInBoundedMemory) {
  v1::DeviceStatistics first;
  uint64_t resident = 0;
  for (int round = 1; round <= 3; ++round) {
    ExpectRightAnswers();
    if (HasFatalFailure()) return;
    const v1::DeviceStatistics device = Device();
    std::printf("round %d: %lu kernels made live, %lu compiled, %lu live; %lu MiB resident\n",
                round, device.pipelines_created(), device.shaders_compiled(), device.live_kernels(),
                server_->MemoryBytes() / kMebibyte);
    EXPECT_LE(device.live_kernels(), kMaxLiveKernels + kSlack);
    if (round == 1) {
      first = device;
      resident = server_->MemoryBytes();
      // Otherwise the test would prove nothing.
      ASSERT_GT(device.shaders_compiled(), kMaxLiveKernels + kSlack);
    }
    EXPECT_EQ(device.shaders_compiled(), first.shaders_compiled());
  }
  // Each kernel that was not released would have taken about 1 MiB.
  EXPECT_GT(Device().pipelines_created(), first.pipelines_created() + 2 * kMaxLiveKernels);
  EXPECT_LT(server_->MemoryBytes(), resident + 48 * kMebibyte);
}

}  // namespace
}  // namespace opmill
