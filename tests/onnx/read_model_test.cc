#include "kernels/onnx/read_model.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/onnx/elements.h"
#include "tests/onnx/model_text.h"
#include "tests/support/scratch_directory.h"

namespace opmill::onnx {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

const std::string kRelu = InputText("x", {2, 3}) + NodeText("Relu", "x", "y") + OutputText("y");

std::string Refusal(const std::string& bytes, const ReadLimits& limits = {}) {
  const absl::StatusOr<Graph> graph = ReadModel(bytes, limits);
  return graph.ok() ? "" : std::string(graph.status().message());
}
std::string GraphRefusal(absl::string_view graph, int64_t opset = 17) {
  return Refusal(ModelBytes(graph, opset));
}

TEST(ReadModel, HasNodesInputsAndOutputs) {
  const absl::StatusOr<Graph> graph = ReadModel(ModelBytes(kRelu));
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->nodes[0].op, "Relu");
  EXPECT_EQ(graph->nodes[0].name, "y");  // it has none of its own
  ASSERT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(graph->inputs[0].element, ElementType::kFloat);
  EXPECT_EQ(graph->inputs[0].dimensions->at(1).size, 3);
  ASSERT_EQ(graph->outputs.size(), 1u);
  EXPECT_EQ(graph->outputs[0].name, "y");
  EXPECT_EQ(graph->outputs[0].value, graph->nodes[0].outputs[0]);
}

TEST(ReadModel, RefusesWhatIsNoModel) {
  EXPECT_THAT(Refusal("no model"), HasSubstr("not an ONNX model"));
  EXPECT_EQ(Refusal(""), "The file is not an ONNX model: it has no graph.");
  const std::string bytes = ModelBytes(kRelu);
  for (size_t size = 1; size < bytes.size(); ++size) {
    EXPECT_NE(Refusal(bytes.substr(0, size)), "") << size;
  }
}

TEST(ReadModel, RefusesOpsetsThatItDoesNotKnow) {
  EXPECT_EQ(GraphRefusal(kRelu, 5), "The model has opset 5; supported are 6 to 28.");
  EXPECT_EQ(GraphRefusal(kRelu, 99), "The model has opset 99; supported are 6 to 28.");
}

TEST(ReadModel, NamesNodeAndInputOfAnUnknownName) {
  EXPECT_EQ(GraphRefusal(InputText("x", {2}) + NodeText("Add", "x,z", "y") + OutputText("y")),
            "Node 'y' (Add): input 'z' is computed by no earlier node.");
  EXPECT_EQ(GraphRefusal(InputText("x", {2}) + OutputText("y")),
            "Output 'y' is computed by no node.");
  EXPECT_EQ(GraphRefusal(kRelu + NodeText("Relu", "x", "y")),
            "The name 'y' of an output of Node 'y' (Relu) is used twice.");
}

TEST(ReadModel, RefusesTensorsWhoseBytesDoNotFit) {
  const auto initializer = [](absl::string_view fields) {
    return GraphRefusal(absl::StrCat(kRelu, " initializer { name: 'w' ", fields, " }"));
  };
  EXPECT_EQ(initializer("data_type: 1 dims: 3 raw_data: 'abcd'"),
            "Initializer 'w' is FLOAT[3], which takes 12 bytes, but it has 4.");
  EXPECT_EQ(initializer("data_type: 7 dims: 2 int64_data: [1]"),
            "Initializer 'w' is INT64[2], which takes 16 bytes, but it has 8.");
  EXPECT_THAT(initializer("data_type: 1 dims: [65536, 65536, 65536, 65536]"),
              HasSubstr("more than 4294967295 elements"));
  EXPECT_THAT(initializer("data_type: 1 dims: -1"), HasSubstr("negative size"));
  EXPECT_THAT(initializer("data_type: 1 dims: [1,1,1,1,1,1,1,1,1]"),
              HasSubstr("has 9 dimensions, more than 8"));
  EXPECT_EQ(initializer("data_type: 8 dims: 3"), "");  // strings: refused where they are used
}

