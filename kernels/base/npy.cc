#include "kernels/base/npy.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "kernels/base/errors.h"
#include "kernels/base/excerpt.h"

namespace opmill {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kVersionBytes = 2;
constexpr size_t kHeaderAlignment = 64;
constexpr size_t kMaxDimensions = 8;
// NumPy reads at most 10000 bytes. A longer header may be an attempt to exhaust memory.
constexpr uint64_t kMostHeaderBytes = uint64_t{1} << 20;

struct Dtype {
  absl::string_view code;  // after the byte order in 'descr'
  bool is_of_operators = true;
};
constexpr Dtype kDtypes[] = {{"f4"}, {"f2"}, {"i8"}, {"i4"}, {"i2"},        {"i1"},
                             {"u8"}, {"u4"}, {"u2"}, {"u1"}, {"f8", false}, {"b1", false}};

std::string CodeOf(const NpyDtype& dtype) {
  return absl::StrCat(absl::string_view(&dtype.kind, 1), static_cast<int>(dtype.bytes));
}

std::string Quoted(absl::string_view text) { return absl::StrCat("'", Excerpt(text, 40), "'"); }

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("The .npy header is malformed: ", what, "."));
}

// The header is a Python literal, of this form:
// {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class LiteralReader {
 public:
  explicit LiteralReader(absl::string_view text) : text_(text) {}

  bool Take(char c) {
    SkipSpace();
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeWord(absl::string_view word) {
    SkipSpace();
    if (!absl::StartsWith(text_, word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  std::optional<absl::string_view> TakeString() {
    SkipSpace();
    if (text_.empty() || (text_.front() != '\'' && text_.front() != '"')) return std::nullopt;
    const size_t end = text_.find(text_.front(), 1);
    if (end == absl::string_view::npos) return std::nullopt;
    const absl::string_view content = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return content;
  }
  // Accepts the L that Python 2 appended to long integers.
  std::optional<uint64_t> TakeInteger() {
    SkipSpace();
    if (text_.empty() || !absl::ascii_isdigit(text_.front())) return std::nullopt;
    uint64_t value = 0;
    while (!text_.empty() && absl::ascii_isdigit(text_.front())) {
      const uint64_t digit = static_cast<uint64_t>(text_.front() - '0');
      if (value > (std::numeric_limits<uint64_t>::max() - digit) / 10) return std::nullopt;
      value = value * 10 + digit;
      text_.remove_prefix(1);
    }
    if (!text_.empty() && text_.front() == 'L') text_.remove_prefix(1);
    return value;
  }
  bool AtEnd() {
    SkipSpace();
    return text_.empty();
  }

 private:
  void SkipSpace() {
    while (!text_.empty() && absl::ascii_isspace(text_.front())) text_.remove_prefix(1);
  }

  absl::string_view text_;
};

absl::Status ReadDtype(absl::string_view descr, NpyDtypes dtypes, NpyHeader& header) {
  const absl::string_view code = descr.empty() ? descr : descr.substr(1);
  for (const Dtype& dtype : kDtypes) {
    if (code != dtype.code) continue;
    const char order = descr.front();
    const uint8_t bytes = static_cast<uint8_t>(code[1] - '0');
    const bool is_big_endian = order == '>' && bytes > 1;
    if (order != '<' && order != '=' && order != '>' && (order != '|' || bytes > 1)) break;
    header.dtype = {code[0], bytes, is_big_endian};
    if (dtypes == NpyDtypes::kCastable) return absl::OkStatus();
    if (!dtype.is_of_operators) break;
    if (!is_big_endian) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("The array's dtype ", Quoted(descr),
                     " is big-endian, but OpMill requires little-endian elements; convert it with "
                     "x.astype('<",
                     code, "')."));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "The array's dtype ", Quoted(descr), " is not one of the types that OpMill supports: ",
      kDataTypeNames, ". Convert it with x.astype(...)."));
}

absl::StatusOr<std::vector<uint32_t>> ReadShape(LiteralReader& reader) {
  if (!reader.Take('(')) return Malformed("'shape' is not a tuple");
  std::vector<uint32_t> sizes;
  bool has_comma = true;
  while (!reader.Take(')')) {
    const std::optional<uint64_t> size = reader.TakeInteger();
    if (!size || !has_comma) return Malformed("'shape' is not a tuple of sizes");
    if (*size > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrCat("The array's dimension ", sizes.size(),
                                                     " has size ", *size,
                                                     "; the limit is 4294967295."));
    }
    if (sizes.size() == kMaxDimensions) {
      return absl::InvalidArgumentError(
          absl::StrCat("The array has more than ", kMaxDimensions, " dimensions, the limit."));
    }
    sizes.push_back(static_cast<uint32_t>(*size));
    has_comma = reader.Take(',');
  }
  return sizes;
}

