// `opmill run`, `bench` and `compile` of an operator with two inputs, against a real server.
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/npy.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/shell_fixture.h"
#include "tests/support/server_process.h"

namespace opmill {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SeveralInputsTest : public ShellTest {
 protected:
  // "run element_wise_add --input a.npy --input b.npy", and more.
  Finished Add(const std::string& more = "") const {
    return Run("run element_wise_add --input a.npy --input b.npy " + more);
  }

  void SaveInt16(const std::string& name, const std::vector<int16_t>& elements) const {
    std::ofstream file(Path(name), std::ios::binary);
    file << MakeNpyHeader(v1::DATA_TYPE_INT16,
                          std::vector<uint32_t>{static_cast<uint32_t>(elements.size())});
    file.write(reinterpret_cast<const char*>(elements.data()),
               static_cast<std::streamsize>(elements.size() * sizeof(int16_t)));
  }
};

TEST_F(SeveralInputsTest, AddsInTheOrderOfTheFlags) {
  Save("a.npy", {2, 2}, {1, 2, 3, 4});
  Save("b.npy", {2, 2}, {10, 20, 30, 40});
  const Finished sum = Add();
  EXPECT_EQ(sum.exit_code, 0) << sum.err;
  EXPECT_EQ(sum.out, "[[11. 22.]\n [33. 44.]]\n");
  const Finished written = Add("--output c.npy");
  EXPECT_EQ(written.out, "(2, 2) float32 -> c.npy\n") << written.err;
  EXPECT_EQ(Run("run reduce --function sum c.npy --axes 0,1").out, "110.0\n");
  // Results are named after the first input.
  EXPECT_EQ(Add("--output out/").out, "(2, 2) float32 -> out/a.npy\n");
  EXPECT_EQ(Shell("cat a.npy | $OPMILL run element_wise_add --input - --input b.npy").out, sum.out);
  EXPECT_EQ(Run("run element_wise_add --input a.npy --input a.npy").out, "[[2. 4.]\n [6. 8.]]\n");
}

TEST_F(SeveralInputsTest, BroadcastsAsNumPyDoes) {
  Save("a.npy", {2, 1}, {100, 200});
  Save("b.npy", {3}, {1, 2, 3});
  EXPECT_EQ(Add().out, "[[101. 102. 103.]\n [201. 202. 203.]]\n");
  Save("b.npy", {1}, {0.5});
  EXPECT_EQ(Add().out, "[[100.5]\n [200.5]]\n");
  // A Fortran-ordered file keeps its strides.
  std::string file = MakeNpyHeader(v1::DATA_TYPE_FLOAT32, std::vector<uint32_t>{2, 3});
  file.replace(file.find("False"), 5, "True ");
  const float columns[] = {1, 4, 2, 5, 3, 6};
  file.append(reinterpret_cast<const char*>(columns), sizeof(columns));
  std::ofstream(Path("b.npy"), std::ios::binary) << file;
  EXPECT_EQ(Add().out, "[[101. 102. 103.]\n [204. 205. 206.]]\n");
}

TEST_F(SeveralInputsTest, SendsLargeInputsInChunks) {
  constexpr uint32_t kRows = 1500;
  constexpr uint32_t kColumns = 1000;
  std::vector<float> elements(kRows * kColumns);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i % 1000);
  Save("a.npy", {kRows, kColumns}, elements);
  for (float& element : elements) element = 1000 - element;
  Save("b.npy", {kRows, kColumns}, elements);
  EXPECT_EQ(Add().out, "(1500, 1000) float32 min 1000.0 max 1000.0\n");
  Save("b.npy", {kRows, 1}, std::vector<float>(kRows, 0.5));
  EXPECT_EQ(Add().out, "(1500, 1000) float32 min 0.5 max 999.5\n");
}

TEST_F(SeveralInputsTest, ConvertsAllOfThem) {
  Save("a.npy", {3}, {1, 2, 3});
  SaveInt16("b.npy", {10, 20, 30});
  const Finished refused = Add();
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(
      refused.err,
      "opmill: a.npy is float32 and b.npy is int16, but the inputs must have one type; convert "
      "them with --cast float32.\n");
  EXPECT_EQ(Add("--cast float32").out, "[11. 22. 33.]\n");
  EXPECT_EQ(Run("run element_wise_add --input b.npy --input b.npy --cast int64").out,
            "[20 40 60]\n");
}