TEST(ReadModel, ReadsElementsFromTheFieldOfTheirType) {
  const absl::StatusOr<Graph> graph = ReadModel(ModelBytes(absl::StrCat(
      kRelu, "initializer { name: 'h' data_type: 10 dims: 2 int32_data: [0x3C00, 0xC000] }",
      "initializer { name: 'b' data_type: 9 dims: 2 int32_data: [1, 0] }",
      "initializer { name: 'u' data_type: 12 uint64_data: 4294967295 }")));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto constant = [&](absl::string_view name) {
    for (const Value& value : graph->values) {
      if (value.name == name) return *value.constant;
    }
    return std::string();
  };
  EXPECT_EQ(constant("h"), std::string("\x00\x3C\x00\xC0", 4));
  EXPECT_EQ(constant("b"), std::string("\x01\x00", 2));
  EXPECT_EQ(constant("u"), "\xFF\xFF\xFF\xFF");
}

TEST(ReadModel, LimitsMemoryBeforeItIsTaken) {
  // A message of 2 bytes takes 200 in memory.
  std::string nodes;
  for (int i = 0; i < 100000; ++i) nodes.append("\x0A\x00", 2);
  std::string bytes = "\x3A";  // graph
  for (size_t size = nodes.size();; size >>= 7) {
    bytes.push_back(static_cast<char>((size & 0x7F) | (size >= 0x80 ? 0x80 : 0)));
    if (size < 0x80) break;
  }
  bytes += nodes;
  EXPECT_EQ(Refusal(bytes, {.memory_bytes = 1 << 20}),
            "The model takes more than 1048576 bytes of memory.");
  EXPECT_THAT(Refusal(bytes), HasSubstr("opset"));
}

TEST(ReadModel, LimitsNodesNamesAndNesting) {
  EXPECT_EQ(Refusal(ModelBytes(kRelu), {.nodes = 0}), "The model has more than 0 nodes.");
  EXPECT_EQ(Refusal(ModelBytes(InputText("abcde", {1}) + OutputText("abcde")), {.name_bytes = 4}),
            "The name 'abcde' of an input has 5 bytes, more than the limit (4).");
  EXPECT_EQ(Refusal(ModelBytes(InputText("x", {1}) + NodeText("Ge\\xffm", "x", "y"))),
            "The name 'Ge\\377m' of an operator is not UTF-8.");
  std::string graph = NodeText("Identity", "x", "z0") + OutputText("z0");
  for (int depth = 1; depth < 12; ++depth) {
    const std::string branch =
        absl::StrCat(" attribute { name: 'then_branch' type: 5 g { ", graph, " } }");
    const std::string name = absl::StrCat("z", depth);
    graph = NodeText("If", "c", name, branch) + OutputText(name);
  }
  EXPECT_THAT(GraphRefusal(InputText("x", {1}) + InputText("c", {}, 9) + graph),
              HasSubstr("is nested in more than 8 branches"));
}

TEST(ReadModel, MessagesThatAreNestedTooDeepAreRefused) {
  std::string bytes;
  for (int i = 0; i < 200; ++i) {  // graph { node { attribute { g { node { ...
    for (const char tag : {'\x32', '\x2A', '\x0A'}) {
      std::string outer(1, tag);
      for (size_t size = bytes.size();; size >>= 7) {
        outer.push_back(static_cast<char>((size & 0x7F) | (size >= 0x80 ? 0x80 : 0)));
        if (size < 0x80) break;
      }
      bytes = outer + bytes;
    }
  }
  EXPECT_NE(Refusal("\x3A\x7F" + bytes), "");
}

TEST(ReadModel, AttributesThatBecameInputsAreInputs) {
  const absl::StatusOr<Graph> graph = ReadModel(ModelBytes(
      InputText("x", {1, 5}) + NodeText("Clip", "x", "c", FloatText("max", 6)) +
          NodeText("Squeeze", "c", "s", IntsText("axes", {0})) +
          NodeText("Upsample", "x", "u", " attribute { name: 'scales' type: 6 floats: [1, 2] }") +
          OutputText("s"),
      7));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node& clip = graph->nodes[0];
  ASSERT_EQ(clip.inputs.size(), 3u);
  EXPECT_EQ(clip.inputs[1], kNoValue);
  EXPECT_EQ(
      LoadNumber<float>(ElementType::kFloat, graph->values[clip.inputs[2]].constant->data(), 0), 6);
  EXPECT_EQ(graph->nodes[1].inputs.size(), 2u);
  EXPECT_TRUE(graph->nodes[1].attributes.empty());
  EXPECT_EQ(graph->nodes[2].op, "Resize");
  EXPECT_EQ(graph->nodes[2].inputs.size(), 3u);
}

