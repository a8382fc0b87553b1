#include "server/http/infer_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "inference/grpc_service.pb.h"
#include "kernels/base/half.h"
#include "kernels/base/integer_types.h"
#include "kernels/base/json_text.h"
#include "proto/stack_message.h"
#include "server/http/json_messages.h"
#include "server/http/json_reader.h"
#include "server/http/number_lists.h"
#include "server/models/data_types.h"

namespace opmill {
namespace {

using inference::ModelInferRequest;
using inference::ModelInferResponse;
using json::element;
using simdjson::SUCCESS;

// FLOAT16 and BOOL as types of C++.
struct Half {
  uint16_t bits;
};
struct Bool {
  uint8_t bits;
};

// Calls visit(T()) with the type of the elements.
template <typename Visit>
auto VisitType(absl::string_view datatype, DataType type, const Visit& visit) {
  if (datatype == kBoolName) return visit(Bool());
  if (type == DataType::kFloat32) return visit(float());
  if (type == DataType::kFloat16) return visit(Half());
  return VisitInteger(type, visit);
}

// BOOL has no DataType of its own.
absl::StatusOr<DataType> ElementTypeFrom(absl::string_view datatype, const std::string& field) {
  if (datatype == kBoolName) return DataType::kUint8;
  return DataTypeFrom(datatype, field);
}

// False if the value, an element or a json::Number, is not one of the type.
template <typename Value>
bool ReadElement(const Value& value, float& to) {
  double number = 0;
  if (value.get(number) != SUCCESS) return false;
  to = static_cast<float>(number);
  return std::isfinite(to);
}
template <typename Value>
bool ReadElement(const Value& value, Half& to) {
  double number = 0;
  if (value.get(number) != SUCCESS) return false;
  to.bits = FloatToHalf(number);
  return std::isfinite(HalfToFloat(to.bits));
}
template <typename Value>
bool ReadElement(const Value& value, Bool& to) {
  bool is_true = false;
  uint64_t number = 0;
  if (value.get(is_true) == SUCCESS)
    number = is_true ? 1 : 0;
  else if (value.get(number) != SUCCESS || number > 1)
    return false;
  to.bits = static_cast<uint8_t>(number);
  return true;
}
template <typename Value, typename T>
bool ReadElement(const Value& value, T& to) {
  std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> number = 0;
  if (value.get(number) != SUCCESS || number < std::numeric_limits<T>::min() ||
      number > std::numeric_limits<T>::max()) {
    return false;
  }
  to = static_cast<T>(number);
  return true;
}

// The elements of a tensor: one list, or lists within lists as its shape says.
template <typename T>
class DataReader {
 public:
  DataReader(const std::string& path, absl::string_view datatype, absl::Span<const int64_t> shape,
             json::NumberLists& lists, absl::Span<T> to)
      : path_(path), datatype_(datatype), shape_(shape), lists_(lists), to_(to) {}

  absl::Status Read(element data) {
    const std::optional<absl::string_view> numbers = NumbersOf(data);
    RETURN_IF_ERROR(numbers.has_value() ? ReadNumbers(*numbers, 0) : ReadList(data, 0));
    if (count_ == to_.size()) return absl::OkStatus();
    return InvalidField(
        path_, absl::StrCat(path_, " has ", count_, " elements; the shape has ", to_.size(), "."));
  }

 private:
  absl::Status ReadList(element list, size_t depth) {
    simdjson::dom::array array;
    if (list.get(array) != SUCCESS) return json::Mismatch(path_, list, "a list");
    int64_t length = 0;
    bool is_nested = depth > 0;
    for (const element each : array) {
      ++length;
      if (const std::optional<absl::string_view> numbers = NumbersOf(each)) {
        is_nested = true;
        RETURN_IF_ERROR(ReadNumbers(*numbers, depth + 1));
        continue;
      }
      if (each.is_array()) {
        if (depth + 1 >= shape_.size()) return Ragged();
        is_nested = true;
        RETURN_IF_ERROR(ReadList(each, depth + 1));
        continue;
      }
      if (depth > 0 && depth + 1 != shape_.size()) return Ragged();
      if (count_ == to_.size()) {
        return InvalidField(path_, absl::StrCat(path_, " has more elements than the shape, which ",
                                                "has ", to_.size(), "."));
      }
      if (!ReadElement(each, to_[count_])) {
        return InvalidField(
            path_, absl::StrCat("Element ", count_, " of ", path_, " (",
                                Excerpt(simdjson::minify(each)), ") is not of ", datatype_, "."));
      }
      ++count_;
    }
    return !is_nested || length == shape_[depth] ? absl::OkStatus() : Ragged();
  }

