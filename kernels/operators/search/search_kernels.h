// The kernels of search for the current instruction set.
#ifndef OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_KERNELS_H_
#define OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_KERNELS_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/descriptor/tensor.h"
#include "kernels/operators/search/search_desc.h"

namespace opmill {

// Rows of vectors that are multiplied together.
inline constexpr uint32_t kSearchRows = 12;

// What a run searches. Strides are in elements.
struct SearchWork {
  DataType type = DataType::kFloat32;  // of queries and vectors
  SearchMetric metric = SearchMetric::kInnerProduct;
  uint32_t dims = 1;
  uint32_t k = 1;
  uint64_t row_stride = 1;
  uint64_t element_stride = 1;
  uint64_t mask_query_stride = 0;
  uint64_t mask_row_stride = 0;
  uint64_t room = 1;      // candidates of a list
  uint32_t per_word = 1;  // SearchKernels::per_word

  bool is_int8() const { return type == DataType::kInt8; }
  // Whether scores are INT32; otherwise FLOAT32.
  bool is_exact() const { return is_int8() && metric != SearchMetric::kCosine; }
  // Whether products only find candidates, whose scores are computed apart.
  bool rescores() const { return !is_int8() && metric == SearchMetric::kL2; }
  // Words that a packed query has.
  uint64_t words() const { return (uint64_t{dims} + per_word - 1) / per_word; }
};

// What a word of a packed query has: an element of FLOAT32, or of INT8 two elements as INT16, or
// four elements plus 128 as UINT8.
inline constexpr uint32_t kSearchPair = 2;
inline constexpr uint32_t kSearchQuad = 4;

// Adjacent queries in lanes. Word i of lane l is at offset + i * width + l of the packed queries.
struct SearchPanel {
  uint32_t first = 0;
  uint32_t width = 1;
  uint64_t offset = 0;
};

// Scores of which the largest comes first, as numbers in their order; 0 is below all.
inline uint32_t SearchKey(float score) {
  const uint32_t bits = std::bit_cast<uint32_t>(score);
  return (bits >> 31) != 0 ? ~bits : bits | 0x8000'0000u;
}
inline uint32_t SearchKey(int32_t score) { return static_cast<uint32_t>(score) ^ 0x8000'0000u; }
inline float FloatOfSearchKey(uint32_t key) {
  return std::bit_cast<float>((key >> 31) != 0 ? key ^ 0x8000'0000u : ~key);
}
inline int32_t IntOfSearchKey(uint32_t key) { return static_cast<int32_t>(key ^ 0x8000'0000u); }

// For each query what has been found in ascending rows. A candidate is a key and the inverted row;
// the greater one comes first.
struct SearchLists {
  uint64_t* candidates = nullptr;  // `room` for each query
  uint32_t* counts = nullptr;
  uint32_t* least = nullptr;  // new candidates have greater keys
  // The same as a number that vectors compare with products; float or int32_t. Padded.
  void* limits = nullptr;
};

// A scan of adjacent rows for a group of queries.
struct SearchScan {
  const SearchWork* work = nullptr;
  const std::vector<SearchPanel>* panels = nullptr;
  const void* packed = nullptr;
  const float* query_rows = nullptr;  // rescores(): the queries, packed
  // For each query the sum of squares, or of COSINE its inverse root; float, or of is_exact()
  // int32_t. Padded.
  const void* norms = nullptr;
  uint32_t queries = 0;
  const std::byte* vectors = nullptr;  // row 0
  const uint8_t* mask = nullptr;       // of the first query, or null
  uint64_t first_row = 0;
  uint64_t rows = 0;
  SearchLists lists;
};

struct SearchKernels {
  uint32_t lanes = 1;     // words of a vector
  uint32_t per_word = 1;  // elements of a word
  void (*scan)(const SearchScan& scan) = nullptr;
};
SearchKernels SearchKernelsOf(DataType type);

// L2: how much a square may be off, relative to the sums of squares, in a sum of products and the
// sums that it is compared with.
inline float SearchMargin(uint32_t dims) { return (static_cast<float>(dims) + 16) * 0x1p-21f; }

// The number for SearchLists::limits below which a product has no greater key than `least`.
float SearchLimit(const SearchWork& work, uint32_t least, float norm);
int32_t SearchLimit(const SearchWork& work, uint32_t least, int32_t norm);

// Panels of so many lanes as the kernels have.
std::vector<SearchPanel> SearchPanels(uint32_t queries, uint32_t lanes, uint64_t words);

}  // namespace opmill

#endif  // OPMILL_KERNELS_OPERATORS_SEARCH_SEARCH_KERNELS_H_
