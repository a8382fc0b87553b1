// A queue of items that belong to flows, which take turns by deficit round robin.
#ifndef OPMILL_SERVER_EXECUTION_FAIR_QUEUE_H_
#define OPMILL_SERVER_EXECUTION_FAIR_QUEUE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

namespace opmill {

// In each round, a flow may take items with a total cost of `quantum`. While it has items, it keeps
// what it does not use for the next round. All flows therefore get the same cost per time, whatever
// the costs of their items, and a flow that uses less than its share waits for at most one quantum
// of each other flow. Within a flow, items are ordered by priority, the greatest first, and then by
// time.
//
// Not thread-safe. Push and Remove take constant time, apart from the search for the priority. Take
// is O(flows).
template <typename Flow, typename Item>
class FairQueue {
 public:
  class Place;

 private:
  struct Entry {
    Item item;
    uint64_t cost = 0;
  };
  using Line = std::list<Entry>;
  struct Turn {
    Flow flow;
    std::map<int32_t, Line, std::greater<>> lines;  // by priority; none is empty
    uint64_t deficit = 0;
  };
  using Turns = std::list<Turn>;

 public:
  // Where an item is. Valid until the item is taken or removed.
  class Place {
   public:
    Place() = default;

   private:
    friend class FairQueue;
    typename Turns::iterator turn;
    typename std::map<int32_t, Line, std::greater<>>::iterator line;
    typename Line::iterator entry;
  };

  explicit FairQueue(uint64_t quantum) : quantum_(quantum) {}

  bool empty() const { return turns_.empty(); }
  size_t flows() const { return turns_.size(); }

  // `cost` must not be 0.
  Place Push(const Flow& flow, int32_t priority, uint64_t cost, Item item) {
    const auto [found, is_new] = by_flow_.try_emplace(flow);
    if (is_new) found->second = turns_.insert(turns_.end(), Turn{.flow = flow});
    Place place;
    place.turn = found->second;
    place.line = place.turn->lines.try_emplace(priority).first;
    place.entry = place.line->second.insert(place.line->second.end(), {std::move(item), cost});
    return place;
  }

  void Remove(const Place& place) { Erase(place.turn, place.line, place.entry); }

  // Removes and returns the next item. `may_go(flow, item)` says whether the first item of a flow
  // may be taken; a flow whose item may not is passed over and keeps its place. `has_room(item)`
  // says whether there is room for the next item. If there is none, nothing is taken, so that
  // smaller items do not take the room again and again for which a larger one waits.
  template <typename MayGo, typename HasRoom>
  std::optional<Item> Take(const MayGo& may_go, const HasRoom& has_room) {
    // The flow that can afford its item after the fewest rounds.
    auto next = turns_.end();
    uint64_t rounds = 0;
    for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
      const Entry& first = turn->lines.begin()->second.front();
      if (!may_go(turn->flow, first.item)) continue;
      const uint64_t lacking = first.cost - std::min(first.cost, turn->deficit);
      const uint64_t needed = lacking / quantum_ + (lacking % quantum_ != 0 ? 1 : 0);
      if (next != turns_.end() && needed >= rounds) continue;
      next = turn;
      rounds = needed;
      if (rounds == 0) break;
    }
    if (next == turns_.end()) return std::nullopt;
    if (!has_room(next->lines.begin()->second.front().item)) return std::nullopt;
    if (rounds > 0) {
      for (Turn& turn : turns_) {
        if (may_go(turn.flow, turn.lines.begin()->second.front().item)) {
          turn.deficit += rounds * quantum_;
        }
      }
    }
    const auto line = next->lines.begin();
    const auto entry = line->second.begin();
    std::optional<Item> item = std::move(entry->item);
    next->deficit -= entry->cost;
    const bool goes_on = !Erase(next, line, entry);
    if (goes_on && next->deficit < next->lines.begin()->second.front().cost) {
      turns_.splice(turns_.end(), turns_, next);
    }
    return item;
  }
  template <typename MayGo>
  std::optional<Item> Take(const MayGo& may_go) {
    return Take(may_go, [](const Item&) { return true; });
  }

 private:
  // Returns true if the flow has no more items, and so is gone.
  bool Erase(typename Turns::iterator turn,
             typename std::map<int32_t, Line, std::greater<>>::iterator line,
             typename Line::iterator entry) {
    line->second.erase(entry);
    if (line->second.empty()) turn->lines.erase(line);
    if (!turn->lines.empty()) return false;
    by_flow_.erase(turn->flow);
    turns_.erase(turn);
    return true;
  }

  const uint64_t quantum_;
  Turns turns_;  // in the order of their turns
  std::unordered_map<Flow, typename Turns::iterator> by_flow_;
};

}  // namespace opmill

#endif  // OPMILL_SERVER_EXECUTION_FAIR_QUEUE_H_
