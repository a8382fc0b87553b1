// Checks every cell of the feature-level table, including refusals. The table below is written from
// DirectML's reference pages and used only by this test; it shares nothing with the product's
// table.
#include "kernels/descriptor/feature_levels.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/descriptor/validate.h"
#include "kernels/operators/cumulative_summation/cumulative_summation_desc.h"
#include "kernels/operators/elementwise/element_wise_desc.h"
#include "kernels/operators/hardmax/hardmax_desc.h"
#include "kernels/operators/matrix/matrix_desc.h"
#include "kernels/operators/operator_list.h"
#include "kernels/operators/reduction/reduction_desc.h"
#include "kernels/operators/top_k/top_k_desc.h"

namespace opmill {
namespace {

constexpr char kTable[] = R"(
ARGMIN ARGMAX                               | 4.1 | 1-8 | 10 types            | I64 I32 U64 U32
                                            | 3.0 | 1-8 | 8 types             | I64 I32 U64 U32
REDUCE_ARGMIN REDUCE_ARGMAX                 | 4.1 | 1-8 | 10 types            | I64 I32 U64 U32
                                            | 3.0 | 1-8 | 8 types             | I64 I32 U64 U32
                                            | 2.1 | 4   | 8 types             | U32
                                            | 1.0 | 4   | F                   | U32
AVERAGE L2 LOG_SUM LOG_SUM_EXP              | 3.0 | 1-8 | F                   |
                                            | 1.0 | 4   | F                   |
L1 SUM_SQUARE                               | 5.0 | 1-8 | F I64 I32 U64 U32   |
                                            | 3.0 | 1-8 | F                   |
                                            | 1.0 | 4   | F                   |
MIN MAX                                     | 5.0 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | 8 types             |
                                            | 2.1 | 4   | F I32 U32           |
                                            | 1.0 | 4   | F                   |
MULTIPLY SUM                                | 5.0 | 1-8 | F I64 I32 U64 U32   |
                                            | 3.0 | 1-8 | F I32 U32           |
                                            | 2.1 | 4   | F I32 U32           |
                                            | 1.0 | 4   | F                   |
TOP_K_INCREASING TOP_K_DECREASING           | 5.0 | 1-8 | 10 types            | U64 U32
                                            | 3.1 | 1-8 | 8 types             | U32
                                            | 2.1 | 4   | 8 types             | U32
TOP_K_DECREASING                            | 2.0 | 4   | F                   | U32
HARDMAX_ANY_AXES HARDMAX_LAST_AXIS          | 5.1 | 1-8 | F                   |
HARDMAX_LAST_AXIS                           | 3.0 | 1-8 | F                   |
                                            | 2.0 | 4-5 | F                   |
                                            | 1.0 | 4   | F                   |
ELEMENT_WISE_ADD                            | 5.1 | 1-8 | 10 types            |
                                            | 4.1 | 1-8 | F I64 I32 U64 U32   |
                                            | 3.0 | 1-8 | F I32 U32           |
                                            | 2.1 | 4-5 | F I32 U32           |
                                            | 1.0 | 4-5 | F                   |
CUMULATIVE_SUMMATION                        | 5.0 | 1-8 | F I64 I32 U64 U32   |
                                            | 4.0 | 1-8 | F I32 U32           |
                                            | 2.1 | 4   | F I32 U32           |
GEMM                                        | 4.0 | 2-4 | F                   |
                                            | 1.0 | 4   | F                   |
CONVOLUTION                                 | 4.0 | 3-5 | F                   |
                                            | 1.0 | 4-5 | F                   |
)";

// Of operators that move elements. The types of index tensors are the last column.
constexpr char kMovementTable[] = R"(
diagonal_matrix1                            | 5.1 | 2-4 | 10 types            |
join                                        | 4.1 | 1-8 | 10 types            |
                                            | 3.0 | 4-5 | 8 types             |
                                            | 2.1 | 4   | 8 types             |
                                            | 1.0 | 4   | F I32 I16 U32 U16   |
slice1                                      | 4.1 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | 8 types             |
                                            | 2.1 | 4-5 | 8 types             |
padding1                                    | 6.4 | 1-8 | 10 types            |
tile                                        | 4.1 | 1-8 | 10 types            |
                                            | 3.1 | 1-8 | 8 types             |
                                            | 2.1 | 4   | 8 types             |
                                            | 1.0 | 4   | F                   |
gather                                      | 4.1 | 1-8 | 10 types            | I64 I32 U64 U32
                                            | 3.0 | 1-8 | 8 types             | I64 I32 U64 U32
                                            | 2.1 | 4   | 8 types             | U32
                                            | 1.0 | 4   | F                   | U32
scatter                                     | 4.1 | 1-8 | 10 types            | I64 I32 U64 U32
                                            | 3.0 | 1-8 | 8 types             | I64 I32 U64 U32
                                            | 2.1 | 4   | 8 types             | U32
                                            | 1.0 | 4   | F                   | U32
gather_nd1                                  | 4.1 | 1-8 | 10 types            | I64 I32 U64 U32
                                            | 3.0 | 1-8 | 8 types             | I64 I32 U64 U32
reverse_subsequences                        | 4.1 | 1-8 | 10 types            | U64 U32
                                            | 3.0 | 4-5 | 8 types             | U32
                                            | 2.1 | 4   | 8 types             | U32
space_to_depth1 depth_to_space1             | 4.1 | 4   | 10 types            |
                                            | 2.1 | 4   | 8 types             |
resample2                                   | 6.2 | 1-4 | F I8 U8             |
                                            | 5.1 | 1-4 | F                   |
gather_elements                             | 4.1 | 1-8 | 10 types            | I64 I32 U64 U32
                                            | 3.0 | 1-8 | 8 types             | I64 I32 U64 U32
                                            | 2.1 | 4   | 8 types             | U32
)";

