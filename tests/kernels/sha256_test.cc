#include "kernels/base/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace opmill {
namespace {

// That the system's function gets all bytes and gives all of the digest.
TEST(Sha256, GivesTheStandardsDigests) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(Sha256(std::string("\0\xbd", 2)).size(), kSha256Bytes);
  EXPECT_NE(Sha256(std::string("\0\xbd", 2)), Sha256(std::string("\0\xbe", 2)));
}

}  // namespace
}  // namespace opmill