  std::optional<absl::string_view> NumbersOf(element value) {
    std::string_view text;
    if (lists_.empty() || value.get(text) != SUCCESS) return std::nullopt;
    return lists_.Find({text.data(), text.size()});
  }

  // A list that was taken out of the text. Its errors are not returned to callers.
  absl::Status ReadNumbers(absl::string_view numbers, size_t depth) {
    absl::Status not_read = absl::InvalidArgumentError("");
    const char* at = numbers.data();
    const char* const end = at + numbers.size();
    const auto skip_blanks = [&] {
      while (at < end && json::IsBlank(*at)) ++at;
    };
    const size_t first = count_;
    json::Number number;
    while (count_ < to_.size()) {
      skip_blanks();
      at = number.Read(at, end);
      if (at == nullptr || !ReadElement(number, to_[count_])) return not_read;
      ++count_;
      skip_blanks();
      if (at == end) break;
      if (*at++ != ',' || count_ == to_.size()) return not_read;
    }
    const auto length = static_cast<int64_t>(count_ - first);
    const bool has_shape = depth == 0 || (depth + 1 == shape_.size() && length == shape_[depth]);
    return at == end && has_shape ? absl::OkStatus() : not_read;
  }

  absl::Status Ragged() const {
    return InvalidField(path_,
                        absl::StrCat("The nested lists of ", path_, " do not have the shape [",
                                     absl::StrJoin(shape_, ","), "]."));
  }

  const std::string& path_;
  const absl::string_view datatype_;
  const absl::Span<const int64_t> shape_;
  json::NumberLists& lists_;
  const absl::Span<T> to_;
  size_t count_ = 0;
};

// Readers of a parameter of the binary extension.
template <typename Target>
auto BoolInto(Target& to) {
  return [&to](const std::string& path, element value) -> absl::Status {
    ASSIGN_OR_RETURN(to, json::BoolFrom(path, value));
    return absl::OkStatus();
  };
}
auto IntegerInto(std::optional<int64_t>& to) {
  return [&to](const std::string& path, element value) -> absl::Status {
    ASSIGN_OR_RETURN(to, json::IntegerFrom(path, value));
    return absl::OkStatus();
  };
}

// Decodes one request.
class InferDecoder {
 public:
  InferDecoder(const HttpBody& body, size_t json_size, json::NumberLists& lists, ResultForm& form)
      : body_(body), json_size_(json_size), next_binary_(json_size), lists_(lists), form_(form) {}

  absl::Status Read(element root, ModelInferRequest& to) {
    RETURN_IF_ERROR(json::ForEachField(
        "", root, [&](const std::string& path, absl::string_view name, element value) {
          if (name == "id") return ReadString(path, value, *to.mutable_id());
          if (name == "parameters") {
            return ReadParameters(path, value, "binary_data_output", BoolInto(form_.is_binary), to);
          }
          if (name == "inputs") {
            return json::ForEachElement(path, value,
                                        [&](const std::string& each_path, element each) {
                                          return ReadInput(each_path, each, *to.add_inputs());
                                        });
          }
          if (name == "outputs") {
            return json::ForEachElement(path, value,
                                        [&](const std::string& each_path, element each) {
                                          return ReadOutput(each_path, each, *to.add_outputs());
                                        });
          }
          // KServe's client says the model once more.
          if (name == "model_name") return CheckRepeated(path, value, to.model_name());
          if (name == "model_version") return CheckRepeated(path, value, to.model_version());
          return json::UnknownField(path, {"id", "parameters", "inputs", "outputs"});
        }));
    if (next_binary_ == body_.size()) return absl::OkStatus();
    return InvalidField("inputs", absl::StrCat("The request has ", body_.size() - json_size_,
                                               " bytes after its JSON; binary_data_size of the "
                                               "inputs is ",
                                               next_binary_ - json_size_, " in all."));
  }

  std::vector<std::vector<grpc::Slice>> TakeContents() { return std::move(contents_); }

 private:
  static absl::Status ReadString(const std::string& path, element value, std::string& to) {
    ASSIGN_OR_RETURN(const absl::string_view text, json::StringFrom(path, value));
    to = std::string(text);
    return absl::OkStatus();
  }

  static absl::Status CheckRepeated(const std::string& path, element value,
                                    const std::string& expected) {
    if (value.is_null()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const absl::string_view text, json::StringFrom(path, value));
    if (text == expected) return absl::OkStatus();
    return InvalidField(path,
                        absl::StrCat(path, " (\"", Excerpt(text), "\") is not that of the path, \"",
                                     Excerpt(expected), "\"."));
  }

