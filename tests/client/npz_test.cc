#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/npz_reader.h"
#include "client/cli/npz_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/bytes_of.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, value >>= 8) text.push_back(static_cast<char>(value & 0xFF));
  return text;
}

std::string Deflate(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string Npy(const std::vector<float>& elements) {
  std::string npy = MakeNpyHeader(v1::DATA_TYPE_FLOAT32, {static_cast<uint32_t>(elements.size())});
  npy.append(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(float));
  return npy;
}

// A member as in the archive; a test may change each field.
struct Member {
  explicit Member(std::string name_of_member, const std::string& content, bool deflates = false)
      : name(std::move(name_of_member)),
        method(deflates ? 8 : 0),
        data(deflates ? Deflate(content) : content),
        crc(crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size())),
        compressed_bytes(data.size()),
        bytes(content.size()) {}

  std::string name;
  uint64_t flags = 0;
  uint64_t method;
  std::string data;
  uint64_t crc;
  uint64_t compressed_bytes;
  uint64_t bytes;
  uint64_t offset_shift = 0;
  std::string extra;
};

std::string Archive(const std::vector<Member>& members, const std::string& comment = "") {
  std::string file;
  std::string directory;
  for (const Member& member : members) {
    const std::string common =
        absl::StrCat(Little(20, 2), Little(member.flags, 2), Little(member.method, 2), Little(0, 4),
                     Little(member.crc, 4), Little(member.compressed_bytes, 4),
                     Little(member.bytes, 4), Little(member.name.size(), 2));
    absl::StrAppend(&directory, "PK\x01\x02", Little(20, 2), common, Little(member.extra.size(), 2),
                    Little(0, 10), Little(file.size() + member.offset_shift, 4), member.name,
                    member.extra);
    absl::StrAppend(&file, "PK\x03\x04", common, Little(0, 2), member.name, member.data);
  }
  const size_t offset = file.size();
  absl::StrAppend(&file, directory, "PK\x05\x06", Little(0, 4), Little(members.size(), 2),
                  Little(members.size(), 2), Little(directory.size(), 4), Little(offset, 4),
                  Little(comment.size(), 2), comment);
  return file;
}

// The first array of the archive, or the first error on the way to it.
absl::StatusOr<std::vector<float>> ReadFirst(const std::string& file) {
  const absl::StatusOr<std::vector<NpzMember>> members = ReadNpzDirectory(BytesOf(file));
  if (!members.ok()) return members.status();
  const absl::StatusOr<NpyHeader> header = ReadNpzHeader(members->front(), NpyDtypes::kOfOperators);
  if (!header.ok()) return header.status();
  const absl::StatusOr<InputBytes> bytes = ReadNpzElements(members->front(), *header, nullptr);
  if (!bytes.ok()) return bytes.status();
  std::vector<float> elements(bytes->size / sizeof(float));
  std::memcpy(elements.data(), bytes->data, bytes->size);
  return elements;
}

TEST(NpzReader, ReadsStoredAndDeflatedArrays) {
  for (const bool deflates : {false, true}) {
    const auto elements = ReadFirst(Archive({Member("w.npy", Npy({1, 2, 3}), deflates)}));
    ASSERT_TRUE(elements.ok()) << elements.status();
    EXPECT_THAT(*elements, ElementsAre(1, 2, 3));
  }
}

TEST(NpzReader, NamesArraysAsNumPyDoesAndIgnoresDirectoriesAndComments) {
  const std::string file = Archive({Member("folder/", ""), Member("a.npy", Npy({1})),
                                    Member("folder/b", Npy({1})), Member("c.npy.npy", Npy({1}))},
                                   "made by hand");
  const auto members = ReadNpzDirectory(BytesOf(file));
  ASSERT_TRUE(members.ok()) << members.status();
  std::vector<std::string> names;
  for (const NpzMember& member : *members) names.push_back(member.name);
  EXPECT_THAT(names, ElementsAre("a", "folder/b", "c.npy"));
}

TEST(NpzReader, ReadsSixtyFourBitSizes) {
  Member member("w.npy", Npy({1, 2, 3}));
  member.extra = absl::StrCat(Little(0xCAFE, 2), Little(3, 2), "abc", Little(1, 2), Little(16, 2),
                              Little(member.bytes, 8), Little(member.compressed_bytes, 8));
  member.bytes = member.compressed_bytes = 0xFFFFFFFF;
  const auto elements = ReadFirst(Archive({member}));
  ASSERT_TRUE(elements.ok()) << elements.status();
  EXPECT_THAT(*elements, ElementsAre(1, 2, 3));
}

template <typename Change>
std::string MemberRefusal(const Change& change, bool deflates = false) {
  Member member("w.npy", Npy(std::vector<float>(1000, 1)), deflates);
  change(member);
  return std::string(ReadFirst(Archive({member})).status().message());
}

