// Tests of the conformance test itself: cases survive as text, the table covers what it should, and
// verdicts detect every kind of error.
#include "tests/conformance/case_verdict.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/operator_plan.h"
#include "kernels/operators/operator_reference.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/reduction/reduction_reference.h"
#include "tests/conformance/case_cover.h"
#include "tests/conformance/case_generator.h"
#include "tests/conformance/conformance_case.h"
#include "tests/support/macro_pairs.h"
#include "tests/support/tensors.h"

namespace opmill {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ConformanceCase CaseOf(const std::string& fields) {
  const auto c = ParseLine(fields + " seed=3 view=134217728 groups=16 threads=64");
  EXPECT_TRUE(c.ok()) << c.status();
  return c.ok() ? *c : ConformanceCase();
}

Outputs ReferenceOutputs(const ConformanceCase& c, const Inputs& inputs) {
  Outputs outputs;
  std::vector<absl::Span<std::byte>> spans;
  for (const TensorDesc& desc : OutputsOf(c.desc)) outputs.emplace_back(RequiredBytes(desc));
  for (std::vector<std::byte>& output : outputs) spans.push_back(absl::MakeSpan(output));
  const std::vector<absl::Span<const std::byte>> input_spans(inputs.begin(), inputs.end());
  EXPECT_TRUE(ReferenceRun(c.desc, input_spans, spans).ok());
  return outputs;
}

TEST(ConformanceCase, SurvivesItsOwnLine) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const ConformanceCase c = RandomCase(seed, PlanOptions());
    const auto again = ParseLine(ToLine(c));
    ASSERT_TRUE(again.ok()) << again.status() << " in " << ToLine(c);
    EXPECT_EQ(ToLine(*again), ToLine(c));
    EXPECT_TRUE(again->desc == c.desc) << ToLine(c);
  }
}

TEST(ConformanceCase, ReportsParseErrors) {
  const std::string tail = " seed=1 view=64 groups=1 threads=64";
  const std::pair<std::string, std::string> kLines[] = {
      {"", "operator"},
      {"argmax input=FLOAT32[2", "input"},
      {"argmax input=FLOAT31[2] output=UINT32[1] axes=0" + tail, "input"},
      {"sum input=FLOAT32[2] output=UINT32[1] axes=0" + tail, "operator"},
      {"argmax input=FLOAT32[2] output=UINT32[1] axes=0 axis_direction=UP" + tail,
       "axis_direction"},
      {"reduce function=MEAN input=FLOAT32[2] output=FLOAT32[1] axes=0" + tail, "function"},
      {"hardmax input=FLOAT32[2] output=FLOAT32[2] axes=0 values=odd" + tail, "values"},
      {"hardmax input=FLOAT32[2] output=FLOAT32[2] axes=0 values=ties", "seed"},
      {"hardmax input=FLOAT32[2] output=FLOAT32[2] axes=1 values=ties" + tail, "axes"},
  };
  for (const auto& [line, word] : kLines) {
    const auto c = ParseLine(line);
    ASSERT_FALSE(c.ok()) << line;
    EXPECT_NE(std::string(c.status().message()).find(word), std::string::npos) << c.status();
  }
}

class SystematicTable : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const DataType type : kAllDataTypes) {
      for (ConformanceCase& c : SystematicCases(type, PlanOptions())) cases().push_back(c);
    }
  }
  static std::vector<ConformanceCase>& cases() {
    static std::vector<ConformanceCase> cases;
    return cases;
  }
};