// Of operators without a message of their own, and of those that have two versions in DirectML the
// newer one. Of element-wise operators, one for each kind of rows. The last column is an output's
// of another type.
constexpr char kNamedTable[] = R"(
max_pooling                                 | 5.0 | 4-5 | 10 types            |
                                            | 3.0 | 4-5 | F I8 U8             |
                                            | 2.1 | 4-5 | F                   |
max_pooling_with_indices                    | 5.0 | 4-5 | 10 types            | U64 U32
                                            | 3.0 | 4-5 | F I8 U8             | U32
                                            | 2.1 | 4-5 | F                   | U32
average_pooling lp_pooling                  | 6.2 | 4-5 | F                   |
softmax log_softmax                         | 5.1 | 1-8 | F                   |
mean_variance_normalization                 | 6.3 | 1-8 | F                   |
batch_normalization                         | 3.1 | 1-8 | F                   |
                                            | 1.0 | 4   | F                   |
local_response_normalization                | 1.0 | 4   | F                   |
search                                      | 6.4 | 2   | F I8                |
abs                                         | 4.1 | 1-8 | F I64 I32 I16 I8    |
                                            | 3.0 | 1-8 | F I32 I16 I8        |
                                            | 2.1 | 4   | F I32 I16 I8        |
                                            | 1.0 | 4   | F                   |
subtract multiply                           | 5.1 | 1-8 | 10 types            |
                                            | 4.1 | 1-8 | F I64 I32 U64 U32   |
                                            | 3.0 | 1-8 | F I32 U32           |
                                            | 2.1 | 4-5 | F I32 U32           |
                                            | 1.0 | 4-5 | F                   |
divide                                      | 6.0 | 1-8 | 10 types            |
                                            | 5.1 | 1-8 | 8 types             |
                                            | 3.0 | 1-8 | F I32 U32           |
                                            | 2.1 | 4   | F I32 U32           |
                                            | 1.0 | 4   | F                   |
clip element_wise_max element_wise_min      | 5.0 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | 8 types             |
                                            | 2.1 | 4   | 8 types             |
                                            | 1.0 | 4   | F                   |