absl::Status ReadDictionary(absl::string_view text, NpyDtypes dtypes, NpyHeader& header) {
  LiteralReader reader(text);
  if (!reader.Take('{')) return Malformed("it is not a dictionary");
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  bool has_comma = true;
  while (!reader.Take('}')) {
    const std::optional<absl::string_view> key = reader.TakeString();
    if (!key || !has_comma || !reader.Take(':')) return Malformed("it is not a dictionary");
    if (*key == "descr" && !std::exchange(has_descr, true)) {
      const std::optional<absl::string_view> descr = reader.TakeString();
      if (!descr && !reader.Take('[')) return Malformed("'descr' is not a string");
      if (!descr) {
        return absl::InvalidArgumentError(
            absl::StrCat("The array's dtype is structured; OpMill supports: ", kDataTypeNames,
                         ". Save a single field of it: x['name']."));
      }
      RETURN_IF_ERROR(ReadDtype(*descr, dtypes, header));
    } else if (*key == "fortran_order" && !std::exchange(has_order, true)) {
      header.fortran_order = reader.TakeWord("True");
      if (!header.fortran_order && !reader.TakeWord("False")) {
        return Malformed("'fortran_order' is neither True nor False");
      }
    } else if (*key == "shape" && !std::exchange(has_shape, true)) {
      ASSIGN_OR_RETURN(header.sizes, ReadShape(reader));
    } else {
      return Malformed(absl::StrCat("the key ", Quoted(*key), " is unknown or given twice"));
    }
    has_comma = reader.Take(',');
  }
  if (!reader.AtEnd()) return Malformed("there is more text after its dictionary");
  if (!has_descr || !has_order || !has_shape) {
    return Malformed("one of 'descr', 'fortran_order' and 'shape' is missing");
  }
  return absl::OkStatus();
}

absl::Status Truncated(uint64_t needed, uint64_t size) {
  return absl::InvalidArgumentError(
      absl::StrCat("The .npy file is truncated: it needs ", needed, " bytes and has ", size, "."));
}

// The size of the elements; absent if it exceeds 64 bits.
std::optional<uint64_t> BytesOf(const NpyHeader& header) {
  uint64_t bytes = header.dtype.bytes;
  for (const uint32_t size : header.sizes) {
    if (size == 0) return 0;
  }
  for (const uint32_t size : header.sizes) {
    if (bytes > std::numeric_limits<uint64_t>::max() / size) return std::nullopt;
    bytes *= size;
  }
  return bytes;
}

}  // namespace

std::string NameOf(const NpyDtype& dtype) {
  if (dtype.kind == 'b') return "bool";
  const char* const kind = dtype.kind == 'f' ? "float" : dtype.kind == 'i' ? "int" : "uint";
  return absl::StrCat(dtype.is_big_endian ? "big-endian " : "", kind, 8 * dtype.bytes);
}

bool IsOfOperators(const NpyDtype& dtype) {
  const std::string code = CodeOf(dtype);
  return !dtype.is_big_endian &&
         std::any_of(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& known) {
           return known.is_of_operators && known.code == code;
         });
}

