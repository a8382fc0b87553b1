#include "server/execution/fair_queue.h"

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opmill {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

using Queue = FairQueue<char, std::string>;

bool Any(char /*flow*/, const std::string& /*item*/) { return true; }

std::vector<std::string> TakeAll(Queue& queue) {
  std::vector<std::string> taken;
  while (const auto item = queue.Take(Any)) taken.push_back(*item);
  return taken;
}

TEST(FairQueue, KeepsTheOrderOfOneFlow) {
  Queue queue(10);
  EXPECT_EQ(queue.Take(Any), std::nullopt);
  queue.Push('a', 0, 100, "a1");
  queue.Push('a', 0, 1, "a2");
  queue.Push('a', 0, 30, "a3");
  EXPECT_THAT(TakeAll(queue), ElementsAre("a1", "a2", "a3"));
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, TakesTheGreatestPriorityOfAFlowFirst) {
  Queue queue(10);
  queue.Push('a', 0, 10, "a1");
  queue.Push('a', -1, 10, "low");
  queue.Push('a', 5, 10, "high");
  queue.Push('b', 0, 10, "b1");
  queue.Push('a', 0, 10, "a2");
  EXPECT_THAT(TakeAll(queue), ElementsAre("high", "b1", "a1", "a2", "low"));
}

TEST(FairQueue, GivesFlowsTheSameCost) {
  Queue queue(4);
  for (int i = 1; i <= 3; ++i) queue.Push('a', 0, 4, absl::StrCat("a", i));
  for (int i = 1; i <= 9; ++i) queue.Push('b', 0, 1, absl::StrCat("b", i));
  EXPECT_THAT(TakeAll(queue),
              ElementsAre("a1", "b1", "b2", "b3", "b4", "a2", "b5", "b6", "b7", "b8", "a3", "b9"));
}

TEST(FairQueue, ALittleUserPassesALongQueue) {
  Queue queue(4);
  for (int i = 0; i < 100; ++i) queue.Push('a', 0, 3, "a");
  EXPECT_EQ(queue.Take(Any), "a");
  queue.Push('b', 0, 1, "b");
  // One more at most, with what a has left of its turn.
  std::vector<std::string> next;
  for (int i = 0; i < 2; ++i) next.push_back(*queue.Take(Any));
  EXPECT_THAT(next, Contains("b"));
}

TEST(FairQueue, AHugeItemWaitsForItsCostOfOthers) {
  Queue queue(4);
  queue.Push('a', 0, 40, "huge");
  for (int i = 0; i < 100; ++i) queue.Push('b', 0, 1, "b");
  int before = 0;
  while (queue.Take(Any) != "huge") ++before;
  EXPECT_GE(before, 36);
  EXPECT_LE(before, 44);
}

TEST(FairQueue, PassesOverAFlowThatMayNotGo) {
  Queue queue(4);
  queue.Push('a', 0, 1, "a");
  queue.Push('b', 0, 9, "b");
  const auto without_a = [](char flow, const std::string&) { return flow != 'a'; };
  EXPECT_EQ(queue.Take(without_a), "b");
  EXPECT_EQ(queue.Take(without_a), std::nullopt);
  EXPECT_EQ(queue.Take(Any), "a");
}

TEST(FairQueue, TheNextItemWaitsForRoom) {
  Queue queue(4);
  queue.Push('a', 0, 4, "large");
  queue.Push('b', 0, 4, "small");
  const auto has_room = [](const std::string& item) { return item != "large"; };
  EXPECT_EQ(queue.Take(Any, has_room), std::nullopt) << "b does not pass a";
  EXPECT_THAT(TakeAll(queue), ElementsAre("large", "small"));
}

TEST(FairQueue, RemovesFromAnyPlace) {
  Queue queue(4);
  const Queue::Place first = queue.Push('a', 0, 1, "a1");
  queue.Push('a', 0, 1, "a2");
  const Queue::Place only = queue.Push('b', 1, 1, "b");
  queue.Remove(only);
  EXPECT_EQ(queue.flows(), 1u);
  queue.Remove(first);
  EXPECT_THAT(TakeAll(queue), ElementsAre("a2"));
}

// Random sequences. Of two flows that have items all the time and may go, neither gets ahead of the
// other by more than a quantum and the costs of two items; nothing is lost, and each flow keeps its
// order.
TEST(FairQueue, IsFairInEveryOrder) {
  constexpr uint64_t kQuantum = 16;
  constexpr uint64_t kMostCost = 50;
  using Numbers = FairQueue<int, int>;
  struct Item {
    int flow = 0;
    int32_t priority = 0;
    uint64_t cost = 0;
    Numbers::Place place;
  };
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](uint32_t n) { return static_cast<int>(random() % n); };
    Numbers queue(kQuantum);
    std::map<int, Item> items;  // in the queue
    std::map<int, uint64_t> served;
    std::vector<int> backlogged = {0, 1, 2};  // always have an item
    int next = 0;
    const auto push = [&](int flow) {
      Item item{.flow = flow, .priority = below(3), .cost = 1 + random() % kMostCost};
      item.place = queue.Push(flow, item.priority, item.cost, next);
      items[next++] = item;
    };
    const auto count_of = [&](int flow) {
      int count = 0;
      for (const auto& [id, item] : items) count += item.flow == flow ? 1 : 0;
      return count;
    };
    for (int step = 0; step < 500; ++step) {
      for (const int flow : backlogged) {
        while (count_of(flow) < 3) push(flow);
      }
      const int event = below(10);
      if (event < 3) {
        push(3 + below(4));
      } else if (event == 3) {
        const int flow = 3 + below(4);  // removals from the backlogged are no use of the device
        for (const auto& [id, item] : items) {
          if (item.flow != flow) continue;
          queue.Remove(item.place);
          items.erase(id);
          break;
        }
      } else {
        const int barred = 3 + below(8);
        const auto taken = queue.Take([barred](int flow, int /*item*/) { return flow != barred; });
        ASSERT_TRUE(taken.has_value()) << "seed " << seed;
        ASSERT_TRUE(items.contains(*taken)) << "seed " << seed;
        const Item item = items[*taken];
        ASSERT_NE(item.flow, barred);
        for (const auto& [id, other] : items) {
          if (other.flow != item.flow || id == *taken) continue;
          ASSERT_GE(item.priority, other.priority) << "seed " << seed;
          if (item.priority == other.priority) {
            ASSERT_LT(*taken, id) << "seed " << seed;
          }
        }
        items.erase(*taken);
        served[item.flow] += item.cost;
        for (const int a : backlogged) {
          for (const int b : backlogged) {
            ASSERT_LE(served[a], served[b] + kQuantum + 2 * kMostCost)
                << "seed " << seed << ", step " << step;
          }
        }
      }
    }
    while (queue.Take([](int, int) { return true; }).has_value()) ++served[-1];
    EXPECT_EQ(served[-1], items.size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace opmill
