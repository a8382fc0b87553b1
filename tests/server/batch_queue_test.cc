#include "server/execution/batch_queue.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/any_execution.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BatchQueueTest : public ::testing::Test {
 protected:
  static constexpr absl::Duration kDelay = absl::Milliseconds(10);

  void Restart(BatchOptions options) { queue_ = std::make_unique<BatchQueue>(std::move(options)); }

  // Returns its number; `caller` is any number.
  size_t Add(uint32_t rows, size_t caller = 0, absl::Duration deadline = absl::InfiniteDuration(),
             int32_t priority = 0) {
    executions_.push_back(AnyExecution());
    queue_->Add(executions_.back(), reinterpret_cast<const CallerAccount*>(caller + 1), priority,
                rows, now_ + deadline, now_);
    return executions_.size() - 1;
  }
  // The numbers of the executions in the next batch.
  std::vector<size_t> Take() {
    BatchQueue::Next next = queue_->Take(now_);
    again_ = next.again;
    std::vector<size_t> numbers;
    for (const auto& execution : next.batch) {
      numbers.push_back(static_cast<size_t>(
          std::find(executions_.begin(), executions_.end(), execution) - executions_.begin()));
    }
    return numbers;
  }

  absl::Time now_ = absl::UnixEpoch();
  absl::Time again_;
  std::unique_ptr<BatchQueue> queue_ =
      std::make_unique<BatchQueue>(BatchOptions{.max_rows = 8, .max_delay = kDelay});
  std::vector<std::shared_ptr<Execution>> executions_;
};

TEST_F(BatchQueueTest, WithoutDelayTwoRunAtOnceAndOthersGatherMeanwhile) {
  Restart({.max_rows = 8});
  Add(1);
  EXPECT_THAT(Take(), ElementsAre(0));
  Add(1);
  EXPECT_THAT(Take(), ElementsAre(1));
  Add(1);
  Add(2);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(again_, absl::InfiniteFuture());
  queue_->RunEnded();
  EXPECT_THAT(Take(), ElementsAre(2, 3));
  queue_->RunEnded();
  EXPECT_THAT(Take(), IsEmpty());
}

TEST_F(BatchQueueTest, TheFirstWaitsForTheDelayAndNoLonger) {
  Add(1);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(again_, now_ + kDelay);
  now_ += kDelay / 2;
  Add(1);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(again_, now_ + kDelay / 2);
  now_ += kDelay / 2;
  EXPECT_THAT(Take(), ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, AFullBatchDoesNotWait) {
  for (int i = 0; i < 7; ++i) Add(1);
  EXPECT_THAT(Take(), IsEmpty());
  Add(2);
  EXPECT_THAT(Take(), ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(queue_->rows(), 2u);
}

TEST_F(BatchQueueTest, TheLargestPreferredNumberIsTaken) {
  Restart({.max_rows = 8, .preferred_rows = {2, 4}, .max_delay = kDelay});
  for (int i = 0; i < 5; ++i) Add(1);
  EXPECT_THAT(Take(), ElementsAre(0, 1, 2, 3));
  queue_->RunEnded();
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(again_, now_ + kDelay);
  Add(1);
  EXPECT_THAT(Take(), ElementsAre(4, 5));
}

TEST_F(BatchQueueTest, ABatchIsSmallerIfTheProgramForAllWouldBeHalfEmpty) {
  for (int i = 0; i < 5; ++i) Add(1);
  now_ += kDelay;
  EXPECT_THAT(Take(), ElementsAre(0, 1, 2, 3));  // 5 of 8 rows
  EXPECT_THAT(Take(), ElementsAre(4));
  queue_->RunEnded();
  for (int i = 0; i < 6; ++i) Add(1);
  now_ += kDelay;
  EXPECT_THAT(Take(), ElementsAre(5, 6, 7, 8, 9, 10));  // 6 of 8
}

TEST_F(BatchQueueTest, MoreRowsThanThePreferredNumberRunAlone) {
  Restart({.max_rows = 8, .preferred_rows = {2}, .max_delay = kDelay});
  Add(5);
  Add(1);
  EXPECT_THAT(Take(), ElementsAre(0));
}

TEST_F(BatchQueueTest, HalfOfTheTimeToTheDeadlineIsTheMostThatOneWaits) {
  Add(1);
  Add(1, 0, kDelay);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(again_, now_ + kDelay / 2);
  now_ += kDelay / 2;
  EXPECT_THAT(Take(), ElementsAre(0, 1));
}

TEST_F(BatchQueueTest, WhatIsRemovedDoesNotCount) {
  const size_t first = Add(4);
  Add(4);
  queue_->Remove(executions_[first].get());
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(queue_->rows(), 4u);
  now_ += kDelay;
  EXPECT_THAT(Take(), ElementsAre(1));
  queue_->Remove(executions_[1].get());  // has been taken
  EXPECT_EQ(queue_->rows(), 0u);
}

TEST_F(BatchQueueTest, CallersTakeTurnsAndPrioritiesOrderThoseOfOne) {
  Restart({.max_rows = 4});
  for (int i = 0; i < 8; ++i) Add(2, 0);
  Add(2, 1, absl::InfiniteDuration(), 0);
  Add(2, 1, absl::InfiniteDuration(), 1);
  EXPECT_THAT(Take(), ElementsAre(0, 1));
  queue_->RunEnded();
  EXPECT_THAT(Take(), ElementsAre(9, 8));
}

}  // namespace
}  // namespace opmill