TEST_F(SystematicTable, HasMoreThanTwentyThousandCasesEachOnce) {
  std::set<std::string> lines;
  for (const ConformanceCase& c : cases()) lines.insert(ToLine(c));
  EXPECT_GT(lines.size(), 20'000u);
  EXPECT_EQ(lines.size(), cases().size());
}

// What kernels of cases have: of all, and of those that the cover chooses.
struct Covered {
  std::set<std::string> values, pairs;  // with the entry points of a kind among the values
  absl::flat_hash_set<KernelPermutation> kernels;
  size_t cases = 0;
};

void Add(const CaseSet& set, const OperatorPlan& plan, Covered* covered) {
  ++covered->cases;
  for (const KernelPermutation& kernel : plan.kernels) {
    for (const std::string& value : MacroValues(kernel)) covered->values.insert(value);
    covered->values.insert(absl::StrCat(set.kind, ": ", kernel.shader, " ", kernel.entry));
    for (const std::string& pair : MacroPairs(kernel)) covered->pairs.insert(pair);
    covered->kernels.insert(kernel);
  }
}

void Compare(const std::vector<CaseSet>& sets, const CaseCover& cover, Covered* all,
             Covered* chosen) {
  for (size_t s = 0; s < sets.size(); ++s) {
    for (size_t i = 0; i < sets[s].cases.size(); ++i) {
      const ConformanceCase& c = sets[s].cases[i];
      const absl::StatusOr<OperatorPlan> plan = MakePlan(c.desc, c.options);
      ASSERT_TRUE(plan.ok()) << plan.status() << " " << ToLine(c);
      Add(sets[s], *plan, all);
      if (cover.Chooses(s, i)) Add(sets[s], *plan, chosen);
    }
  }
  EXPECT_EQ(chosen->values, all->values);
  EXPECT_EQ(cover.kernels(), chosen->kernels);
}

TEST(CaseCover, HasEveryPairAndEveryEntryPointOfAKindInFewCases) {
  std::vector<CaseSet> sets = SystematicSets("Software", PlanOptions());
  sets.push_back({"again", "Software", sets[0].cases});
  sets.push_back({"whole", "Software", {sets[1].cases[0], sets[1].cases[1]}, /*is_whole=*/true});
  const CaseCover cover(sets);
  Covered all, chosen;
  ASSERT_NO_FATAL_FAILURE(Compare(sets, cover, &all, &chosen));
  EXPECT_EQ(chosen.pairs, all.pairs);
  EXPECT_LT(chosen.kernels.size(), all.kernels.size() / 3);
  EXPECT_LT(chosen.cases, all.cases / 50);
  EXPECT_TRUE(cover.Chooses(sets.size() - 1, 0) && cover.Chooses(sets.size() - 1, 1));
}

TEST(CaseCover, EachSliceHasEveryValueAndAllTogetherHaveEveryPair) {
  const std::vector<CaseSet> sets = {
      {"", "Software", SystematicCases(DataType::kFloat32, PlanOptions())}};
  const size_t kernels = CaseCover(sets).kernels().size();
  std::set<std::string> pairs;
  Covered all;
  constexpr uint64_t kShare = 8;
  for (uint64_t first = 0; first < kShare; ++first) {
    const CaseCover cover(sets, {.share = kShare, .first = first});
    Covered chosen;
    ASSERT_NO_FATAL_FAILURE(Compare(sets, cover, &all, &chosen));
    EXPECT_LT(cover.kernels().size(), kernels);
    pairs.insert(chosen.pairs.begin(), chosen.pairs.end());
  }
  EXPECT_EQ(pairs, all.pairs);
}

TEST_F(SystematicTable, GivesEveryFunctionEveryValuePatternAndBothKindsOfStrides) {
  struct Seen {
    std::set<ValuePattern> values;
    std::set<std::pair<bool, bool>> strided;  // input, output
    std::set<uint64_t> views;
    std::set<uint64_t> sizes;
  };
  std::map<std::pair<std::string, DataType>, Seen> seen;
  std::map<DataType, std::set<uint64_t>> sizes_of_types;
  for (const ConformanceCase& c : cases()) {
    const TensorDesc& input = c.desc.inputs[0];
    Seen& s = seen[{FullName(c.desc), input.data_type}];
    s.values.insert(c.values);
    s.strided.insert({!IsPacked(input), !IsPacked(OutputsOf(c.desc)[0])});
    s.views.insert(c.options.max_view_elements);
    s.sizes.insert(input.sizes.begin(), input.sizes.end());
    sizes_of_types[input.data_type].insert(input.sizes.begin(), input.sizes.end());
  }
  EXPECT_EQ(seen.size(), 120u);
  std::map<std::string, std::set<std::pair<bool, bool>>> strides_of_functions;
  for (const DataType type : kAllDataTypes) {
    for (const uint32_t size : {32767, 32768, 32769, 65535, 65536, 65537, 70001}) {
      EXPECT_EQ(sizes_of_types[type].count(size), 1u) << ToString(type) << " without " << size;
    }
  }
  for (const auto& [key, s] : seen) {
    const std::string name = key.first + " of " + std::string(ToString(key.second));
    EXPECT_EQ(s.values.size(), kValuePatternCount) << name;
    EXPECT_GE(s.strided.size(), 2u) << name;
    strides_of_functions[key.first].insert(s.strided.begin(), s.strided.end());
    EXPECT_GE(s.views.size(), 6u) << name;
    for (const uint64_t size : {15, 16, 17, 255, 256, 257, 1023, 1024, 1025}) {
      EXPECT_EQ(s.sizes.count(size), 1u) << name << " without " << size;
    }
  }
  for (const auto& [label, strided] : strides_of_functions) EXPECT_EQ(strided.size(), 3u) << label;
}

TEST(FindMistake, FindsEveryBitOfExactOutputs) {
  const ConformanceCase kCases[] = {
      CaseOf("argmax input=FLOAT32[3,5] output=INT64[3,1]/[2,1] axes=1 axis_direction=DECREASING "
             "values=specials"),
      CaseOf("top_k input=INT8[3,7] output_values=INT8[3,3] output_indices=UINT32[3,3]/[4,1] "
             "axis=1 k=3 "
             "axis_direction=INCREASING values=random_bits"),
      CaseOf("hardmax input=FLOAT16[3,3] output=FLOAT16[3,3]/[1,5] axes=0 values=ties"),
      CaseOf("element_wise_add a=FLOAT16[3,5] b=FLOAT16[3,5]/[0,1] output=FLOAT16[3,5]/[8,1] "
             "values=numbers"),
      CaseOf("reduce function=MIN input=UINT8[5,3] output=UINT8[1,3] axes=0 values=random_bits"),
  };
  for (const ConformanceCase& c : kCases) {
    const Inputs inputs = MakeInputs(c);
    Outputs outputs = ReferenceOutputs(c, inputs);
    EXPECT_EQ(FindMistake(c, inputs, outputs), "") << ToLine(c);
    for (std::vector<std::byte>& output : outputs) {
      for (size_t bit = 0; bit < output.size() * 8; ++bit) {
        const std::byte mask{static_cast<unsigned char>(1 << bit % 8)};
        output[bit / 8] ^= mask;
        EXPECT_NE(FindMistake(c, inputs, outputs), "") << "bit " << bit << " of " << ToLine(c);
        output[bit / 8] ^= mask;
      }
    }
  }
}

TEST(FindMistake, FindsAnElementThatASumLacks) {
  for (const char* function : {"SUM", "L1", "SUM_SQUARE", "AVERAGE", "L2", "LOG_SUM_EXP"}) {
    for (const char* type : {"FLOAT32", "FLOAT16"}) {
      const ConformanceCase c =
          CaseOf(std::string("reduce function=") + function + " input=" + type +
                 "[2,33] output=" + type + "[2,1]/[3,1] axes=1 values=constant");
      const Inputs inputs = MakeInputs(c);
      Outputs outputs = ReferenceOutputs(c, inputs);
      EXPECT_EQ(FindMistake(c, inputs, outputs), "") << ToLine(c);
      outputs[0][ElementBytes(c.desc.inputs[0].data_type)] = std::byte{1};
      EXPECT_NE(FindMistake(c, inputs, outputs), "") << "the gap of " << ToLine(c);

      ReduceDesc shorter = ReduceDesc::From(c.desc);
      const double whole = shorter.function == ReduceFunction::kAverage ? 32.0 / 33 : 1;
      shorter.input.strides = {33, 1};
      shorter.input.sizes[1] = 32;
      const auto exact = ReferenceReduceExact(shorter, inputs[0]);
      ASSERT_TRUE(exact.ok());
      outputs = ReferenceOutputs(c, inputs);
      const DataType data_type = shorter.input.data_type;
      const uint64_t bits = BitsOf(data_type, static_cast<float>((*exact)[1].value * whole));
      std::memcpy(outputs[0].data() + 3 * ElementBytes(data_type), &bits, ElementBytes(data_type));
      EXPECT_NE(FindMistake(c, inputs, outputs), "") << ToLine(c);
    }
  }
}

struct Terms {
  const char* what;
  ReduceFunction function;
  std::vector<double> elements;
  double low, high;  // FLOAT32; low > high: no number
  bool nan, infinity;
};

TEST(AcceptedResults, FollowInfinitiesAndNans) {
  const double max = FLT_MAX;
  const Terms kTable[] = {
      {"a NaN", ReduceFunction::kSum, {1, kNan}, 1, 0, true, false},
      {"inf - inf", ReduceFunction::kSum, {kInf, -kInf}, 1, 0, true, false},
      {"inf", ReduceFunction::kSum, {kInf, -1}, kInf, kInf, false, false},
      {"inf beside sums that overflow",
       ReduceFunction::kSum,
       {kInf, -max, -max},
       kInf,
       kInf,
       true,
       true},
      {"integers", ReduceFunction::kSum, {3, -3, 7}, 7, 7, false, false},
      {"overflow", ReduceFunction::kSum, {max, max}, kInf, kInf, false, false},
      {"mean of large ones",
       ReduceFunction::kAverage,
       {max, max, -kInf},
       -kInf,
       -kInf,
       false,
       false},
      {"squares that overflow", ReduceFunction::kL2, {1e30, 1}, kInf, kInf, false, false},
      {"log of nothing", ReduceFunction::kLogSum, {0, 0}, -kInf, -kInf, false, false},
      {"log of a negative", ReduceFunction::kLogSum, {1, -5}, 1, 0, true, false},
      {"all -inf", ReduceFunction::kLogSumExp, {-kInf, -kInf}, -kInf, -kInf, false, false},
      {"0 * inf", ReduceFunction::kMultiply, {0, kInf}, 1, 0, true, false},
      {"-2 * inf", ReduceFunction::kMultiply, {-2, kInf}, -kInf, -kInf, false, false},
  };
  for (const Terms& t : kTable) {
    ReduceDesc desc;
    desc.function = t.function;
    desc.input = {DataType::kFloat32, {static_cast<uint32_t>(t.elements.size())}, {}};
    desc.output = TensorDesc{DataType::kFloat32, {1}, {}};
    desc.axes = {0};
    const auto exact = ReferenceReduceExact(desc, BytesOfNumbers(desc.input, t.elements));
    ASSERT_TRUE(exact.ok());
    TermFacts facts = {.integers = true};
    for (const double x : t.elements) {
      if (!std::isfinite(x)) continue;
      facts.finite_magnitudes += std::abs(x);
      if (x != 0) facts.logarithms += std::abs(std::log2(std::abs(x)));
    }
    const Accepted accepted = AcceptedResults(t.function, (*exact)[0], facts);
    EXPECT_EQ(accepted.nan, t.nan) << t.what;
    EXPECT_EQ(accepted.infinity, t.infinity) << t.what;
    EXPECT_EQ(accepted.low <= accepted.high, t.low <= t.high) << t.what;
    if (t.low > t.high) continue;
    EXPECT_EQ(static_cast<float>(accepted.low), static_cast<float>(t.low)) << t.what;
    EXPECT_EQ(static_cast<float>(accepted.high), static_cast<float>(t.high)) << t.what;
  }
}

}  // namespace
}  // namespace opmill
