#include "kernels/program/placement.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/base/rounding.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "tests/conformance/random.h"
#include "tests/kernels/random_program.h"
#include "tests/support/programs.h"

namespace opmill {
namespace {

constexpr uint64_t kSizeBytes = 4000;

// Cumulative sums of cumulative sums, ten times.
Program Chain(ProgramBuilder& builder) {
  const TensorDesc tensor = {DataType::kFloat32, {kSizeBytes / 4}, {}};
  uint32_t value = builder.Input(tensor);
  for (int i = 0; i < 10; ++i)
    value = builder.Add(CumulativeSummationDesc{.input = tensor}, {value})[0];
  return builder.Return(value).program();
}

// A piece of the arena.
struct Piece {
  std::string name;
  uint64_t begin = 0;
  uint64_t end = 0;
};

// What node `n` finds in the arena: its scratch, what it writes, and what has been written and is
// read by it or later.
std::vector<Piece> PiecesAt(const Program& program, const ProgramPlaces& places,
                            const std::vector<uint64_t>& scratch_bytes, size_t n) {
  std::vector<Piece> pieces;
  const auto uses = [&](const auto& bound, uint32_t value) {
    return std::any_of(bound.begin(), bound.end(),
                       [&](const ProgramView& view) { return view.value == value; });
  };
  for (uint32_t v = 0; v < program.values.size(); ++v) {
    if (program.values[v].kind != ValueKind::kIntermediate) continue;
    bool is_written_before = false;
    bool is_read_later = false;
    for (size_t i = 0; i < program.nodes.size(); ++i) {
      is_written_before |= i < n && uses(program.nodes[i].outputs, v);
      is_read_later |= i >= n && uses(program.nodes[i].inputs, v);
    }
    if ((is_written_before && is_read_later) || uses(program.nodes[n].outputs, v)) {
      const uint64_t begin = places.values[v].offset_bytes;
      // Kernels access whole vectors of 16 bytes.
      const uint64_t size = (RequiredBytes(program.values[v].tensor) + 15) / 16 * 16;
      pieces.push_back({absl::StrCat("values[", v, "]"), begin, begin + size});
    }
  }
  const uint64_t begin = places.scratch_offsets[n];
  if (scratch_bytes[n] > 0) pieces.push_back({"scratch", begin, begin + scratch_bytes[n]});
  return pieces;
}

void ExpectNoOverlap(const Program& program, const ProgramPlaces& places,
                     const std::vector<uint64_t>& scratch_bytes) {
  uint64_t live_bytes = 0;
  for (size_t n = 0; n < program.nodes.size(); ++n) {
    const std::vector<Piece> pieces = PiecesAt(program, places, scratch_bytes, n);
    uint64_t sum = scratch_bytes[n];
    for (const Piece& a : pieces) {
      if (a.name != "scratch") sum += RoundUp(a.end - a.begin, kPlacementAlignment);
      EXPECT_EQ(a.begin % kPlacementAlignment, 0u) << a.name;
      EXPECT_LE(a.end, places.arena_bytes) << a.name;
      for (const Piece& b : pieces) {
        if (&a == &b || a.begin == a.end || b.begin == b.end) continue;
        EXPECT_TRUE(a.end <= b.begin || b.end <= a.begin)
            << a.name << " and " << b.name << " at nodes[" << n << "]";
      }
    }
    live_bytes = std::max(live_bytes, sum);
  }
  EXPECT_EQ(places.live_bytes, live_bytes);
  EXPECT_LE(live_bytes, places.arena_bytes);
}

TEST(Place, GivesAnOperatorItsScratch) {
  ProgramBuilder builder;
  const TensorDesc tensor = {DataType::kFloat32, {10}, {}};
  builder.Return(builder.Add(CumulativeSummationDesc{.input = tensor}, {builder.Input(tensor)})[0]);
  const ProgramPlaces places = Place(builder.program(), {1001});
  EXPECT_EQ(places.arena_bytes, 1001u);
  EXPECT_EQ(places.scratch_offsets[0], 0u);
  EXPECT_EQ(places.values[0].kind, ValueKind::kInput);
  EXPECT_EQ(places.values[1].kind, ValueKind::kOutput);
  EXPECT_EQ(Place(builder.program(), {0}).arena_bytes, 0u);
}

TEST(Place, NumbersInputsAndOutputsAmongTheirKind) {
  ProgramBuilder builder;
  Chain(builder);
  const TensorDesc tensor = builder.tensor(0);
  const uint32_t second_input = builder.Input(tensor);
  const uint32_t second_output =
      builder.Add(CumulativeSummationDesc{.input = tensor}, {second_input})[0];
  builder.Return(second_output);
  const ProgramPlaces places = Place(builder.program(), std::vector<uint64_t>(11));
  EXPECT_EQ(places.values[second_input].index, 1u);
  EXPECT_EQ(places.values[second_output].index, 1u);
  EXPECT_EQ(places.values[second_output].kind, ValueKind::kOutput);
}

TEST(Place, ReusesTheMemoryOfWhatIsNotReadAnyMore) {
  ProgramBuilder builder;
  const Program program = Chain(builder);
  constexpr uint64_t kRounded = 4096;
  EXPECT_EQ(Place(program, std::vector<uint64_t>(10)).arena_bytes, 2 * kRounded);
  // The scratch of a node goes where its inputs' inputs were.
  const std::vector<uint64_t> scratch_bytes(10, kRounded);
  const ProgramPlaces places = Place(program, scratch_bytes);
  EXPECT_EQ(places.arena_bytes, 3 * kRounded);
  ExpectNoOverlap(program, places, scratch_bytes);
}

TEST(Place, KeepsWhatIsReadLater) {
  ProgramBuilder builder;
  const TensorDesc tensor = {DataType::kFloat32, {1000}, {}};
  const CumulativeSummationDesc sums = {.input = tensor};
  const uint32_t early = builder.Add(sums, {builder.Input(tensor)})[0];
  uint32_t value = early;
  for (int i = 0; i < 5; ++i) value = builder.Add(sums, {value})[0];
  builder.Return(builder.Add(sums, {early})[0]).Return(value);
  const std::vector<uint64_t> scratch_bytes(7, 5000);
  const ProgramPlaces places = Place(builder.program(), scratch_bytes);
  ExpectNoOverlap(builder.program(), places, scratch_bytes);
  EXPECT_EQ(places.arena_bytes, 5120u + 3 * 4096);
}

TEST(Place, PutsPartsIntoTheirWholes) {
  ProgramBuilder builder;
  const TensorDesc tensor = {DataType::kFloat32, {1000}};
  const TensorDesc large = {DataType::kFloat32, {3000}};
  const uint32_t input = builder.Input(tensor);
  const CumulativeSummationDesc sums = {.input = tensor};
  const uint32_t a = builder.Add(sums, {input})[0];
  const uint32_t b = builder.Add(sums, {a})[0];
  const uint32_t c = builder.Add(sums, {b})[0];
  const uint32_t whole =
      builder.Add(CumulativeSummationDesc{.input = {DataType::kFloat32, {3000}, {0}}}, {c})[0];
  builder.Return(builder.Add(CumulativeSummationDesc{.input = large}, {whole})[0]);
  const std::vector<uint64_t> scratch_bytes(5, 100);
  // `c` is a part of `b`, and that one of `whole`, which is needed from the second node on.
  const ProgramPlaces places =
      Place(builder.program(), scratch_bytes, {{c, b, 800}, {b, whole, 4000}});
  EXPECT_EQ(places.values[b].offset_bytes, places.values[whole].offset_bytes + 4000);
  EXPECT_EQ(places.values[c].offset_bytes, places.values[whole].offset_bytes + 4800);
  EXPECT_EQ(places.live_bytes, RoundUp(12000, kPlacementAlignment) + 4096 + 100);
  EXPECT_GE(places.values[a].offset_bytes, RoundUp(12000, kPlacementAlignment));
}

TEST(Place, LetsNothingOverlapInRandomPrograms) {
  uint64_t arena_bytes = 0;
  uint64_t all_bytes = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Program program = RandomProgram(seed, {.most_nodes = 30, .most_elements = 3000});
    Random random(seed);
    std::vector<uint64_t> scratch_bytes(program.nodes.size());
    for (uint64_t& bytes : scratch_bytes) bytes = random.OneIn(3) ? 0 : random.Below(10'000);
    const ProgramPlaces places = Place(program, scratch_bytes);
    ExpectNoOverlap(program, places, scratch_bytes);
    arena_bytes += places.arena_bytes;
    for (const uint64_t bytes : scratch_bytes) all_bytes += bytes;
    for (const uint64_t bytes : RequiredBytes(program, ValueKind::kIntermediate)) {
      all_bytes += bytes;
    }
  }
  EXPECT_LT(arena_bytes, all_bytes / 2);
}

}  // namespace
}  // namespace opmill
