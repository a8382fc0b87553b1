#include "server/config/connection_plan.h"

#include <string>

#include "gtest/gtest.h"

namespace opmill {
namespace {

uint32_t ConnectionsWith(uint64_t open_files, uint32_t max_connections = 0) {
  Limits limits = {.max_connections = max_connections};
  EXPECT_EQ(LimitConnections(open_files, /*serves_http=*/false, limits), absl::OkStatus())
      << open_files;
  return limits.max_connections;
}

std::string PlanRefusal(uint64_t open_files, uint32_t max_connections) {
  Limits limits = {.max_connections = max_connections};
  const absl::Status status = LimitConnections(open_files, /*serves_http=*/false, limits);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST(ConnectionPlan, TheDefaultAdaptsToTheFilesOfTheProcess) {
  EXPECT_EQ(ConnectionsWith(UINT64_MAX), 1024u);
  EXPECT_EQ(ConnectionsWith(FilesFor(0, /*serves_http=*/false)), 1024u);
  EXPECT_EQ(ConnectionsWith(FilesFor(0, /*serves_http=*/false) - 1), 1023u);
  EXPECT_EQ(ConnectionsWith(1024), 256u);
  EXPECT_EQ(ConnectionsWith(512 + 2 * 16), 16u);
  EXPECT_EQ(PlanRefusal(512 + 2 * 16 - 1, 0),
            "--max_connections is at least 16 by default; the process may open 543 files, of which "
            "512 are for itself and each connection takes 2. Allow it more (ulimit -n), or fewer "
            "connections.");
}

TEST(ConnectionPlan, AnExplicitNumberIsTakenOrRefused) {
  EXPECT_EQ(ConnectionsWith(1024, 256), 256u);
  EXPECT_EQ(ConnectionsWith(514, 1), 1u);
  EXPECT_EQ(ConnectionsWith(UINT64_MAX, UINT32_MAX), UINT32_MAX);
  EXPECT_EQ(PlanRefusal(1024, 257),
            "--max_connections is 257; the process may open 1024 files, of which 512 are for "
            "itself and each connection takes 2. Allow it more (ulimit -n), or fewer connections.");
}

}  // namespace
}  // namespace opmill