  // read_own(path, value) takes the parameter that is named `own`; the others go to the message.
  template <typename Message, typename ReadOwn>
  static absl::Status ReadParameters(const std::string& path, element value, absl::string_view own,
                                     const ReadOwn& read_own, Message& to) {
    return json::ForEachField(
        path, value, [&](const std::string& each_path, absl::string_view name, element each) {
          if (name == own) return read_own(each_path, each);
          return json::ReadParameter(each_path, name, each,
                                     (*to.mutable_parameters())[std::string(name)]);
        });
  }

  absl::Status ReadInput(const std::string& path, element value,
                         ModelInferRequest::InferInputTensor& to) {
    std::optional<element> data;
    std::optional<int64_t> binary_bytes;
    RETURN_IF_ERROR(json::ForEachField(
        path, value, [&](const std::string& each_path, absl::string_view name, element each) {
          if (name == "name") return ReadString(each_path, each, *to.mutable_name());
          if (name == "datatype") return ReadString(each_path, each, *to.mutable_datatype());
          if (name == "shape") return ReadShape(each_path, each, to);
          if (name == "parameters") {
            return ReadParameters(each_path, each, "binary_data_size", IntegerInto(binary_bytes),
                                  to);
          }
          if (name == "data") {
            data = each;
            return absl::OkStatus();
          }
          return json::UnknownField(each_path, {"name", "datatype", "shape", "parameters", "data"});
        }));
    if (binary_bytes.has_value()) {
      if (data.has_value()) {
        const std::string field = json::FieldPath(path, "data");
        return InvalidField(field, absl::StrCat(field, " is given beside binary_data_size."));
      }
      return TakeBinary(path, *binary_bytes, to);
    }
    if (data.has_value()) return ReadData(path, *data, to);
    if (to.parameters().contains("shared_memory_region") || to.parameters().contains("tensor")) {
      return absl::OkStatus();
    }
    return InvalidField(path, absl::StrCat(path,
                                           " has no elements: it has neither data nor "
                                           "parameters.binary_data_size."));
  }

  static absl::Status ReadShape(const std::string& path, element value,
                                ModelInferRequest::InferInputTensor& to) {
    return json::ForEachElement(
        path, value, [&](const std::string& each_path, element each) -> absl::Status {
          ASSIGN_OR_RETURN(const int64_t size, json::IntegerFrom(each_path, each));
          to.add_shape(size);
          return absl::OkStatus();
        });
  }

  absl::Status ReadOutput(const std::string& path, element value,
                          ModelInferRequest::InferRequestedOutputTensor& to) {
    std::optional<bool> is_binary;
    RETURN_IF_ERROR(json::ForEachField(
        path, value, [&](const std::string& each_path, absl::string_view name, element each) {
          if (name == "name") return ReadString(each_path, each, *to.mutable_name());
          if (name == "parameters") {
            return ReadParameters(each_path, each, "binary_data", BoolInto(is_binary), to);
          }
          return json::UnknownField(each_path, {"name", "parameters"});
        }));
    if (is_binary.has_value()) form_.is_binary_output[to.name()] = *is_binary;
    if (to.parameters().contains("shared_memory_region")) form_.shared_outputs.insert(to.name());
    return absl::OkStatus();
  }

  absl::Status TakeBinary(const std::string& path, int64_t bytes,
                          const ModelInferRequest::InferInputTensor& tensor) {
    const std::string field = absl::StrCat(path, ".parameters.binary_data_size");
    const size_t left = body_.size() - next_binary_;
    if (bytes < 0 || static_cast<uint64_t>(bytes) > left) {
      return InvalidField(field,
                          absl::StrCat(field, " (", bytes, ") is not at least 0 and at most ", left,
                                       ", the bytes that follow."));
    }
    ASSIGN_OR_RETURN(const DataType type,
                     ElementTypeFrom(tensor.datatype(), json::FieldPath(path, "datatype")));
    const std::optional<uint64_t> count = CountOf(tensor);
    if (count.has_value() && *count * ElementBytes(type) != static_cast<uint64_t>(bytes)) {
      return InvalidField(field, absl::StrCat(field, " is ", bytes, "; ", tensor.datatype(), "[",
                                              absl::StrJoin(tensor.shape(), ","), "] takes ",
                                              *count * ElementBytes(type), "."));
    }
    contents_.push_back(body_.Slices(next_binary_, static_cast<size_t>(bytes)));
    next_binary_ += static_cast<size_t>(bytes);
    return absl::OkStatus();
  }

