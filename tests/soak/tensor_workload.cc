#include "tests/soak/tensor_workload.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"

namespace opmill {
namespace {

using Code = absl::StatusCode;

constexpr uint32_t kWidth = 64;
// Few shapes, because a software device takes seconds to compile each of them.
constexpr uint32_t kStep = 64;  // rows
constexpr uint32_t kMostSteps = 8;
constexpr size_t kMostTensors = 6;
constexpr uint32_t kQueries = 2;
constexpr uint32_t kNearest = 5;
// Of tensors that their caller abandons.
constexpr int kLeastLease = 1;
constexpr int kLeases = 3;  // seconds beyond that: 0, 1 or 2

std::vector<float> Numbers(Random& random, size_t rows) {
  std::vector<float> numbers(rows * kWidth);
  for (float& each : numbers) each = static_cast<float>(random.Below(7)) - 3;
  return numbers;
}

void AddInput(v1::NamedOperatorDesc& desc, v1::DataType type, uint32_t rows, uint32_t columns) {
  v1::TensorDesc& tensor = *desc.add_inputs();
  tensor.set_data_type(type);
  tensor.add_sizes(rows);
  tensor.add_sizes(columns);
}

v1::OperatorDesc Named(const std::string& name, const std::vector<size_t>& rows) {
  v1::OperatorDesc desc;
  desc.mutable_named()->set_name(name);
  for (const size_t each : rows) {
    AddInput(*desc.mutable_named(), v1::DATA_TYPE_FLOAT32, static_cast<uint32_t>(each), kWidth);
  }
  return desc;
}

template <typename T>
InputBytes BytesOf(const std::vector<T>& elements) {
  const auto copy = std::make_shared<std::vector<T>>(elements);
  return {reinterpret_cast<const std::byte*>(copy->data()), copy->size() * sizeof(T), copy};
}

template <typename T>
std::vector<T> ElementsOf(const OutputTensor& output) {
  std::vector<T> elements(output.bytes.size() / sizeof(T));
  std::memcpy(elements.data(), output.bytes.data(), elements.size() * sizeof(T));
  return elements;
}

// Of the query's inner products with the vectors, the indices of the greatest, of equal ones the
// lowest first.
std::vector<uint32_t> Nearest(absl::Span<const float> query, absl::Span<const float> vectors) {
  std::vector<float> scores;
  for (size_t at = 0; at < vectors.size(); at += kWidth) {
    scores.push_back(std::inner_product(query.begin(), query.end(), vectors.begin() + at, 0.0f));
  }
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
  order.resize(kNearest);
  return order;
}

}  // namespace

void TensorWorkload::DoOne(Client& client, Random& random) {
  const uint64_t choice = random.Below(100);
  if (tensors_.empty() || choice < 12) return Put(client, random);
  if (choice < 20) return Abandon(client, random);
  if (choice < 40) return Append(client, random);
  if (choice < 50) return Write(client, random);
  if (choice < 58) return Delete(client, random);
  if (choice < 70) return Read(client, random);
  if (choice < 82) return Multiply(client, random);
  Search(client, random);
}

void TensorWorkload::DeleteAll(Client& client) {
  for (const auto& [name, tensor] : tensors_) {
    report_("delete", client.DeleteTensor(name), LossCodes());
  }
  tensors_.clear();
}

TensorWorkload::Tensors::value_type* TensorWorkload::Pick(Random& random) {
  if (tensors_.empty()) return nullptr;
  return &*std::next(tensors_.begin(), static_cast<std::ptrdiff_t>(random.Below(tensors_.size())));
}

std::vector<Code> TensorWorkload::LossCodes() const {
  // A lease ends while its caller waits for a server that rests.
  std::vector<Code> codes;
  if (options_.may_be_lost || options_.may_be_killed) codes.push_back(Code::kNotFound);
  if (options_.may_be_lost) codes.push_back(Code::kUnavailable);
  return codes;
}

absl::Status TensorWorkload::Keep(Client& client, const std::vector<float>& rows,
                                  v1::ResidentOutput to, const std::string& action) {
  if (options_.may_be_killed && to.kind() == v1::ResidentOutput::KIND_PUT && !to.has_lease()) {
    to.mutable_lease()->set_seconds(kLeastLease + kLeases);
  }
  MemorySink sink;
  const absl::Status kept =
      client
          .Execute(Named("identity", {rows.size() / kWidth}), BytesOf(rows), sink,
                   {.timeout = options_.patience, .resident_outputs = {to}})
          .status();
  report_(action, kept, LossCodes());
  return kept;
}

void TensorWorkload::Put(Client& client, Random& random) {
  if (tensors_.size() >= kMostTensors) return Delete(client, random);
  // At times in place of an old one.
  Tensors::value_type* const old = random.OneIn(3) ? Pick(random) : nullptr;
  const std::string name =
      old != nullptr ? old->first : absl::StrCat(options_.prefix, "/", next_++);
  const auto steps = static_cast<uint32_t>(1 + random.Below(kMostSteps / 2));
  Tensor tensor = {.elements = Numbers(random, steps * kStep), .capacity = kMostSteps * kStep};
  v1::ResidentOutput to;
  to.set_name(name);
  to.set_kind(v1::ResidentOutput::KIND_PUT);
  to.set_capacity_rows(tensor.capacity);
  if (Keep(client, tensor.elements, to, "put").ok()) {
    tensors_[name] = std::move(tensor);
  } else {
    tensors_.erase(name);
  }
}

void TensorWorkload::Abandon(Client& client, Random& random) {
  v1::ResidentOutput to;
  to.set_name(absl::StrCat(options_.prefix, "/", next_++));
  to.set_kind(v1::ResidentOutput::KIND_PUT);
  to.mutable_lease()->set_seconds(kLeastLease + static_cast<int64_t>(random.Below(kLeases)));
  // Keep fails only if the server does.
  Keep(client, Numbers(random, kStep), to, "lease").IgnoreError();
}

void TensorWorkload::Append(Client& client, Random& random) {
  Tensors::value_type* const picked = Pick(random);
  Tensor& tensor = picked->second;
  const std::vector<float> rows = Numbers(random, kStep);
  v1::ResidentOutput to;
  to.set_name(picked->first);
  to.set_kind(v1::ResidentOutput::KIND_APPEND);
  if (tensor.elements.size() + rows.size() > size_t{tensor.capacity} * kWidth) {
    return Delete(client, random);
  }
  if (Keep(client, rows, to, "append").ok()) {
    tensor.elements.insert(tensor.elements.end(), rows.begin(), rows.end());
  } else {
    tensors_.erase(picked->first);
  }
}

void TensorWorkload::Write(Client& client, Random& random) {
  Tensors::value_type* const picked = Pick(random);
  std::vector<float>& elements = picked->second.elements;
  const std::vector<float> rows = Numbers(random, kStep);
  const uint64_t first = random.Below((elements.size() - rows.size()) / kWidth + 1);
  v1::ResidentOutput to;
  to.set_name(picked->first);
  to.set_kind(v1::ResidentOutput::KIND_WRITE);
  to.set_first_row(first);
  if (Keep(client, rows, to, "write").ok()) {
    std::copy(rows.begin(), rows.end(),
              elements.begin() + static_cast<std::ptrdiff_t>(first * kWidth));
  } else {
    tensors_.erase(picked->first);
  }
}

void TensorWorkload::Delete(Client& client, Random& random) {
  const std::string name = Pick(random)->first;
  report_("delete", client.DeleteTensor(name), LossCodes());
  tensors_.erase(name);
}

absl::StatusOr<std::vector<OutputTensor>> TensorWorkload::Run(
    Client& client, const std::string& action, const std::string& name,
    const v1::OperatorDesc& desc, uint32_t input, const std::vector<std::vector<float>>& inputs) {
  v1::ResidentInput from;
  from.set_input(input);
  from.set_name(name);
  std::vector<InputBytes> bytes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_mask =
        desc.named().inputs(static_cast<int>(i)).data_type() != v1::DATA_TYPE_FLOAT32;
    bytes.push_back(is_mask ? BytesOf(std::vector<uint8_t>(inputs[i].begin(), inputs[i].end()))
                            : BytesOf(inputs[i]));
  }
  MemorySink sink;
  const absl::Status end =
      client.Execute(desc, bytes, sink, {.timeout = options_.patience, .resident_inputs = {from}})
          .status();
  report_(action, end, LossCodes());
  if (end.ok()) return std::move(sink.outputs());
  tensors_.erase(name);
  return end;
}