TEST_F(SeveralInputsTest, TakesAnArrayOfAnArchive) {
  Save("a.npy", {2}, {1, 2});
  Save("b.npy", {2}, {30, 40});
  ASSERT_EQ(Run("run top_k a.npy b.npy --axis 0 --k 2 --output v.npz").exit_code, 0);
  EXPECT_EQ(Run("run element_wise_add --input v.npz:a --input v.npz:b").out, "[42. 31.]\n");
  const Finished refused = Run("run element_wise_add --input a.npy --input v.npz");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("--input: v.npz holds 2 arrays; select one of them, for example v.npz:a."));
}

TEST_F(SeveralInputsTest, RefusesWithASentence) {
  Save("a.npy", {2, 3}, std::vector<float>(6, 1));
  Save("b.npy", {4, 3}, std::vector<float>(12, 1));
  const Finished shapes = Add("--json");
  EXPECT_EQ(shapes.exit_code, 1);
  EXPECT_THAT(shapes.err, HasSubstr("The shapes (2, 3) of a.npy and (4, 3) of b.npy cannot be "
                                    "broadcast"));
  const Finished missing = Run("run element_wise_add --input a.npy --input none.npy");
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("opmill: none.npy cannot be opened"));

  const std::pair<const char*, const char*> cases[] = {
      {"--input a.npy",
       "opmill: element_wise_add takes 2 inputs; 1 is given: --input a.npy --input b.npy."},
      {"", "element_wise_add takes 2 inputs; 0 are given: --input a.npy --input b.npy."},
      {"--input a.npy --input a.npy --input a.npy", "takes 2 inputs; 3 are given: --input"},
      {"a.npy b.npy",
       "element_wise_add takes 2 inputs, each as a flag: --input a.npy --input b.npy."},
      {"--input - --input -", "Standard input (-) is given twice."},
      {"--input a.npy --input b.npy --axes 0", "--axes: element_wise_add does not take this flag."},
      {"--input a.npy --input b.npy --index_type int32", "--index_type: element_wise_add does not"},
      {"--input a.npy --input b.npy --keepdims",
       "--keepdims: element_wise_add does not take this flag."},
  };
  for (const auto& [arguments, sentence] : cases) {
    const Finished done = Run(absl::StrCat("run element_wise_add ", arguments));
    EXPECT_EQ(done.exit_code, 2) << arguments;
    EXPECT_THAT(done.err, HasSubstr(sentence)) << arguments;
    EXPECT_EQ(done.out, "") << arguments;
  }
}

TEST_F(SeveralInputsTest, NamesTheFileThatTheServerRefuses) {
  // This level requires at least 4 dimensions.
  Save("a.npy", {2}, {1, 2});
  Save("b.npy", {2}, {1, 2});
  const Finished refused = Add("--feature_level 1.0");
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("opmill: a.npy: At feature level 1.0 element_wise_add"));
}

TEST_F(SeveralInputsTest, MeasuresByBothRpcs) {
  for (const char* rpc : {"execute", "execute_stream"}) {
    const Finished done = Run(absl::StrCat(
        "bench --operator element_wise_add --shape 30,30 --concurrency 2 --duration 200ms --json "
        "--rpc=",
        rpc));
    ASSERT_EQ(done.exit_code, 0) << done.err;
    EXPECT_GT(ParseJson(done.out).fields().at("calls").number_value(), 2) << done.out;
  }
}

TEST_F(SeveralInputsTest, CompilePrintsTheBytesOfEach) {
  const Finished done = Run("compile element_wise_add --dtype int16 --shape 10,10");
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(HasSubstr("input a"), HasSubstr("input b")));
  const auto json = ParseJson(Run("compile element_wise_add --shape 10,10 --json").out);
  EXPECT_EQ(json.fields().at("each_input_bytes").list_value().values_size(), 2);
}

}  // namespace
}  // namespace opmill