// An initializer in another file.
class ExternalData : public testing::Test {
 protected:
  ExternalData() {
    fs::create_directories(scratch_.path() / "model" / "data");
    Write("outside.bin", "abcdefghijkl");
    Write("model/inside.bin", "abcdefghijkl");
    Write("model/data/below.bin", "abcdefghijkl");
  }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(scratch_.path() / name, std::ios::binary) << content;
  }

  // The first byte of the tensor of 4 bytes, or the refusal.
  std::string Read(const std::string& location, const std::string& offset = "0",
                   const std::string& length = "4", const ReadLimits& limits = {}) const {
    Write("model/model.onnx",
          ModelBytes(
              absl::StrCat(kRelu, " initializer { name: 'w' data_type: 1 dims: 1 data_location: 1",
                           " external_data { key: 'location' value: '", absl::CEscape(location),
                           "' }", " external_data { key: 'offset' value: '", offset, "' }",
                           " external_data { key: 'length' value: '", length, "' } }")));
    const absl::StatusOr<Graph> graph =
        ReadModelFile(absl::StrCat(scratch_.utf8(), "/model/model.onnx"), limits);
    if (!graph.ok()) return std::string(graph.status().message());
    for (const Value& value : graph->values) {
      if (value.name == "w") return value.constant->substr(0, 1);
    }
    return "";
  }

  const ScratchDirectory scratch_;
};

TEST_F(ExternalData, IsReadFromTheFolderOfTheModel) {
  EXPECT_EQ(Read("inside.bin"), "a");
  EXPECT_EQ(Read("inside.bin", "8"), "i");
  EXPECT_EQ(Read("./data/below.bin", "4"), "e");
}

TEST_F(ExternalData, MustNotBeElsewhere) {
  for (const std::string& location :
       {std::string("../outside.bin"), std::string("data/../../outside.bin"),
        absl::StrCat(scratch_.utf8(), "/outside.bin"), std::string("/etc/passwd"), std::string()}) {
    EXPECT_THAT(Read(location), HasSubstr("is not a relative path within the model's folder"))
        << location;
  }
  EXPECT_EQ(Read("none.bin"),
            "Initializer 'w': location 'none.bin' is not the name of a regular file in the model's "
            "folder.");
  EXPECT_EQ(
      Read("data"),
      "Initializer 'w': location 'data' is not the name of a regular file in the model's folder.");
}

TEST_F(ExternalData, MustNotBeALinkOut) {
  std::error_code error;
  fs::create_symlink("../outside.bin", scratch_.path() / "model" / "link.bin", error);
#ifdef _WIN32
  if (error) GTEST_SKIP() << "Links cannot be made here: " << error.message();
#endif
  ASSERT_FALSE(error) << error.message();
  fs::create_directory_symlink("..", scratch_.path() / "model" / "up");
  fs::create_symlink("inside.bin", scratch_.path() / "model" / "within.bin");
  EXPECT_EQ(Read("link.bin"),
            "Initializer 'w': location 'link.bin' is a link out of the model's folder.");
  EXPECT_EQ(Read("up/outside.bin"),
            "Initializer 'w': location 'up/outside.bin' is a link out of the model's folder.");
  EXPECT_EQ(Read("within.bin"), "a");
}

TEST_F(ExternalData, OffsetAndLengthAreWithinTheFile) {
  EXPECT_THAT(Read("inside.bin", "9"),
              HasSubstr("offset 9 and length 4 are not within file 'inside.bin', which has 12"));
  EXPECT_THAT(Read("inside.bin", "18446744073709551615"), HasSubstr("are not within file"));
  EXPECT_EQ(Read("inside.bin", "-1"), "Initializer 'w': offset (-1) is not a number of bytes.");
  EXPECT_EQ(Read("inside.bin", "0", "8"), "Initializer 'w' takes 4 bytes, but length is 8.");
  EXPECT_EQ(Read("inside.bin", "0", "4", {.memory_bytes = 3}),
            "The model takes more than 3 bytes of memory.");
}

TEST(ReadModel, OfBytesHasNoExternalData) {
  EXPECT_EQ(
      GraphRefusal(kRelu + " initializer { name: 'w' data_type: 1 dims: 1 data_location: 1 }"),
      "Initializer 'w' is in another file, but the model does not come from a file.");
}

TEST(ReadModelFile, SaysThatThereIsNone) {
  EXPECT_EQ(ReadModelFile("/nowhere/model.onnx").status().message(),
            "There is no file '/nowhere/model.onnx'.");
}

}  // namespace
}  // namespace opmill::onnx