void TensorWorkload::Read(Client& client, Random& random) {
  const Tensors::value_type& picked = *Pick(random);
  const std::vector<float> elements = picked.second.elements;
  const auto outputs =
      Run(client, "read", picked.first, Named("identity", {elements.size() / kWidth}), 0, {{}});
  if (outputs.ok() && ElementsOf<float>(outputs->at(0)) != elements) {
    fail_("read", absl::StrCat(elements.size() / kWidth, " rows, not those that were written"));
  }
}

void TensorWorkload::Multiply(Client& client, Random& random) {
  const Tensors::value_type& picked = *Pick(random);
  std::vector<float> elements = picked.second.elements;
  const std::vector<float> other = Numbers(random, elements.size() / kWidth);
  const size_t rows = elements.size() / kWidth;
  const auto outputs =
      Run(client, "multiply", picked.first, Named("multiply", {rows, rows}), 1, {other, {}});
  std::transform(elements.begin(), elements.end(), other.begin(), elements.begin(),
                 std::multiplies<>());
  if (outputs.ok() && ElementsOf<float>(outputs->at(0)) != elements) {
    fail_("multiply", absl::StrCat(rows, " rows are wrong"));
  }
}

// In the first rows, with a mask at times.
void TensorWorkload::Search(Client& client, Random& random) {
  const Tensors::value_type& picked = *Pick(random);
  const std::vector<float> queries = Numbers(random, kQueries);
  std::vector<float> vectors = picked.second.elements;
  vectors.resize(kStep * kWidth);
  v1::OperatorDesc desc = Named("search", {kQueries, kStep});
  (*desc.mutable_named()->mutable_attributes())["k"].set_unsigned_number(kNearest);
  std::vector<std::vector<float>> inputs = {queries, {}};
  uint32_t first = 0;
  if (random.OneIn(2)) {  // without the first half
    first = kStep / 2;
    AddInput(*desc.mutable_named(), v1::DATA_TYPE_UINT8, 1, kStep);
    inputs.emplace_back(kStep, 1.0f);
    std::fill(inputs[2].begin(), inputs[2].begin() + first, 0.0f);
  }
  const auto outputs = Run(client, "search", picked.first, desc, 1, inputs);
  if (!outputs.ok()) return;
  const std::vector<uint32_t> found = ElementsOf<uint32_t>(outputs->at(1));
  for (uint32_t query = 0; query < kQueries; ++query) {
    std::vector<uint32_t> wanted =
        Nearest({queries.data() + query * kWidth, kWidth},
                absl::MakeConstSpan(vectors).subspan(size_t{first} * kWidth));
    for (uint32_t& each : wanted) each += first;
    if (found.size() != size_t{kQueries} * kNearest ||
        !std::equal(wanted.begin(), wanted.end(), found.begin() + query * kNearest)) {
      fail_("search", absl::StrCat("query ", query, " finds others"));
    }
  }
}

}  // namespace opmill
