#include "client/cli/command_line_operators.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/operator_flags.h"
#include "kernels/base/nearest.h"
#include "kernels/operators/operator_list.h"

namespace opmill {
namespace {

// Names of other libraries.
struct Alias {
  absl::string_view name;
  absl::string_view of;
};
constexpr Alias kOperatorAliases[] = {{"cumulative_sum", "cumulative_summation"},
                                      {"cumsum", "cumulative_summation"}};
constexpr Alias kChoiceAliases[] = {{"mean", "average"},
                                    {"prod", "multiply"},
                                    {"ip", "inner_product"},
                                    {"lse", "log_sum_exp"},
                                    {"logsumexp", "log_sum_exp"}};

// The name in lower case, followed by its aliases.
std::vector<std::string> WithAliases(absl::string_view name, absl::Span<const Alias> aliases) {
  std::vector<std::string> names = {absl::AsciiStrToLower(name)};
  for (const Alias& alias : aliases) {
    if (alias.of == names[0]) names.emplace_back(alias.name);
  }
  return names;
}
std::vector<std::string> NamesOfChoice(absl::string_view choice) {
  return WithAliases(choice, kChoiceAliases);
}
std::vector<std::string> NamesOf(const OperatorSchema& schema) {
  std::vector<std::string> names = WithAliases(schema.name, kOperatorAliases);
  if (!schema.alias.empty()) names.emplace_back(schema.alias);
  return names;
}

// "log_sum_exp (or lse, logsumexp)"
std::string Shown(std::vector<std::string> names) {
  const std::string first = names[0];
  names.erase(names.begin());
  return names.empty() ? first : absl::StrCat(first, " (or ", absl::StrJoin(names, ", "), ")");
}

// Adds the names that are new. An operator precedes a function of the same name.
void AddNames(std::vector<std::string> added, const OperatorSchema* schema,
              std::optional<uint32_t> function, std::vector<NamedOperator>& names) {
  for (std::string& each : added) {
    const bool is_known =
        absl::c_any_of(names, [&](const NamedOperator& known) { return known.name == each; });
    if (!is_known) names.push_back({std::move(each), schema, function});
  }
}

std::vector<NamedOperator> MakeNames() {
  std::vector<NamedOperator> names;
  for (const OperatorSchema* const schema : Operators()) {
    AddNames(NamesOf(*schema), schema, std::nullopt, names);
  }
  for (const OperatorSchema* const schema : Operators()) {
    if (!schema->has_functions()) continue;
    const auto& functions = schema->attributes[schema->function_attribute].choices;
    for (uint32_t i = 0; i < functions.size(); ++i) {
      AddNames(NamesOfChoice(functions[i]), schema, i, names);
    }
  }
  return names;
}

const std::vector<NamedOperator>& AllNames() {
  static const auto* const names = new std::vector<NamedOperator>(MakeNames());
  return *names;
}

}  // namespace

std::vector<std::string> OperatorNames() {
  std::vector<std::string> names;
  for (const NamedOperator& each : AllNames()) names.push_back(each.name);
  return names;
}

std::string OperatorList() {
  std::vector<std::string> operators;
  std::string functions;
  for (const OperatorSchema* const schema : Operators()) {
    operators.push_back(Shown(NamesOf(*schema)));
    if (!schema->has_functions()) continue;
    absl::StrAppend(&functions, "; or a function of ", schema->name, ":");
    for (const absl::string_view choice : schema->attributes[schema->function_attribute].choices) {
      std::vector<std::string> names = NamesOfChoice(choice);
      std::erase_if(names, [](const std::string& name) {  // "multiply" is an operator
        return !FindOperatorName(name)->function.has_value();
      });
      if (!names.empty()) absl::StrAppend(&functions, " ", Shown(std::move(names)));
    }
  }
  return absl::StrCat(absl::StrJoin(operators, ", "), functions);
}

std::vector<std::string> ChoiceNames(const AttributeSchema& attribute) {
  std::vector<std::string> names;
  for (const absl::string_view choice : attribute.choices) {
    names.push_back(absl::AsciiStrToLower(choice));
  }
  return names;
}

std::string ChoiceList(const AttributeSchema& attribute) {
  return absl::StrJoin(attribute.choices, " ", [](std::string* out, absl::string_view choice) {
    out->append(Shown(NamesOfChoice(choice)));
  });
}

const NamedOperator* FindOperatorName(absl::string_view name) {
  const auto found = absl::c_find_if(
      AllNames(), [name](const NamedOperator& known) { return known.name == name; });
  return found == AllNames().end() ? nullptr : &*found;
}

absl::StatusOr<uint32_t> ParseChoice(const OperatorSchema& schema, const AttributeSchema& attribute,
                                     absl::string_view name) {
  std::vector<std::string> known;
  std::vector<std::string> shown;
  const std::string wanted = absl::AsciiStrToLower(name);
  for (uint32_t value = 0; value < attribute.choices.size(); ++value) {
    for (std::string& each : NamesOfChoice(attribute.choices[value])) {
      if (each == wanted) return value;
      known.push_back(std::move(each));
    }
    shown.push_back(Shown(NamesOfChoice(attribute.choices[value])));
  }
  const std::string flag = FlagOf(attribute);
  const bool is_function =
      schema.has_functions() && &schema.attributes[schema.function_attribute] == &attribute;
  return absl::InvalidArgumentError(absl::StrCat(
      "There is no ", is_function ? absl::StrCat(schema.name, " ", flag) : flag, " \"", name,
      "\"; the choices are ", absl::StrJoin(shown, shown.size() == 2 ? " and " : ", "), ".",
      DidYouMean(wanted, known)));
}

}  // namespace opmill