  absl::Status ReadData(const std::string& path, element data,
                        const ModelInferRequest::InferInputTensor& tensor) {
    const std::string field = json::FieldPath(path, "data");
    ASSIGN_OR_RETURN(const DataType type,
                     ElementTypeFrom(tensor.datatype(), json::FieldPath(path, "datatype")));
    // An element takes two bytes, with its comma.
    const std::optional<uint64_t> count = CountOf(tensor);
    if (!count.has_value() || *count > json_size_ / 2) {
      return InvalidField(field, absl::StrCat(field, " has fewer elements than the shape [",
                                              absl::StrJoin(tensor.shape(), ","), "]."));
    }
    return VisitType(tensor.datatype(), type, [&](auto example) -> absl::Status {
      using T = decltype(example);
      const size_t size = static_cast<size_t>(*count);
      auto elements = std::make_unique_for_overwrite<T[]>(size);
      RETURN_IF_ERROR(DataReader<T>(field, tensor.datatype(), tensor.shape(), lists_,
                                    absl::MakeSpan(elements.get(), size))
                          .Read(data));
      T* const begin = elements.release();  // to the slice
      contents_.push_back({grpc::Slice(
          begin, size * sizeof(T), [](void* owned) { delete[] static_cast<T*>(owned); }, begin)});
      return absl::OkStatus();
    });
  }

  // Nullopt if a size is negative, which the service refuses, or there are too many elements.
  static std::optional<uint64_t> CountOf(const ModelInferRequest::InferInputTensor& tensor) {
    constexpr uint64_t kMost = uint64_t{1} << 40;
    uint64_t count = 1;
    for (const int64_t size : tensor.shape()) {
      if (size < 0 || static_cast<uint64_t>(size) > kMost / std::max<uint64_t>(count, 1)) {
        return std::nullopt;
      }
      count *= static_cast<uint64_t>(size);
    }
    return count;
  }

  const HttpBody& body_;
  const size_t json_size_;
  size_t next_binary_;
  json::NumberLists& lists_;
  ResultForm& form_;
  std::vector<std::vector<grpc::Slice>> contents_;
};

// The most characters of an element, with its comma.
template <typename T>
constexpr size_t kMostCharacters = std::numeric_limits<T>::digits10 + 3;
template <>
constexpr size_t kMostCharacters<float> = 17;  // -1.17549435e-38
template <>
constexpr size_t kMostCharacters<Half> = 17;
template <>
constexpr size_t kMostCharacters<Bool> = 6;

// False if JSON has no such number.
template <typename T>
bool AppendElement(T value, char*& to) {
  if constexpr (std::is_same_v<T, Half>) {
    return AppendElement(HalfToFloat(value.bits), to);
  } else if constexpr (std::is_same_v<T, Bool>) {
    const absl::string_view word = value.bits != 0 ? "true" : "false";
    to = std::copy(word.begin(), word.end(), to);
  } else {
    if constexpr (std::is_same_v<T, float>) {
      if (!std::isfinite(value)) return false;
      if (value == 0 && std::signbit(value)) {  // parsers take -0 for an integer
        constexpr absl::string_view kMinusZero = "-0.0";
        to = std::copy(kMinusZero.begin(), kMinusZero.end(), to);
        return true;
      }
    }
    to = std::to_chars(to, to + kMostCharacters<T>, value).ptr;
  }
  return true;
}

// The elements of `bytes`, without brackets. They come in pieces, whose borders may be within
// elements.
template <typename T>
absl::Status AppendElements(const Payload& bytes, const std::string& output, size_t max_json_bytes,
                            std::string& json) {
  const size_t count = bytes.size() / sizeof(T);
  if (count > max_json_bytes / kMostCharacters<T>) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "The output ", output, " has ", count, " elements; as JSON, at most ",
        max_json_bytes / kMostCharacters<T>,
        " are sent. Request it with the parameter binary_data of the output, or binary_data_output "
        "of the request."));
  }
  const size_t begin = json.size();
  json.resize(begin + count * kMostCharacters<T>);
  char* to = json.data() + begin;
  size_t index = 0;
  std::byte partial[sizeof(T)];
  size_t partial_bytes = 0;
  bool is_number = true;
  const auto append = [&](const std::byte* from) {
    T value;
    std::memcpy(&value, from, sizeof(T));
    if (index++ > 0) *to++ = ',';
    is_number = is_number && AppendElement(value, to);
    if (!is_number) --index;
  };
  bytes.ForEachPart([&](absl::Span<const std::byte> part) {
    while (!part.empty() && is_number) {
      if (partial_bytes == 0 && part.size() >= sizeof(T)) {
        append(part.data());
        part.remove_prefix(sizeof(T));
        continue;
      }
      const size_t some = std::min(part.size(), sizeof(T) - partial_bytes);
      std::memcpy(partial + partial_bytes, part.data(), some);
      partial_bytes += some;
      part.remove_prefix(some);
      if (partial_bytes < sizeof(T)) continue;
      append(partial);
      partial_bytes = 0;
    }
  });
  json.resize(static_cast<size_t>(to - json.data()));
  if (is_number) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "Element ", index, " of the output ", output,
      " is NaN or infinite, which JSON cannot hold. Request it with the parameter binary_data of "
      "the output, or binary_data_output of the request."));
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> DecodeInfer(const std::string& model, const std::string& version,
                                             const HttpBody& body, size_t json_size,
                                             ResultForm& form, TakeLists take_lists) {
  const auto decode = [&](json::Document& document, json::NumberLists& lists,
                          ResultForm& to) -> absl::StatusOr<grpc::ByteBuffer> {
    StackMessage<ModelInferRequest> request;
    request->set_model_name(model);
    request->set_model_version(version);
    ASSIGN_OR_RETURN(const element root, document.Parse());
    InferDecoder decoder(body, json_size, lists, to);
    RETURN_IF_ERROR(decoder.Read(root, *request));
    return JoinParts(*request, ModelInferRequest::kRawInputContentsFieldNumber,
                     decoder.TakeContents());
  };
  json::NumberLists lists;
  if (take_lists == TakeLists::kYes) {
    const auto text = std::make_unique_for_overwrite<char[]>(json_size);
    body.CopyTo(0, json_size, text.get());
    const std::string rest = lists.TakeFrom({text.get(), json_size});
    if (!lists.empty()) {
      json::Document document(rest.size());
      rest.copy(document.text(), rest.size());
      ResultForm form_of_rest = form;
      absl::StatusOr<grpc::ByteBuffer> decoded = decode(document, lists, form_of_rest);
      if (decoded.ok() && lists.all_found()) {
        form = std::move(form_of_rest);
        return decoded;
      }
    }
    lists = {};
  }
  json::Document document(json_size);
  body.CopyTo(0, json_size, document.text());
  return decode(document, lists, form);
}