element_wise_mean                           | 3.0 | 1-8 | F I32 U32           |
                                            | 2.1 | 4   | F I32 U32           |
                                            | 1.0 | 4   | F                   |
sign                                        | 4.1 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | 8 types             |
                                            | 2.1 | 4   | 8 types             |
                                            | 2.0 | 4   | F                   |
modulus_floor modulus_truncate              | 6.0 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | 8 types             |
                                            | 2.1 | 4   | 8 types             |
negate                                      | 5.0 | 1-8 | F I64 I32 I16 I8    |
difference_square                           | 3.1 | 1-8 | F I32 U32           |
round                                       | 3.0 | 1-8 | F                   |
                                            | 2.1 | 4   | F                   |
floor constant_pow                          | 3.0 | 1-8 | F                   |
                                            | 1.0 | 4   | F                   |
elu scaled_elu                              | 3.0 | 1-8 | F                   |
                                            | 2.0 | 4-5 | F                   |
                                            | 1.0 | 4   | F                   |
celu                                        | 3.0 | 1-8 | F                   |
relu                                        | 5.1 | 1-8 | F I32 I16 I8        |
                                            | 3.0 | 1-8 | F                   |
                                            | 2.0 | 4-5 | F                   |
                                            | 1.0 | 4   | F                   |
logical_not logical_or logical_xor          | 3.0 | 1-8 | U32 U8              |
                                            | 2.0 | 4   | U32 U8              |
                                            | 1.0 | 4   | U32                 |
logical_equals logical_greater_than         | 4.1 | 1-8 | 10 types            | U32 U8
                                            | 3.0 | 1-8 | 8 types             | U32 U8
                                            | 2.1 | 4   | 8 types             | U32 U8
                                            | 2.0 | 4   | F                   | U32 U8
                                            | 1.0 | 4   | F                   | U32
logical_greater_than_or_equal               | 4.1 | 1-8 | 10 types            | U32 U8
                                            | 3.0 | 1-8 | 8 types             | U32 U8
is_infinity                                 | 3.0 | 1-8 | F                   | U8
                                            | 2.1 | 4   | F                   | U8
bit_and bit_not                             | 4.1 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | U32 U16 U8          |
bit_count                                   | 4.1 | 1-8 | 10 types            | U32 U8
                                            | 3.0 | 1-8 | U32 U16 U8          | U32 U8
bit_shift_right                             | 4.1 | 1-8 | U64 U32 U16 U8      |
                                            | 3.0 | 1-8 | U32 U16 U8          |
                                            | 2.1 | 4   | U32 U16 U8          |
identity                                    | 4.1 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | 8 types             |
                                            | 2.1 | 4-5 | 8 types             |
                                            | 1.0 | 4-5 | F                   |
if                                          | 5.0 | 1-8 | 10 types            |
                                            | 3.0 | 1-8 | 8 types             |
                                            | 2.0 | 4   | F16                 |
cast                                        | 3.1 | 1-8 | 10 types            | 10 types
                                            | 3.0 | 4   | 10 types            | 10 types
                                            | 1.0 | 4   | F I16 I8 U16 U8     | F I16 I8 U16 U8
)";

constexpr char kLevels[] = "1.0 2.0 2.1 3.0 3.1 4.0 4.1 5.0 5.1 5.2 6.0 6.1 6.2 6.3 6.4";

// The types by their names in kTable, and those that no operator supports.
const std::map<std::string, DataType>& Types() {
  static const auto* const types = new std::map<std::string, DataType>{
      {"F32", DataType::kFloat32},      {"F16", DataType::kFloat16}, {"I64", DataType::kInt64},
      {"I32", DataType::kInt32},        {"I16", DataType::kInt16},   {"I8", DataType::kInt8},
      {"U64", DataType::kUint64},       {"U32", DataType::kUint32},  {"U16", DataType::kUint16},
      {"U8", DataType::kUint8},         {"F64", DataType::kFloat64}, {"none", DataType::kUnknown},
      {"12", static_cast<DataType>(12)}};
  return *types;
}

