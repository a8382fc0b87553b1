#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/operators/search/search_desc.h"
#include "kernels/reference/compensated_sum.h"
#include "kernels/reference/element_access.h"

namespace opmill {
namespace {

// Sums of products of FLOAT32 or FLOAT16, in double precision.
double FloatScore(SearchMetric metric, const std::vector<double>& query,
                  const std::vector<double>& vector) {
  CompensatedSum sum;
  CompensatedSum query_squares;
  CompensatedSum vector_squares;
  for (size_t d = 0; d < query.size(); ++d) {
    const double difference = query[d] - vector[d];
    sum.Add(metric == SearchMetric::kL2 ? difference * difference : query[d] * vector[d]);
    query_squares.Add(query[d] * query[d]);
    vector_squares.Add(vector[d] * vector[d]);
  }
  if (metric != SearchMetric::kCosine) return sum.value();
  if (query_squares.value() == 0 || vector_squares.value() == 0) {
    return sum.value() * 0;  // NaN if the other one has NaNs
  }
  return sum.value() / (std::sqrt(query_squares.value()) * std::sqrt(vector_squares.value()));
}

struct Candidate {
  uint64_t key;  // the smallest comes first
  uint64_t bits;
  uint32_t index;
};

}  // namespace

void ReferenceSearch(const ReferenceCall& call) {
  const SearchDesc desc = SearchDesc::From(call.desc);
  const DataType type = desc.queries.data_type;
  const DataType score_type = desc.output_scores->data_type;
  const uint32_t dims = desc.queries.sizes[1];
  const auto row_of = [&](const Reader& reader, uint32_t row) {
    std::vector<double> elements(dims);
    for (uint32_t d = 0; d < dims; ++d) {
      const uint64_t bits = reader.At({row, d});
      elements[d] =
          IsFloat(type) ? ToDouble(type, bits) : static_cast<double>(static_cast<int64_t>(bits));
    }
    return elements;
  };
  const Reader queries(desc.queries, call.inputs[0]);
  const Reader vectors(desc.vectors, call.inputs[1]);
  Writer scores(*desc.output_scores, call.outputs[0]);
  Writer indices(*desc.output_indices, call.outputs[1]);
  const auto is_excluded = [&](uint32_t query, uint32_t vector) {
    if (!desc.mask.has_value()) return false;
    const Reader mask(*desc.mask, call.inputs[2]);
    return mask.At({desc.mask->sizes[0] == 1 ? 0 : query, vector}) == 0;
  };
  for (uint32_t q = 0; q < desc.queries.sizes[0]; ++q) {
    const std::vector<double> query = row_of(queries, q);
    std::vector<Candidate> found;
    for (uint32_t v = 0; v < desc.vectors.sizes[0]; ++v) {
      if (call.abandoned.stop_requested()) return;
      if (is_excluded(q, v)) continue;
      const double score = FloatScore(desc.metric, query, row_of(vectors, v));
      if (std::isnan(score)) continue;
      const uint64_t bits =
          score_type == DataType::kInt32
              ? static_cast<uint64_t>(static_cast<int64_t>(score))
              : std::bit_cast<uint32_t>(static_cast<float>(score) + 0.0f);  // no -0
      const uint64_t key = OrderKey(score_type, bits);
      found.push_back({desc.smallest_first() ? key : ~key, bits, v});
    }
    std::sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
      return a.key != b.key ? a.key < b.key : a.index < b.index;
    });
    for (uint32_t rank = 0; rank < desc.k; ++rank) {
      const bool is_found = rank < found.size();
      scores.Store({q, rank}, is_found ? found[rank].bits : EmptyScore(desc));
      indices.Store({q, rank}, is_found ? found[rank].index : kNotFound);
    }
  }
}

}  // namespace opmill