TEST(NpzReader, RefusesDamagedMembers) {
  constexpr bool kDeflates = true;
  EXPECT_THAT(MemberRefusal([](Member& m) { m.crc ^= 1; }), HasSubstr("checksum"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.crc ^= 1; }, kDeflates), HasSubstr("checksum"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.method = 12; }),
              HasSubstr("compressed by method 12; only stored (0) and deflated (8)"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.flags = 1; }), HasSubstr("encrypted"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.bytes += 1; }), HasSubstr("stored in 4128 bytes"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.compressed_bytes += 1000; }),
              HasSubstr("w.npy extends past the end of the file"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.offset_shift = 4; }),
              HasSubstr("w.npy is not where the directory says"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.offset_shift = 0xFFFFFF00; }),
              HasSubstr("w.npy is not where the directory says"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.bytes = 0xFFFFFFFF; }),
              HasSubstr("is stored in 4128 bytes and claims 4294967295"));
  // Small enough for deflate to hold, and not what the stream holds.
  EXPECT_THAT(MemberRefusal([](Member& m) { m.bytes += 100; }, kDeflates), HasSubstr("ends early"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.bytes -= 4; }, kDeflates), HasSubstr("is truncated"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.bytes = 0xFFFFFFF0; }, kDeflates),
              HasSubstr("compressed ones can hold"));
  EXPECT_THAT(MemberRefusal([](Member& m) { m.data[0] = '\xFF'; }, kDeflates),
              HasSubstr("not a deflate stream"));
  EXPECT_THAT(MemberRefusal([](Member& m) {
                m.data = "text";
                m.bytes = m.compressed_bytes = 4;
              }),
              HasSubstr("not a .npy file"));
  EXPECT_THAT(MemberRefusal([](Member& m) {
                m.name = "\33[2J\n" + std::string(999, 'x');
                m.offset_shift = 4;
              }),
              HasSubstr("damaged: \\033[2J\\nxxx"));
}

TEST(NpzReader, RefusesInvalidDirectories) {
  const std::string good = Archive({Member("w.npy", Npy({1, 2, 3}))});
  EXPECT_THAT(std::string(ReadFirst("").status().message()), HasSubstr("not a .npz archive"));
  EXPECT_THAT(std::string(ReadFirst("text").status().message()), HasSubstr("not a .npz archive"));
  EXPECT_THAT(std::string(ReadFirst(Archive({})).status().message()), HasSubstr("holds no array"));
  const Member member("w.npy", Npy({1}));
  EXPECT_THAT(std::string(ReadFirst(Archive({member, member})).status().message()),
              HasSubstr("it holds w twice"));
  std::string more = good;
  more[good.size() - 22 + 10] = 2;  // members
  EXPECT_THAT(std::string(ReadFirst(more).status().message()), HasSubstr("directory is truncated"));
}

TEST(NpzReader, RefusesEveryTruncatedArchive) {
  const std::string file = Archive({Member("w.npy", Npy({1, 2, 3}), true)});
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_FALSE(ReadFirst(file.substr(0, size)).ok()) << size;
  }
}

// Changed archives must not be read as other arrays, or cause reads outside of the file.
TEST(NpzReader, SurvivesEveryChangedByte) {
  const std::string file = Archive({Member("w.npy", Npy({1, 2, 3}), true)});
  for (size_t i = 0; i < file.size(); ++i) {
    for (const int change : {1, 0x80, 0xFF}) {
      std::string changed = file;
      changed[i] = static_cast<char>(changed[i] ^ change);
      const auto elements = ReadFirst(changed);
      if (!elements.ok()) continue;
      EXPECT_THAT(*elements, ElementsAre(1, 2, 3)) << i;
    }
  }
}

TEST(NpzWriter, WritesWhatTheReaderReads) {
  const ScratchDirectory scratch;
  const std::string path = (scratch.path() / "y.npz").string();
  auto writer = NpzWriter::Create(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE((*writer)->Add("\xC3\xA4/b", BytesOf(Npy({1, 2}))).ok());
  ASSERT_TRUE((*writer)->Add("second", BytesOf(Npy({3}))).ok());
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE((*writer)->Commit().ok());
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string file = text.str();
  EXPECT_THAT(*ReadFirst(file), ElementsAre(1, 2));
  const auto members = ReadNpzDirectory(BytesOf(file));
  ASSERT_EQ(members->size(), 2u);
  EXPECT_EQ(members->at(0).name, "\xC3\xA4/b");
  EXPECT_EQ(members->at(1).name, "second");
}

TEST(NpzWriter, CountsMoreThan65535Members) {
  const ScratchDirectory scratch;
  const std::string path = (scratch.path() / "y.npz").string();
  auto writer = NpzWriter::Create(path);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::string npy = Npy({7});
  constexpr int kMembers = 65537;
  for (int i = 0; i < kMembers; ++i) {
    ASSERT_TRUE((*writer)->Add(absl::StrCat(i), BytesOf(npy)).ok());
  }
  ASSERT_TRUE((*writer)->Commit().ok());
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  const auto members = ReadNpzDirectory(BytesOf(text.str()));
  ASSERT_TRUE(members.ok()) << members.status();
  EXPECT_EQ(members->size(), size_t{kMembers});
  EXPECT_EQ(members->back().name, "65536");
}

TEST(NpzWriter, RefusesANameThatZipCannotHold) {
  const ScratchDirectory scratch;
  auto writer = NpzWriter::Create((scratch.path() / "y.npz").string());
  ASSERT_TRUE(writer.ok()) << writer.status();
  EXPECT_THAT(std::string((*writer)->Add(std::string(65535, 'x'), {}).message()),
              HasSubstr("too long for a .npz archive"));
}

}  // namespace
}  // namespace opmill
