// The tables of feature levels and of element-wise operators in docs/operators.md, and
// python/named_operators.json, from which the Python package is generated, are generated from the
// schemas:
//
//   OPMILL_UPDATE_DOCS=1 ./dev exec build/release/tests/kernels/operator_tables_test
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "kernels/base/json_text.h"
#include "kernels/descriptor/operator_schema.h"
#include "kernels/operators/elementwise/element_wise.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

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
      "| operator | level | dimensions | inputs, and output of values | output of another type |\n"
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
                        TypesText(row.result_types), row.result_types.empty() ? "|\n" : " |\n");
        label.clear();
      }
    }
  }
  return text;
}

// "`alpha` (0.01)"
std::string AttributesText(const OperatorSchema& schema) {
  std::vector<std::string> words;
  for (const AttributeSchema& attribute : schema.attributes) {
    words.push_back(absl::StrCat("`", attribute.name, "`"));
    if (!attribute.default_text.empty()) {
      absl::StrAppend(&words.back(), " (", attribute.default_text, ")");
    }
  }
  return absl::StrJoin(words, ", ");
}

std::string ElementWiseTable() {
  std::string text =
      "| operator | result | attributes (default) | error |\n"
      "|---|---|---|---|\n";
  for (size_t i = 0; i < kElementWiseOps; ++i) {
    const auto op = static_cast<ElementWiseOp>(i);
    const OperatorSchema& schema = SchemaOf(op);
    const double ulps = RowOf(op).ulps;
    const std::string summary = absl::StrReplaceAll(schema.summary, {{"|", "\\|"}});
    const std::string alias = schema.alias.empty() ? "" : absl::StrCat(" (`", schema.alias, "`)");
    absl::StrAppend(&text, "| `", schema.name, "`", alias, " | ", summary, " | ",
                    AttributesText(schema), " | ", ulps == 0 ? "" : absl::StrCat(ulps), " |\n");
  }
  return text;
}

std::string MovementTable() {
  std::string text = "| operator | result | attributes (default) |\n|---|---|---|\n";
  for (const OperatorSchema* const schema : Operators()) {
    if (schema->family != OperatorFamily::kMovement) continue;
    const std::string alias = schema->alias.empty() ? "" : absl::StrCat(" (`", schema->alias, "`)");
    absl::StrAppend(&text, "| `", schema->name, "`", alias, " | ", schema->summary, " | ",
                    AttributesText(*schema), " |\n");
  }
  return text;
}

std::string KindText(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::kChoice:
      return "choice";
    case AttributeKind::kFloat:
      return "float";
    case AttributeKind::kScalar:
      return "scalar";
    case AttributeKind::kAxis:
      return "axis";
    case AttributeKind::kAxes:
      return "axes";
    case AttributeKind::kFlag:
      return "flag";
    case AttributeKind::kNumber:
    case AttributeKind::kSigned:
      return "integer";
    case AttributeKind::kNumbers:
    case AttributeKind::kSignedNumbers:
      return "integers";
    case AttributeKind::kFloatNumbers:
      return "floats";
  }
  return "unknown";
}

std::string ResultText(const OperatorSchema& schema) {
  const std::optional<ElementWiseOp> op = ElementWiseOpOf(schema);
  if (!op.has_value()) {
    const bool is_moved = schema.family == OperatorFamily::kMovement;
    return schema.outputs.size() > 1 ? "computed pair" : is_moved ? "moved" : "computed";
  }
  const ElementWiseResult result = RowOf(*op).result;
  return result == ElementWiseResult::kTruth  ? "truth"
         : result == ElementWiseResult::kCast ? "cast"
                                              : "value";
}

