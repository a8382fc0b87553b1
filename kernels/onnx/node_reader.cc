#include "kernels/onnx/node_reader.h"

#include "kernels/base/excerpt.h"
#include "kernels/onnx/elements.h"

namespace opmill::onnx {

const Value& NodeReader::input(size_t i) {
  static const Value* const none = new Value();
  if (has(i)) return values_[node_.inputs[i]];
  Refuse("input ", i, " is left out.");
  return *none;
}

bool NodeReader::IsConstant(size_t i) const {
  return has(i) && values_[node_.inputs[i]].constant != nullptr;
}

std::vector<int64_t> NodeReader::Integers(size_t i) {
  const Value& value = input(i);
  if (!ok()) return {};
  if (value.constant == nullptr) {
    Unsupported("the form of its output depends on the values of '", Excerpt(value.name),
                "', which are not known before a run.");
    return {};
  }
  if (value.type.element != ElementType::kInt64 && value.type.element != ElementType::kInt32) {
    Refuse("input ", i, " is ", ToString(value.type), ", not INT64 or INT32.");
    return {};
  }
  std::vector<int64_t> integers(*ElementCount(value.type.sizes));
  for (size_t k = 0; k < integers.size(); ++k) {
    integers[k] = LoadNumber<int64_t>(value.type.element, value.constant->data(), k);
  }
  return integers;
}

std::vector<double> NodeReader::Numbers(size_t i) {
  const Value& value = input(i);
  if (!ok()) return {};
  if (value.constant == nullptr) {
    Unsupported("input ", i, " ('", Excerpt(value.name), "') must be constant.");
    return {};
  }
  std::vector<double> numbers(*ElementCount(value.type.sizes));
  if (ElementBytes(value.type.element) == 0) return {};
  for (size_t k = 0; k < numbers.size(); ++k) {
    numbers[k] = LoadNumber<double>(value.type.element, value.constant->data(), k);
  }
  return numbers;
}

template <typename T>
const T* NodeReader::Get(absl::string_view name, absl::string_view kind) {
  const auto found = node_.attributes.find(std::string(name));
  if (found == node_.attributes.end()) return nullptr;
  const T* const value = std::get_if<T>(&found->second);
  if (value == nullptr) Refuse("attribute '", name, "' is not ", kind, ".");
  return value;
}

int64_t NodeReader::Int(absl::string_view name, int64_t otherwise) {
  const int64_t* const value = Get<int64_t>(name, "an integer");
  return value == nullptr ? otherwise : *value;
}

float NodeReader::Float(absl::string_view name, float otherwise) {
  const float* const value = Get<float>(name, "a float");
  return value == nullptr ? otherwise : *value;
}

std::string NodeReader::String(absl::string_view name, absl::string_view otherwise) {
  const std::string* const value = Get<std::string>(name, "a string");
  return value == nullptr ? std::string(otherwise) : *value;
}

std::vector<int64_t> NodeReader::Ints(absl::string_view name) {
  const auto* const value = Get<std::vector<int64_t>>(name, "a list of integers");
  return value == nullptr ? std::vector<int64_t>() : *value;
}

std::vector<std::string> NodeReader::Strings(absl::string_view name) {
  const auto* const value = Get<std::vector<std::string>>(name, "a list of strings");
  return value == nullptr ? std::vector<std::string>() : *value;
}

size_t NodeReader::Axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) {
    Refuse("axis (", axis, ") is not from ", -rank, " to ", rank - 1, ".");
    return 0;
  }
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

std::vector<size_t> NodeReader::Axes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<size_t> result;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (const int64_t axis : axes) {
    const size_t dimension = Axis(axis, rank);
    if (!ok()) return {};
    if (seen[dimension]) {
      Refuse("axis (", axis, ") is given twice.");
      return {};
    }
    seen[dimension] = true;
    result.push_back(dimension);
  }
  return result;
}

void NodeReader::Add(const absl::Status& status) {
  if (ok() && !status.ok()) status_ = status;
}

void NodeReader::RefuseWith(absl::StatusCode code, const std::string& sentence) {
  if (ok()) status_ = absl::Status(code, absl::StrCat(NameOf(node_), ": ", sentence));
}

}  // namespace opmill::onnx