std::set<std::string> ParseTypes(absl::string_view text) {
  std::string expanded(text);
  expanded = std::string(absl::StripAsciiWhitespace(expanded));
  if (expanded == "8 types") expanded = "F I32 I16 I8 U32 U16 U8";
  if (expanded == "10 types") expanded = "F I32 I16 I8 U32 U16 U8 I64 U64";
  std::set<std::string> types;
  for (const auto& name : absl::StrSplit(expanded, ' ', absl::SkipEmpty())) {
    if (name == "F") {
      types.insert({"F32", "F16"});
    } else {
      types.insert(std::string(name));
    }
  }
  return types;
}

struct TableRow {
  std::string level;  // single digits: compares as text
  size_t min_rank;
  size_t max_rank;
  std::set<std::string> types;
  std::set<std::string> index_types;
  friend bool operator==(const TableRow&, const TableRow&) = default;

  bool Allows(size_t rank, const std::string& type,
              const std::optional<std::string>& index_type) const {
    return min_rank <= rank && rank <= max_rank && types.count(type) == 1 &&
           (!index_type.has_value() || index_types.count(*index_type) == 1);
  }
};

// Per operator, newest first.
std::map<std::string, std::vector<TableRow>> ParseTable(const char* text) {
  std::map<std::string, std::vector<TableRow>> table;
  std::vector<std::string> operators;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipWhitespace())) {
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    const std::vector<std::string> names = absl::StrSplit(cells[0], ' ', absl::SkipWhitespace());
    if (!names.empty()) operators = names;
    const std::string ranks(absl::StripAsciiWhitespace(cells[2]));
    TableRow row;
    row.level = std::string(absl::StripAsciiWhitespace(cells[1]));
    row.min_rank = ranks.front() - '0';
    row.max_rank = ranks.back() - '0';
    row.types = ParseTypes(cells[3]);
    row.index_types = ParseTypes(cells[4]);
    for (const std::string& name : operators) table[name].push_back(row);
  }
  return table;
}

bool GivesIndices(const std::string& name) {
  return name.find("ARG") != std::string::npos || name.find("TOP_K") != std::string::npos;
}

// A descriptor that is valid except for what the arguments determine.
OperatorDesc MakeDesc(const std::string& name, size_t rank, DataType type,
                      std::optional<DataType> index_type) {
  const TensorDesc input = {type, std::vector<uint32_t>(rank, 1), {}};
  std::optional<TensorDesc> indices;
  if (index_type.has_value()) indices = TensorDesc{*index_type, input.sizes, {}};
  const uint32_t last_axis = rank == 0 ? 0 : static_cast<uint32_t>(rank - 1);
  if (name == "ARGMIN") return ArgReduceDesc{Extreme::kMin, input, indices, {0}, {}};
  if (name == "ARGMAX") return ArgReduceDesc{Extreme::kMax, input, indices, {0}, {}};
  if (name == "TOP_K_INCREASING") {
    return TopKDesc{input, std::nullopt, indices, 0, 1, AxisDirection::kIncreasing};
  }
  if (name == "TOP_K_DECREASING") {
    return TopKDesc{input, std::nullopt, indices, 0, 1, AxisDirection::kDecreasing};
  }
  if (name == "HARDMAX_LAST_AXIS") return HardmaxDesc{input, std::nullopt, {last_axis}};
  if (name == "HARDMAX_ANY_AXES") {
    // With rank 1 there is only one axis; with more than two dimensions the choice of axes matters.
    HardmaxDesc desc = {input, std::nullopt, {}};
    for (uint32_t axis = 0; axis <= last_axis; ++axis) desc.axes.push_back(axis);
    return desc;
  }
  if (name == "CUMULATIVE_SUMMATION") return CumulativeSummationDesc{.input = input};
  if (name == "GEMM") return GemmDesc{.a = input, .b = input, .c = input};
  if (name == "CONVOLUTION") return ConvolutionDesc{.input = input, .filter = input, .bias = input};
  if (name == "ELEMENT_WISE_ADD") return ElementWiseAddDesc{input, input, std::nullopt};
  const absl::string_view function = absl::StripPrefix(name, "REDUCE_");
  for (uint32_t i = 0; i < kReduceFunctionCount; ++i) {
    if (ToString(static_cast<ReduceFunction>(i)) == function) {
      return ReduceDesc{static_cast<ReduceFunction>(i), input, indices, {0}};
    }
  }
  ADD_FAILURE() << "No operator is called " << name;
  std::abort();
}

