// search on every device, compared with the reference, which computes it in double precision; and
// its refusals.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/errors.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/search/search_desc.h"
#include "kernels/operators/search/search_lower.h"
#include "tests/conformance/reference_run.h"
#include "tests/support/programs.h"
#include "tests/support/tensors.h"
#include "tests/support/test_devices.h"
#ifdef OPMILL_CPU_DEVICE
#include "kernels/cpu/device/cpu_device.h"
#include "kernels/cpu/instruction_set.h"
#endif

namespace opmill {
namespace {

using ::testing::ElementsAre;
using Numbers = std::vector<uint32_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEmpty = kNotFound;
constexpr uint32_t kInnerProduct = static_cast<uint32_t>(SearchMetric::kInnerProduct);
constexpr uint32_t kL2 = static_cast<uint32_t>(SearchMetric::kL2);
constexpr uint32_t kCosine = static_cast<uint32_t>(SearchMetric::kCosine);

struct Shape {
  uint32_t queries = 1;
  uint32_t vectors = 1;
  uint32_t dims = 1;
  uint32_t k = 1;
};
// Panels of every width, tiles that are whole and cut, lists that are pruned, all vectors.
const Shape kShapes[] = {{1, 1, 1, 1},    {1, 37, 5, 3},   {3, 40, 8, 40},  {7, 100, 129, 7},
                         {17, 300, 3, 1}, {33, 95, 33, 9}, {61, 24, 17, 2}, {2, 2000, 6, 100}};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt8};

enum class MaskKind : uint32_t { kNone, kShared, kOfQueries };

OperatorDesc DescFor(const Shape& shape, DataType type, uint32_t metric,
                     MaskKind mask = MaskKind::kNone) {
  std::vector<TensorDesc> inputs = {{type, {shape.queries, shape.dims}, {}},
                                    {type, {shape.vectors, shape.dims}, {}}};
  if (mask != MaskKind::kNone) {
    const uint32_t rows = mask == MaskKind::kShared ? 1 : shape.queries;
    inputs.push_back({DataType::kUint8, {rows, shape.vectors}, {}});
  }
  return ValidDesc(kSearchSchema, inputs, {{"k", shape.k}, {"metric", metric}});
}

// Integers, of which sums are exact in FLOAT32; and NaNs in some vectors of floats.
TensorValues IntegersFor(const OperatorDesc& desc, uint64_t seed) {
  TensorValues values = ValuesFor(desc, ValuePattern::kTies, seed);
  if (desc.inputs.size() > 2) {  // of a mask, three of four
    for (size_t i = 0; i < values[2].size(); ++i) {
      values[2][i] = std::byte{(i * 2654435761u + seed) >> 7 & 3 ? uint8_t{1} : uint8_t{0}};
    }
  }
  const TensorDesc& vectors = desc.inputs[1];
  if (!IsFloat(vectors.data_type) || vectors.sizes[0] < 10) return values;
  std::vector<double> numbers = NumbersIn(vectors, values[1]);
  for (size_t row = 3; row < vectors.sizes[0]; row += 29) {
    numbers[row * vectors.sizes[1] + row % vectors.sizes[1]] = kNan;
  }
  values[1] = BytesOfNumbers(vectors, numbers);
  return values;
}

// A mistake in scores that are rounded, or "": each is within the bound of that of its vector and
// of the reference's at its place.
std::string MistakeIn(const OperatorDesc& desc, const TensorValues& inputs,
                      const TensorValues& outputs) {
  const SearchDesc search = SearchDesc::From(desc);
  const TensorValues wanted = ReferenceResults(desc, inputs);
  const std::vector<double> queries = NumbersIn(search.queries, inputs[0]);
  const std::vector<double> vectors = NumbersIn(search.vectors, inputs[1]);
  const std::vector<double> want = NumbersIn(*search.output_scores, wanted[0]);
  const std::vector<double> got = NumbersIn(*search.output_scores, outputs[0]);
  const std::vector<double> indices = NumbersIn(*search.output_indices, outputs[1]);
  const uint32_t dims = search.queries.sizes[1];
  double largest = 0;  // sum of squares
  for (const auto* all : {&queries, &vectors}) {
    for (size_t at = 0; at < all->size(); at += dims) {
      double sum = 0;
      for (size_t d = 0; d < dims; ++d) sum += (*all)[at + d] * (*all)[at + d];
      largest = std::max(largest, sum);
    }
  }
  const double scale = search.metric == SearchMetric::kCosine ? 1
                       : search.metric == SearchMetric::kL2   ? 4 * largest
                                                              : largest;
  const double bound = (dims + 16) * 0x1p-23 * scale;
  for (uint32_t q = 0; q < search.queries.sizes[0]; ++q) {
    std::set<double> found;
    for (uint32_t rank = 0; rank < search.k; ++rank) {
      const size_t at = size_t{q} * search.k + rank;
      if (std::isinf(want[at]) ? want[at] != got[at] : !(std::abs(want[at] - got[at]) <= bound)) {
        return absl::StrCat("score ", rank, " of query ", q, " is ", got[at], ", not ", want[at]);
      }
      if (!found.insert(indices[at]).second) return absl::StrCat("twice: ", indices[at]);
      double product = 0;
      double distance = 0;
      double squares[2] = {};
      for (size_t d = 0; d < dims; ++d) {
        const double x = queries[size_t{q} * dims + d];
        const double y = vectors[static_cast<size_t>(indices[at]) * dims + d];
        product += x * y;
        distance += (x - y) * (x - y);
        squares[0] += x * x;
        squares[1] += y * y;
      }
      const double score = search.metric == SearchMetric::kL2 ? distance
                           : search.metric == SearchMetric::kCosine
                               ? product / std::sqrt(squares[0] * squares[1])
                               : product;
      if (!(std::abs(score - got[at]) <= bound)) {
        return absl::StrCat("vector ", indices[at], " of query ", q, " has ", score, ", not ",
                            got[at]);
      }
    }
  }
  return "";
}

class SearchTest : public DeviceTest {
 protected:
  // Where kernels are compiled, a sample.
  bool Skips(uint32_t variant) {
    const DeviceKind kind = device().info().kind;
    if (kind == DeviceKind::kReference || kind == DeviceKind::kCpu) return false;
    return variant % 5 != 0;
  }
  void ExpectExact(const OperatorDesc& desc, const TensorValues& inputs) {
    const auto outputs = RunValidated(device(), desc, inputs);
    ASSERT_TRUE(outputs.ok()) << outputs.status() << ToString(desc);
    EXPECT_EQ(FindDifference(desc, inputs, *outputs), "") << ToString(desc);
  }
  std::vector<std::vector<double>> Results(const OperatorDesc& desc, const TensorValues& inputs) {
    const auto outputs = RunValidated(device(), desc, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return {NumbersIn(*desc.outputs[0], (*outputs)[0]), NumbersIn(*desc.outputs[1], (*outputs)[1])};
  }
};

TEST_P(SearchTest, IntegersGiveTheReferencesBytes) {
  uint32_t turn = 0;
  for (const Shape& shape : kShapes) {
    for (const DataType type : kTypes) {
      for (const uint32_t metric : {kInnerProduct, kL2}) {
        for (const MaskKind mask : {MaskKind::kNone, MaskKind::kShared, MaskKind::kOfQueries}) {
          if (Skips(turn++)) continue;
          const OperatorDesc desc = DescFor(shape, type, metric, mask);
          ExpectExact(desc, IntegersFor(desc, turn));
        }
      }
    }
  }
}

TEST_P(SearchTest, RoundedScoresAreWithinTheirBound) {
  uint32_t turn = 0;
  for (const Shape& shape : kShapes) {
    for (const DataType type : kTypes) {
      for (const uint32_t metric : {kInnerProduct, kL2, kCosine}) {
        if (Skips(turn++) || (type == DataType::kInt8 && metric != kCosine)) continue;
        const OperatorDesc desc = DescFor(shape, type, metric);
        const ValuePattern values =
            type == DataType::kInt8 ? ValuePattern::kPositive : ValuePattern::kNumbers;
        const TensorValues inputs = ValuesFor(desc, values, turn);
        const auto outputs = RunValidated(device(), desc, inputs);
        ASSERT_TRUE(outputs.ok()) << outputs.status() << ToString(desc);
        EXPECT_EQ(MistakeIn(desc, inputs, *outputs), "") << ToString(desc);
      }
    }
  }
}

TEST_P(SearchTest, ReadsAndWritesAnyStrides) {
  for (const DataType type : kTypes) {
    const OperatorDesc desc = ValidDesc(
        kSearchSchema,
        {{type, {5, 9}, {1, 6}}, {type, {50, 9}, {11, 1}}, {DataType::kUint8, {5, 50}, {1, 7}}},
        {{"k", 4u}, {"metric", kL2}},
        {TensorDesc{
             type == DataType::kInt8 ? DataType::kInt32 : DataType::kFloat32, {5, 4}, {1, 5}},
         TensorDesc{DataType::kUint32, {5, 4}, {9, 2}}});
    ExpectExact(desc, IntegersFor(desc, 5));
    const OperatorDesc columns =
        ValidDesc(kSearchSchema, {{type, {5, 9}, {}}, {type, {50, 9}, {1, 50}}},
                  {{"k", 4u}, {"metric", kInnerProduct}});
    ExpectExact(columns, IntegersFor(columns, 6));
  }
}

TEST_P(SearchTest, GivesTheExamplesOfThePage) {
  const Shape shape = {.queries = 1, .vectors = 5, .dims = 2, .k = 5};
  const std::vector<double> vectors = {1, 0, 3, 4, kNan, 0, 3, 4, 0, 0};
  const auto results = [&](uint32_t metric) {
    const OperatorDesc desc = DescFor(shape, DataType::kFloat32, metric);
    return Results(
        desc, {BytesOfNumbers(desc.inputs[0], {3, 4}), BytesOfNumbers(desc.inputs[1], vectors)});
  };
  EXPECT_THAT(results(kInnerProduct),
              ElementsAre(ElementsAre(25, 25, 3, 0, -kInfinity), ElementsAre(1, 3, 0, 4, kEmpty)));
  EXPECT_THAT(results(kL2),
              ElementsAre(ElementsAre(0, 0, 20, 25, kInfinity), ElementsAre(1, 3, 0, 4, kEmpty)));
  const auto cosines = results(kCosine);
  EXPECT_THAT(cosines[0], ::testing::Pointwise(::testing::DoubleNear(1e-6),
                                               std::vector<double>{1, 1, 0.6, 0, -kInfinity}));
  EXPECT_THAT(cosines[1], ElementsAre(1, 3, 0, 4, kEmpty));
}

TEST_P(SearchTest, InfiniteScoresAreFoundBeforeEmptyPlaces) {
  const Shape shape = {.queries = 1, .vectors = 4, .dims = 1, .k = 4};
  const OperatorDesc product = DescFor(shape, DataType::kFloat32, kInnerProduct);
  EXPECT_THAT(
      Results(product, {BytesOfNumbers(product.inputs[0], {1}),
                        BytesOfNumbers(product.inputs[1], {-kInfinity, kNan, kInfinity, 2})}),
      ElementsAre(ElementsAre(kInfinity, 2, -kInfinity, -kInfinity), ElementsAre(2, 3, 0, kEmpty)));
  // On GPUs a sum of products takes the place of the distance.
  if (device().info().kind == DeviceKind::kSoftware ||
      device().info().kind == DeviceKind::kHardware) {
    return;
  }
  const OperatorDesc distance = DescFor(shape, DataType::kFloat32, kL2);
  EXPECT_THAT(Results(distance, {BytesOfNumbers(distance.inputs[0], {1}),
                                 BytesOfNumbers(distance.inputs[1], {kInfinity, kNan, 3, 1})}),
              ElementsAre(ElementsAre(0, 4, kInfinity, kInfinity), ElementsAre(3, 2, 0, kEmpty)));
}

TEST_P(SearchTest, EmptyPlacesOfInt32HaveItsLimits) {
  const Shape shape = {.queries = 1, .vectors = 2, .dims = 1, .k = 2};
  for (const uint32_t metric : {kInnerProduct, kL2}) {
    const OperatorDesc desc = DescFor(shape, DataType::kInt8, metric, MaskKind::kShared);
    EXPECT_THAT(Results(desc, {BytesOfNumbers(desc.inputs[0], {-128}),
                               BytesOfNumbers(desc.inputs[1], {-128, 127}),
                               BytesOfNumbers(desc.inputs[2], {0, 9})}),
                ElementsAre(metric == kL2 ? ElementsAre(65025.0, 2147483647.0)
                                          : ElementsAre(-16256.0, -2147483648.0),
                            ElementsAre(1, kEmpty)));
  }
}

// The numbers of INT8 that make the largest sums.
TEST_P(SearchTest, SumsOfInt8AreExact) {
  for (const uint32_t metric : {kInnerProduct, kL2}) {
    const Shape shape = {.queries = 2, .vectors = 4, .dims = 2500, .k = 4};
    const OperatorDesc desc = DescFor(shape, DataType::kInt8, metric);
    TensorValues inputs = IntegersFor(desc, 1);
    for (size_t i = 0; i < inputs[0].size(); ++i) {
      inputs[0][i] = std::byte{static_cast<uint8_t>(i < 2500 || i % 3 == 0 ? 0x80 : 0x7F)};
    }
    for (size_t i = 0; i < inputs[1].size(); ++i) {
      inputs[1][i] = std::byte{static_cast<uint8_t>(i / 2500 % 2 == 0 ? 0x80 : 0x7F)};
    }
    ExpectExact(desc, inputs);
  }
}

// Chunks that the device would make of more vectors.
TEST_P(SearchTest, ChunksGiveTheReferencesBytes) {
  uint32_t turn = 0;
  for (const DataType type : kTypes) {
    for (const uint32_t metric : {kInnerProduct, kL2}) {
      const OperatorDesc desc =
          DescFor({.queries = 3, .vectors = 900, .dims = 5, .k = 70}, type, metric,
                  turn % 2 == 0 ? MaskKind::kShared : MaskKind::kNone);
      const TensorValues inputs = IntegersFor(desc, turn);
      // 15 chunks, so that there are two lists of lists; 2; one.
      for (const uint64_t elements : {192, 2560, 65536}) {
        if (turn++ % 3 != 0 && device().info().kind == DeviceKind::kSoftware) continue;
        const Program program = LowerSearchInChunks(desc, elements);
        EXPECT_GT(program.nodes.size(), elements == 192 ? 50u : 3u);
        const auto compiled = device().Compile(program);
        ASSERT_TRUE(compiled.ok()) << compiled.status();
        const auto bindings = BindProgram(device(), program, inputs);
        ASSERT_TRUE(bindings.ok()) << bindings.status();
        ASSERT_TRUE(device().RunAndWait(*compiled, *bindings).ok());
        EXPECT_EQ(FindDifference(desc, inputs, OutputBytes(program, *bindings)), "")
            << ToString(desc) << " in chunks of " << elements;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(On, SearchTest, ::testing::ValuesIn(TestDevices()));

#ifdef OPMILL_CPU_DEVICE

TensorValues ResultsOn(Device& device, const OperatorDesc& desc, const TensorValues& inputs) {
  const auto outputs = RunValidated(device, desc, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status() << ToString(desc);
  return outputs.ok() ? *outputs : TensorValues();
}

TEST(SearchOnCpu, EveryInstructionSetGivesTheReferencesBytes) {
  for (const std::string& name : InstructionSets()) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(UseInstructionSetForTest(name).ok());
    const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
    uint32_t turn = 0;
    for (const Shape& shape : kShapes) {
      for (const DataType type : kTypes) {
        for (const uint32_t metric : {kInnerProduct, kL2}) {
          const OperatorDesc desc = DescFor(shape, type, metric, static_cast<MaskKind>(turn++ % 3));
          const TensorValues inputs = IntegersFor(desc, turn);
          EXPECT_EQ(FindDifference(desc, inputs, ResultsOn(*device, desc, inputs)), "")
              << ToString(desc);
        }
        const OperatorDesc desc = DescFor(shape, type, kCosine);
        const TensorValues inputs = ValuesFor(desc, ValuePattern::kPositive, turn);
        EXPECT_EQ(MistakeIn(desc, inputs, ResultsOn(*device, desc, inputs)), "") << ToString(desc);
      }
    }
  }
  ASSERT_TRUE(UseInstructionSetForTest(InstructionSets()[0]).ok());
}

// Of one query what many have, and of one thread what three have.
TEST(SearchOnCpu, BitsDoNotDependOnOtherQueriesOrThreads) {
  const std::unique_ptr<Device> one = CreateCpuDevice({.threads = 1});
  const std::unique_ptr<Device> three = CreateCpuDevice({.threads = 3});
  for (const DataType type : kTypes) {
    for (const uint32_t metric : {kInnerProduct, kL2, kCosine}) {
      const Shape shape = {.queries = 61, .vectors = 3000, .dims = 37, .k = 12};
      const OperatorDesc desc = DescFor(shape, type, metric);
      const TensorValues inputs = ValuesFor(
          desc, type == DataType::kInt8 ? ValuePattern::kRandomBits : ValuePattern::kNumbers, 3);
      const TensorValues all = ResultsOn(*three, desc, inputs);
      EXPECT_EQ(ResultsOn(*one, desc, inputs), all) << ToString(desc);
      const OperatorDesc single = DescFor({1, shape.vectors, shape.dims, shape.k}, type, metric);
      const size_t row = shape.dims * ElementBytes(type);
      for (const uint32_t query : {0u, 30u, 33u, 60u}) {
        std::vector<std::byte> bytes(inputs[0].begin() + query * row,
                                     inputs[0].begin() + (query + 1) * row);
        bytes.resize(RequiredBytes(single.inputs[0]));
        const TensorValues alone = ResultsOn(*one, single, {bytes, inputs[1]});
        for (size_t output = 0; output < 2; ++output) {
          EXPECT_EQ(
              std::memcmp(alone[output].data(), all[output].data() + query * alone[output].size(),
                          alone[output].size()),
              0)
              << ToString(desc) << " query " << query;
        }
      }
    }
  }
}

// Several tasks with lists of their own, several steps, and several groups of queries.
TEST(SearchOnCpu, MergesTheListsOfTasks) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  for (const Shape& shape : {Shape{8, 40000, 64, 10}, Shape{60, 7000, 2, 3000},
                             Shape{1100, 130, 2, 3}, Shape{2, 300000, 4, 500}}) {
    for (const DataType type : {DataType::kFloat32, DataType::kInt8}) {
      const OperatorDesc desc =
          DescFor(shape, type, type == DataType::kInt8 ? kInnerProduct : kL2, MaskKind::kShared);
      const TensorValues inputs = IntegersFor(desc, 3);
      EXPECT_EQ(FindDifference(desc, inputs, ResultsOn(*device, desc, inputs)), "")
          << ToString(desc);
    }
  }
}

// Distances far smaller than the vectors, and squares that overflow.
TEST(SearchOnCpu, DistancesOfNearVectorsAreAccurate) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 1});
  const Shape shape = {.queries = 1, .vectors = 500, .dims = 4, .k = 3};
  const OperatorDesc desc = DescFor(shape, DataType::kFloat32, kL2);
  for (const double scale : {1.0, 0x1p80, 0x1p-60}) {
    std::vector<double> vectors;
    for (uint32_t i = 0; i < shape.vectors * shape.dims; ++i) {
      vectors.push_back(scale * (1024 + ((i / shape.dims * 7 + 1) % 500) * 0x1p-8));
    }
    const TensorValues inputs = {
        BytesOfNumbers(desc.inputs[0], std::vector<double>(4, scale * 1024)),
        BytesOfNumbers(desc.inputs[1], vectors)};
    const TensorValues found = ResultsOn(*device, desc, inputs);
    EXPECT_EQ(FindDifference(desc, inputs, found), "") << scale;
  }
}

// What a run takes beside its tensors.
TEST(SearchOnCpu, TakesBoundedMemory) {
  const std::unique_ptr<Device> device = CreateCpuDevice({.threads = 2});
  for (const Shape& shape : {Shape{256, 1000000, 128, 100}, Shape{4096, 1000000, 768, 10},
                             Shape{65536, 100000, 16, 1000}, Shape{1, 2000000, 64, 1000000},
                             Shape{300, 20000, 32768, 100}, Shape{40, 2000000, 64, 100000}}) {
    for (const DataType type : kTypes) {
      const OperatorDesc desc = DescFor(shape, type, kL2);
      const auto compiled = device->Compile(desc);
      ASSERT_TRUE(compiled.ok()) << compiled.status();
      EXPECT_LE((*compiled)->cost().scratch_bytes, uint64_t{64} << 20) << ToString(desc);
    }
  }
}

#endif  // OPMILL_CPU_DEVICE

std::string RefusalOf(std::vector<TensorDesc> inputs, uint32_t k = 1, uint32_t metric = 0,
                      FeatureLevel level = kNewestFeatureLevel) {
  const OperatorDesc desc =
      DescOf(kSearchSchema, std::move(inputs), {{"k", k}, {"metric", metric}});
  const absl::Status status = Validate(desc, level).status();
  return absl::StrCat(FieldOf(status).value_or("no field"), ": ", status.message());
}

TEST(Search, RefusesWhatDoesNotFit) {
  const TensorDesc queries = {DataType::kFloat32, {2, 3}, {}};
  const TensorDesc vectors = {DataType::kFloat32, {10, 3}, {}};
  EXPECT_EQ(RefusalOf({{DataType::kFloat32, {3}, {}}, vectors}),
            "queries.sizes: search takes 2 dimensions, but queries.sizes has 1.");
  EXPECT_EQ(RefusalOf({queries, {DataType::kFloat32, {1, 10, 3}, {}}}),
            "vectors.sizes: vectors.sizes has 3 dimensions, but queries.sizes has 2.");
  EXPECT_EQ(RefusalOf({queries, {DataType::kFloat32, {10, 4}, {}}}),
            "vectors.sizes[1]: vectors.sizes[1] is 4, but queries.sizes[1] is 3.");
  EXPECT_EQ(
      RefusalOf({queries, {DataType::kInt8, {10, 3}, {}}}),
      "vectors.data_type: vectors.data_type (INT8) differs from queries.data_type (FLOAT32).");
  EXPECT_EQ(RefusalOf({queries, vectors}, 0), "k: k (0) is below 1.");
  EXPECT_EQ(RefusalOf({queries, vectors}, 11), "k: k (11) is larger than vectors.sizes[0] (10).");
  EXPECT_EQ(RefusalOf({queries, vectors}, 1, 3),
            "metric: metric (3) is unknown; 0 to 2 are allowed.");
  EXPECT_EQ(RefusalOf({queries, vectors, {DataType::kUint8, {3, 10}, {}}}),
            "mask.sizes[0]: mask.sizes[0] is 3, but queries.sizes[0] is 2.");
  EXPECT_EQ(RefusalOf({queries, vectors, {DataType::kUint8, {1, 9}, {}}}),
            "mask.sizes[1]: mask.sizes[1] is 9, but vectors.sizes[0] is 10.");
  EXPECT_EQ(RefusalOf({queries, vectors, {DataType::kFloat32, {1, 10}, {}}}),
            "mask.data_type: search takes UINT8, but mask.data_type is FLOAT32.");
  EXPECT_EQ(
      RefusalOf({{DataType::kInt16, {2, 3}, {}}, {DataType::kInt16, {10, 3}, {}}}),
      "queries.data_type: search takes FLOAT32, FLOAT16, INT8, but queries.data_type is INT16.");
  EXPECT_EQ(RefusalOf({queries, vectors}, 1, 0, FeatureLevel::k6_3),
            "feature_level: At feature level 6.3 search does not exist; feature level 6.4 allows "
            "this request.");
  for (const auto& [metric, name, most] :
       {std::tuple(kInnerProduct, "INNER_PRODUCT", 131071u), {kL2, "L2", 33025u}}) {
    const std::vector<TensorDesc> fits(2, {DataType::kInt8, {1, most}, {}});
    EXPECT_EQ(RefusalOf(fits, 1, metric), "no field: ");
    const std::vector<TensorDesc> wide(2, {DataType::kInt8, {1, most + 1}, {}});
    EXPECT_EQ(RefusalOf(wide, 1, metric),
              absl::StrCat("queries.sizes[1]: queries.sizes[1] is ", most + 1,
                           ", but sums of INT8 for metric ", name,
                           " are numbers of INT32 only up to ", most, "."));
  }
  EXPECT_EQ(RefusalOf({queries, {DataType::kFloat16, {10, 3}, {}}}),
            "vectors.data_type: vectors.data_type (FLOAT16) differs from queries.data_type "
            "(FLOAT32).");
}

}  // namespace
}  // namespace opmill
