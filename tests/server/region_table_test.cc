#include "server/shared_memory/region_table.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kMostRegions = 128;

class RegionTableTest : public testing::Test {
 protected:
  using Connection = std::shared_ptr<int>;

  static SharedMemoryCaller From(const std::string& name, const Connection& connection) {
    return {.name = name, .identity = name, .connection = connection};
  }
  absl::Status Add(const SharedMemoryCaller& caller, const std::string& region) {
    return table_.Add(caller, {.name = region, .byte_size = 1}, [this](const SharedRegion& each) {
      ++examined_;
      return each.name != missing_;
    });
  }
  // Returns how many there was room for.
  uint32_t AddAll(const SharedMemoryCaller& caller) {
    uint32_t count = 0;
    while (Add(caller, absl::StrCat("r", count)).ok()) ++count;
    return count;
  }

  RegionTable table_{kMostRegions};
  std::string missing_;  // a region whose segment is gone
  int examined_ = 0;     // segments
};

TEST_F(RegionTableTest, OneAloneMayHaveAllAndAnotherStillGetsSome) {
  const Connection ann = std::make_shared<int>();
  const Connection bob = std::make_shared<int>();
  EXPECT_EQ(AddAll(From("ann", ann)), kMostRegions);
  EXPECT_EQ(std::string(Add(From("ann", ann), "x").message()),
            "There is no room for another region of shared memory: the limit is 128 "
            "(max_shared_memory_regions).");
  EXPECT_EQ(AddAll(From("bob", bob)), kMostRegions / 64) << "beyond the limit";
  EXPECT_EQ(table_.Of("ann").size(), kMostRegions) << "she is connected";
}

TEST_F(RegionTableTest, OneWithMoreThanItsShareLeavesRoomForOthers) {
  const Connection ann = std::make_shared<int>();
  const Connection bob = std::make_shared<int>();
  EXPECT_EQ(Add(From("bob", bob), "x"), absl::OkStatus());
  EXPECT_EQ(AddAll(From("ann", ann)), kMostRegions / 8 * 7 - 1);
  EXPECT_THAT(std::string(Add(From("ann", ann), "x").message()),
              HasSubstr("and the last 16 are for other callers."));
  EXPECT_EQ(Add(From("bob", bob), "y"), absl::OkStatus());
}

TEST_F(RegionTableTest, OneThatIsGoneLosesItsRegionsWhenOthersNeedRoom) {
  Connection ann = std::make_shared<int>();
  const Connection bob = std::make_shared<int>();
  EXPECT_EQ(AddAll(From("ann", ann)), kMostRegions);
  ann.reset();
  EXPECT_EQ(table_.Of("ann").size(), kMostRegions) << "nothing needs the room";
  for (uint32_t i = 0; i < kMostRegions / 2; ++i) {
    EXPECT_EQ(Add(From("bob", bob), absl::StrCat("b", i)), absl::OkStatus());
  }
  EXPECT_LE(table_.Of("ann").size(), kMostRegions / 2);
}

TEST_F(RegionTableTest, ACallersOwnConnectionsCountOneByOne) {
  Connection first = std::make_shared<int>();
  const Connection second = std::make_shared<int>();
  EXPECT_EQ(AddAll(From("", first)), kMostRegions);
  EXPECT_EQ(table_.Use(From("", second), "r7").status(), absl::OkStatus());
  first.reset();
  EXPECT_EQ(Add(From("", second), "x"), absl::OkStatus());
  EXPECT_EQ(table_.Of("").size(), 2u) << "the one that the second uses stays";
}

TEST_F(RegionTableTest, KeepsRegionsOfConnectionsThatItDoesNotKnow) {
  EXPECT_EQ(AddAll({}), kMostRegions);
  EXPECT_FALSE(Add({}, "x").ok());
  EXPECT_EQ(table_.Of("").size(), kMostRegions);
}

TEST_F(RegionTableTest, LooksAtAFewSegmentsForEachRefusal) {
  EXPECT_EQ(AddAll({}), kMostRegions);
  examined_ = 0;
  EXPECT_FALSE(Add({}, "x").ok());
  EXPECT_LE(examined_, 16);
  missing_ = "r99";
  int tries = 1;
  while (!Add({}, "x").ok()) ++tries;
  EXPECT_LE(tries, static_cast<int>(kMostRegions / 16)) << "and at all of them in turn";
  EXPECT_FALSE(table_.Use({}, "r99").ok());
}

TEST_F(RegionTableTest, ForgetsCallersWithoutRegions) {
  EXPECT_EQ(Add(From("bob", nullptr), "x"), absl::OkStatus());
  EXPECT_TRUE(table_.Remove("bob", "x"));
  EXPECT_FALSE(table_.Remove("bob", "x"));
  const Connection ann = std::make_shared<int>();
  EXPECT_EQ(AddAll(From("ann", ann)), kMostRegions);
  table_.RemoveAll("ann");
  EXPECT_EQ(AddAll(From("ann", ann)), kMostRegions);
}

}  // namespace
}  // namespace opmill