// The expected result for one cell: the level that allows it, or nullopt for none.
std::optional<std::string> AllowedFrom(const std::vector<TableRow>& rows, size_t rank,
                                       const std::string& type,
                                       const std::optional<std::string>& index_type) {
  std::optional<std::string> level;
  for (const TableRow& row : rows) {
    if (row.Allows(rank, type, index_type)) level = row.level;
  }
  return level;
}

TEST(FeatureLevels, MatchEveryCellOfTheTable) {
  const std::map<std::string, std::vector<TableRow>> table = ParseTable(kTable);
  EXPECT_EQ(table.size(), 2 + kReduceFunctionCount + 2 + 2 + 2 + 2);
  std::map<absl::StatusCode, int> counts;
  for (const auto& [name, rows] : table) {
    std::vector<std::optional<std::string>> index_types = {std::nullopt};
    if (GivesIndices(name)) {
      for (const auto& [index_type, unused] : Types()) index_types.push_back(index_type);
    }
    for (const auto& [type, data_type] : Types()) {
      for (const std::optional<std::string>& index_type : index_types) {
        for (size_t rank = 0; rank <= 9; ++rank) {
          // For rank 1, all axes and the last axis are the same.
          const bool is_plain = name == "HARDMAX_ANY_AXES" && rank == 1;
          const std::optional<std::string> from =
              AllowedFrom(is_plain ? table.at("HARDMAX_LAST_AXIS") : rows, rank, type, index_type);
          std::optional<DataType> index;
          if (index_type.has_value()) index = Types().at(*index_type);
          const OperatorDesc desc = MakeDesc(name, rank, data_type, index);
          for (const absl::string_view level_name : absl::StrSplit(kLevels, ' ')) {
            const absl::StatusOr<FeatureLevel> level = FeatureLevelFrom(level_name);
            ASSERT_TRUE(level.ok()) << level.status();
            const absl::Status status = Validate(desc, *level).status();
            const absl::StatusCode expected = !from.has_value() ? absl::StatusCode::kInvalidArgument
                                              : *from <= level_name
                                                  ? absl::StatusCode::kOk
                                                  : absl::StatusCode::kFailedPrecondition;
            ASSERT_EQ(status.code(), expected)
                << name << " level " << level_name << " rank " << rank << " of " << type
                << " to indices " << index_type.value_or("left out") << ": " << status;
            if (expected == absl::StatusCode::kFailedPrecondition) {
              EXPECT_THAT(std::string(status.message()),
                          ::testing::AllOf(
                              ::testing::StartsWith(absl::StrCat("At feature level ", level_name)),
                              ::testing::EndsWith(absl::StrCat("; feature level ", *from,
                                                               " allows this request."))));
            }
            ++counts[expected];
          }
        }
      }
    }
  }
  for (const auto& [code, count] : counts) std::cout << code << ": " << count << " cells\n";
  EXPECT_EQ(counts.size(), 3u);
}

std::set<std::string> NamesOf(DataTypeSet types) {
  std::set<std::string> names;
  for (const auto& [name, type] : Types()) {
    if (types.Contains(type)) names.insert(name);
  }
  return names;
}

