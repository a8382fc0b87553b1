// The table of feature levels in docs/operators.md is generated from the schemas:
//
//   OPMILL_UPDATE_DOCS=1 ./dev exec build/release/tests/kernels/operator_tables_test
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "kernels/descriptor/operator_schema.h"

namespace opmill {
namespace {

constexpr char kBegin[] = "<!-- made from the schemas: operator_tables_test -->\n";
constexpr char kEnd[] = "<!-- end -->\n";
const std::string kPage = std::string(OPMILL_SOURCE_DIRECTORY) + "/docs/operators.md";

// "8 types", "F I32 U32": the abbreviations that the page explains.
std::string TypesText(DataTypeSet types) {
  if (types == kTenTypes) return "10 types";
  if (types == kEightTypes) return "8 types";
  std::vector<std::string> words;
  for (const DataType type : types.types()) {
    if (type == DataType::kFloat16) continue;  // F stands for both floats
    const std::string name(ToString(type));
    words.push_back(IsFloat(type) ? "F"
                                  : absl::StrCat(name.substr(0, 1),
                                                 name.substr(name.find_first_of("0123456789"))));
  }
  return absl::StrJoin(words, " ");
}

std::string LabelOf(const OperatorSchema& schema, const SupportTable& table) {
  std::string label = absl::StrCat("`", schema.name, "`");
  if (schema.has_functions()) {
    std::vector<absl::string_view> functions;
    const auto& choices = schema.attributes[schema.function_attribute].choices;
    for (size_t i = 0; i < choices.size(); ++i) {
      if ((table.functions >> i & 1) != 0) functions.push_back(choices[i]);
    }
    absl::StrAppend(&label, " ", absl::StrJoin(functions, ", "));
  }
  if (!table.condition.empty()) absl::StrAppend(&label, " where ", table.condition);
  return label;
}

std::string FeatureLevelTable() {
  std::string text =
      "| operator | level | dimensions | inputs, and output of values | output of indices |\n"
      "|---|---|---|---|---|\n";
  for (const OperatorSchema* const schema : Operators()) {
    for (const SupportTable& table : schema->support) {
      std::string label = LabelOf(*schema, table);
      for (const FeatureLevelRow& row : table.rows) {
        const std::string ranks = row.min_rank == row.max_rank
                                      ? absl::StrCat(row.min_rank)
                                      : absl::StrCat(row.min_rank, "-", row.max_rank);
        absl::StrAppend(&text, "| ", label, label.empty() ? "| " : " | ", ToString(row.level),
                        " | ", ranks, " | ", TypesText(row.types), " | ",
                        TypesText(row.index_types), row.index_types.empty() ? "|\n" : " |\n");
        label.clear();
      }
    }
  }
  return text;
}

TEST(OperatorTables, ThePageHasTheRowsOfTheSchemas) {
  std::ifstream file(kPage);
  std::stringstream content;
  content << file.rdbuf();
  std::string page = content.str();
  const size_t begin = page.find(kBegin);
  const size_t end = page.find(kEnd);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << kPage;
  const size_t first = begin + sizeof(kBegin) - 1;
  const std::string expected = FeatureLevelTable();
  if (std::getenv("OPMILL_UPDATE_DOCS") != nullptr) {
    page.replace(first, end - first, expected);
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), expected);
}

}  // namespace
}  // namespace opmill