absl::StatusOr<InferResult> EncodeResult(grpc::ByteBuffer& response, const ResultForm& form,
                                         size_t max_json_bytes) {
  InferResult result;
  ASSIGN_OR_RETURN(result.message, SplitMessage::Take(response, PayloadKind::kInferenceResult));
  StackMessage<ModelInferResponse> header;
  if (!header->ParseFromString(result.message->header())) {
    return absl::InternalError("The result is not a ModelInferResponse.");
  }
  std::string& json = result.json;
  json += "{\"model_name\":";
  AppendJsonString(json, header->model_name());
  json += ",\"model_version\":";
  AppendJsonString(json, header->model_version());
  if (!header->id().empty()) {
    json += ",\"id\":";
    AppendJsonString(json, header->id());
  }
  json += ",\"outputs\":[";
  for (int i = 0; i < header->outputs_size(); ++i) {
    const ModelInferResponse::InferOutputTensor& output = header->outputs(i);
    const Payload& bytes = result.message->chunks()[static_cast<size_t>(i)].data;
    if (i > 0) json += ',';
    json += "{\"name\":";
    AppendJsonString(json, output.name());
    absl::StrAppend(&json, ",\"datatype\":\"", output.datatype(), "\",\"shape\":[",
                    absl::StrJoin(output.shape(), ","), "]");
    if (form.shared_outputs.contains(output.name())) {
      json += '}';
    } else if (form.IsBinary(output.name())) {
      absl::StrAppend(&json, ",\"parameters\":{\"binary_data_size\":", bytes.size(), "}}");
      result.has_binary = true;
      bytes.ForEachPart([&](absl::Span<const std::byte> part) { result.binary.push_back(part); });
    } else {
      ASSIGN_OR_RETURN(const DataType type, ElementTypeFrom(output.datatype(), "datatype"));
      json += ",\"data\":[";
      RETURN_IF_ERROR(VisitType(output.datatype(), type, [&](auto example) {
        return AppendElements<decltype(example)>(
            bytes, output.name(), max_json_bytes - std::min(max_json_bytes, json.size()), json);
      }));
      json += "]}";
    }
  }
  json += "]}";
  return result;
}

}  // namespace opmill