void ExpectRows(const char* table, DataTypeSet FeatureLevelRow::*other_types) {
  for (const auto& [name, rows] : ParseTable(table)) {
    const auto schema = std::find_if(Operators().begin(), Operators().end(),
                                     [&](const auto* known) { return known->name == name; });
    ASSERT_NE(schema, Operators().end()) << name;
    std::vector<TableRow> actual;
    for (const FeatureLevelRow& row : (*schema)->support[0].rows) {
      actual.push_back({.level = ToString(row.level),
                        .min_rank = row.min_rank,
                        .max_rank = row.max_rank,
                        .types = NamesOf(row.types),
                        .index_types = NamesOf(row.*other_types)});
    }
    EXPECT_TRUE(actual == rows) << name;
  }
}

TEST(FeatureLevels, OfNamedOperatorsAreThePages) {
  ExpectRows(kNamedTable, &FeatureLevelRow::result_types);
}

TEST(FeatureLevels, OfOperatorsThatMoveElementsAreThePages) {
  ExpectRows(kMovementTable, &FeatureLevelRow::other_types);
}

// Lookups return the newest row of a level, which is correct only if rows never shrink.
TEST(FeatureLevels, NewerRowsAllowEverythingThatOlderOnesDo) {
  for (const OperatorSchema* const schema : Operators()) {
    SCOPED_TRACE(std::string(schema->name));
    for (const SupportTable& table : schema->support) {
      for (size_t i = 1; i < table.rows.size(); ++i) {
        const FeatureLevelRow& newer = table.rows[i - 1];
        const FeatureLevelRow& older = table.rows[i];
        EXPECT_GT(newer.level, older.level);
        EXPECT_LE(newer.min_rank, older.min_rank);
        EXPECT_GE(newer.max_rank, older.max_rank);
        EXPECT_EQ(newer.types | older.types, newer.types);
        EXPECT_EQ(newer.result_types | older.result_types, newer.result_types);
      }
    }
  }
}

TEST(FeatureLevels, AreWrittenAsDirectMlNumbersThem) {
  std::vector<std::string> names;
  for (const FeatureLevel level : kAllFeatureLevels) names.push_back(ToString(level));
  EXPECT_EQ(names, (std::vector<std::string>(absl::StrSplit(kLevels, ' '))));
  EXPECT_EQ(FeatureLevelFrom("5.1").value(), static_cast<FeatureLevel>(0x5100));
  EXPECT_EQ(ToString(kNewestFeatureLevel), "6.4");
}

TEST(FeatureLevels, ParseRefusesUnknownLevels) {
  for (const char* text : {"", "5", "5.3", "51", " 5.1", "5.1 ", "7.0", "DML_FEATURE_LEVEL_5_1"}) {
    const absl::Status status = FeatureLevelFrom(text).status();
    EXPECT_EQ(status.message(),
              absl::StrCat("feature_level \"", text,
                           "\" is none of 1.0, 2.0, 2.1, 3.0, 3.1, 4.0, 4.1, 5.0, 5.1, 5.2, 6.0, "
                           "6.1, 6.2, 6.3, 6.4."));
  }
}

TEST(FeatureLevels, EffectiveRankLeavesOutLeadingSizesOf1) {
  EXPECT_EQ(EffectiveRank({1, 1, 2, 3}), 2u);
  EXPECT_EQ(EffectiveRank({1, 1, 1}), 0u);
  EXPECT_EQ(EffectiveRank({2, 1, 3}), 3u);
  EXPECT_EQ(EffectiveRank({2, 1}), 2u);
}

TEST(FeatureLevels, DataTypeSetsHoldWhatTheyAreGiven) {
  constexpr DataTypeSet set = {DataType::kUint8, DataType::kFloat32};
  EXPECT_EQ(set.ToString(), "FLOAT32, UINT8");
  EXPECT_FALSE(set.Contains(DataType::kInt8));
  EXPECT_FALSE(set.Contains(static_cast<DataType>(32)));
  EXPECT_FALSE(set.Contains(static_cast<DataType>(32 + static_cast<uint32_t>(DataType::kUint8))));
  EXPECT_TRUE(DataTypeSet().empty());
}

}  // namespace
}  // namespace opmill