std::string AttributeJson(const AttributeSchema& attribute) {
  std::vector<std::string> choices;
  for (const absl::string_view choice : attribute.choices) choices.push_back(JsonString(choice));
  return absl::StrCat("{\"name\": ", JsonString(attribute.name),
                      ", \"kind\": ", JsonString(KindText(attribute.kind)),
                      ", \"default\": ", JsonString(attribute.default_text), ", \"choices\": [",
                      absl::StrJoin(choices, ", "), "]}");
}

// An operator a line: element-wise ones, and those without a message of their own.
std::string NamedOperatorsJson() {
  std::vector<std::string> lines;
  for (const OperatorSchema* const schema : Operators()) {
    const std::optional<ElementWiseOp> op = ElementWiseOpOf(*schema);
    if (!op.has_value() && schema->has_own_message()) continue;
    std::vector<std::string> inputs;
    for (const TensorSchema& input : schema->inputs) inputs.push_back(JsonString(input.name));
    std::vector<std::string> attributes;
    for (const AttributeSchema& each : schema->attributes)
      attributes.push_back(AttributeJson(each));
    const size_t optional = schema->inputs.size() - schema->required_inputs();
    const bool has_mask = optional == 1 && schema->inputs.back().type == TypeVariable::kOther;
    lines.push_back(absl::StrCat(" {\"name\": ", JsonString(schema->name),
                                 ", \"alias\": ", JsonString(schema->alias),
                                 ", \"summary\": ", JsonString(schema->summary),
                                 ", \"ulps\": ", op.has_value() ? RowOf(*op).ulps : 0,
                                 ", \"result\": ", JsonString(ResultText(*schema)),
                                 ",\n  \"inputs\": [", absl::StrJoin(inputs, ", "), "]",
                                 optional > 1    ? ", \"is_variadic\": true"
                                 : optional == 1 ? ", \"last_is_optional\": true"
                                                 : "",
                                 has_mask ? ", \"last_is_mask\": true" : "", ", \"attributes\": [",
                                 absl::StrJoin(attributes, ", "), "]}"));
  }
  return absl::StrCat("[\n", absl::StrJoin(lines, ",\n"), "\n]\n");
}

std::string ContentOf(const std::string& path) {
  std::stringstream content;
  content << std::ifstream(path).rdbuf();
  return content.str();
}

bool MayUpdate() { return std::getenv("OPMILL_UPDATE_DOCS") != nullptr; }

// Checks what is between two marks of the page, or replaces it.
void ExpectPart(const char* begin_mark, const char* end_mark, const std::string& expected) {
  std::string page = ContentOf(kPage);
  const size_t begin = page.find(begin_mark);
  const size_t end = page.find(end_mark);
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << kPage;
  const size_t first = begin + std::string(begin_mark).size();
  if (MayUpdate()) {
    page.replace(first, end - first, expected);
    std::ofstream(kPage) << page;
    return;
  }
  EXPECT_EQ(page.substr(first, end - first), expected);
}

TEST(OperatorTables, ThePageHasTheRowsOfTheSchemas) {
  ExpectPart("<!-- made from the schemas: operator_tables_test -->\n", "<!-- end -->\n",
             FeatureLevelTable());
}

TEST(OperatorTables, ThePythonPackageIsGeneratedFromTheSchemas) {
  const std::string path = std::string(OPMILL_SOURCE_DIRECTORY) + "/python/named_operators.json";
  if (MayUpdate()) {
    std::ofstream(path) << NamedOperatorsJson();
    return;
  }
  EXPECT_EQ(ContentOf(path), NamedOperatorsJson());
}

TEST(OperatorTables, ThePageHasTheElementWiseOperators) {
  ExpectPart("<!-- made from the rows: operator_tables_test -->\n", "<!-- end of rows -->\n",
             ElementWiseTable());
}

TEST(OperatorTables, ThePageHasTheOperatorsThatMoveElements) {
  ExpectPart("<!-- made from the schemas of moves: operator_tables_test -->\n",
             "<!-- end of moves -->\n", MovementTable());
}

}  // namespace
}  // namespace opmill
