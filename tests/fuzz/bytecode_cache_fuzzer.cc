// A file of the bytecode cache, written by someone else.
#include <cstdint>
#include <fstream>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "kernels/base/sha256.h"
#include "kernels/d3d12/shader/bytecode_cache.h"
#include "tests/fuzz/check.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

constexpr absl::string_view kPayload = "bytecode";

std::string Key() { return Sha256("the key of every file here"); }

class Folder {
 public:
  Folder() : path_(directory_.path() / absl::StrCat(absl::BytesToHexString(Key()), ".dxbc")) {
    BytecodeCache cache(directory_.utf8(), 1 << 20);
    cache.Write(Key(), kPayload);
    std::ifstream file(path_, std::ios::binary);
    whole_.assign(std::istreambuf_iterator<char>(file), {});
    FUZZ_CHECK(absl::EndsWith(whole_, kPayload), whole_.size());
  }

  void Put(absl::string_view bytes) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file << bytes;
    FUZZ_CHECK(file.good(), "a file that cannot be written");
  }
  std::string directory() const { return directory_.utf8(); }
  const std::string& whole() const { return whole_; }

 private:
  ScratchDirectory directory_;
  const std::filesystem::path path_;
  std::string whole_;
};

// A file is complete, or rejected and counted.
void Expect(const Folder& folder, const std::string& file) {
  folder.Put(file);
  BytecodeCache cache(folder.directory(), 1 << 20);
  const std::optional<std::string> read = cache.Read(Key());
  const size_t header = folder.whole().size() - kPayload.size();
  const absl::string_view payload = absl::string_view(file).substr(std::min(header, file.size()));
  const bool is_whole = file.size() >= header &&
                        absl::StartsWith(file, folder.whole().substr(0, 40)) &&
                        file.substr(40, 32) == Sha256(payload);
  if (read.has_value()) {
    FUZZ_CHECK(is_whole && *read == payload, "accepted an incomplete file");
    FUZZ_CHECK(cache.counters().hits == 1 && cache.counters().rejected_files == 0, "");
  } else {
    FUZZ_CHECK(cache.counters().misses == 1 && cache.counters().rejected_files == 1, "");
  }
  FUZZ_CHECK(read == cache.Peek(Key()), "");
  FUZZ_CHECK(cache.Keys(10) == std::vector<std::string>{Key()}, "");
}

void Run(const std::string& input) {
  static const Folder folder;
  Expect(folder, input);
  // The same bytes with a correct digest, which the fuzzer cannot produce.
  std::string signed_file = folder.whole().substr(0, 40) + Sha256(input);
  uint64_t size = input.size();
  for (int i = 0; i < 8; ++i, size >>= 8) signed_file.push_back(static_cast<char>(size & 0xFF));
  Expect(folder, signed_file + input);
  // A file that overwrites it is read.
  BytecodeCache cache(folder.directory(), 1 << 20);
  cache.Write(Key(), input);
  FUZZ_CHECK(cache.Read(Key()) == input, "");
}

}  // namespace
}  // namespace opmill

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  opmill::Run(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