absl::StatusOr<size_t> NpyHeaderBytes(absl::Span<const std::byte> prefix) {
  const absl::string_view text(reinterpret_cast<const char*>(prefix.data()), prefix.size());
  if (!absl::StartsWith(text, kMagic)) {
    return absl::InvalidArgumentError(
        "The file is not a .npy file: it does not begin with \"\\x93NUMPY\".");
  }
  const size_t version_end = kMagic.size() + kVersionBytes;
  if (text.size() < version_end) return Truncated(version_end, text.size());
  const int major = static_cast<int>(prefix[kMagic.size()]);
  const int minor = static_cast<int>(prefix[kMagic.size() + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    return absl::InvalidArgumentError(absl::StrCat("The .npy file has format ", major, ".", minor,
                                                   "; only 1.0, 2.0 and 3.0 are supported."));
  }
  const size_t length_bytes = major == 1 ? 2 : 4;
  if (text.size() < version_end + length_bytes) {
    return Truncated(version_end + length_bytes, text.size());
  }
  uint64_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) {
    length |= static_cast<uint64_t>(prefix[version_end + i]) << (8 * i);
  }
  if (length > kMostHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("The .npy header has ", length,
                                                   " bytes; the limit is ", kMostHeaderBytes, "."));
  }
  return version_end + length_bytes + static_cast<size_t>(length);
}

absl::StatusOr<NpyHeader> ReadNpyHeader(absl::Span<const std::byte> bytes, NpyDtypes dtypes) {
  NpyHeader header;
  header.data_offset = bytes.size();
  const absl::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const size_t length_bytes = static_cast<int>(bytes[kMagic.size()]) == 1 ? 2 : 4;
  RETURN_IF_ERROR(
      ReadDictionary(text.substr(kMagic.size() + kVersionBytes + length_bytes), dtypes, header));
  const std::optional<uint64_t> data_bytes = BytesOf(header);
  if (!data_bytes || *data_bytes > std::numeric_limits<size_t>::max() - header.data_offset) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The array's shape (", absl::StrJoin(header.sizes, ", "), ") has more than 2^64 bytes."));
  }
  header.data_bytes = static_cast<size_t>(*data_bytes);
  return header;
}

absl::Status CheckNpyLength(const NpyHeader& header, uint64_t file_bytes) {
  const uint64_t needed = uint64_t{header.data_offset} + header.data_bytes;
  return file_bytes < needed ? Truncated(needed, file_bytes) : absl::OkStatus();
}

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::Span<const std::byte> file, NpyDtypes dtypes) {
  ASSIGN_OR_RETURN(const size_t header_bytes, NpyHeaderBytes(file));
  if (file.size() < header_bytes) return Truncated(header_bytes, file.size());
  absl::StatusOr<NpyHeader> header = ReadNpyHeader(file.first(header_bytes), dtypes);
  if (!header.ok()) return header.status();
  RETURN_IF_ERROR(CheckNpyLength(*header, file.size()));
  return header;
}

std::string MakeNpyHeader(const NpyDtype& dtype, absl::Span<const uint32_t> sizes) {
  std::string dictionary =
      absl::StrCat("{'descr': '", dtype.bytes == 1 ? "|" : "<", CodeOf(dtype),
                   "', 'fortran_order': False, 'shape': (", absl::StrJoin(sizes, ", "),
                   sizes.size() == 1 ? ",), }" : "), }");
  constexpr size_t kPrefix = kMagic.size() + kVersionBytes + 2;
  const size_t unpadded = kPrefix + dictionary.size() + 1;
  dictionary.append((kHeaderAlignment - unpadded % kHeaderAlignment) % kHeaderAlignment, ' ');
  dictionary.push_back('\n');

  std::string header = absl::StrCat(kMagic, absl::string_view("\x01\x00", 2));
  header.push_back(static_cast<char>(dictionary.size() & 0xFF));
  header.push_back(static_cast<char>(dictionary.size() >> 8));
  return header + dictionary;
}

}  // namespace opmill
