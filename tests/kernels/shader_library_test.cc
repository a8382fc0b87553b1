#include "kernels/d3d12/shader/shader_library.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/base/utf8_path.h"
#include "kernels/d3d12/shader/embedded_shaders.h"
#include "tests/support/scratch_directory.h"

namespace opmill {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A compiler whose bytecode contains its arguments.
class SpellingCompiler : public ShaderCompiler {
 public:
  explicit SpellingCompiler(std::string identity = "spelling 1") : identity_(std::move(identity)) {}

  absl::StatusOr<std::string> Compile(absl::string_view source, absl::string_view name,
                                      absl::string_view entry,
                                      absl::Span<const ShaderMacro> macros) override {
    if (absl::StrContains(source, "no HLSL")) {
      return absl::InternalError(absl::StrCat(name, "(1): syntax error"));
    }
    std::string bytecode = absl::StrCat(identity_, "|", name, "|", entry, "|", source);
    for (const ShaderMacro& macro : macros) {
      absl::StrAppend(&bytecode, "|", macro.name, "=", macro.value);
    }
    return bytecode;
  }
  std::string identity() const override { return identity_; }

 private:
  std::string identity_;
};

const ShaderSources& OneShader() {
  static const auto& sources = *new ShaderSources{{"sum.hlsl", "void Main() {}\n"}};
  return sources;
}

KernelPermutation Sum(std::vector<ShaderMacro> macros = {{"THREADS", 64}},
                      std::string entry = "Main") {
  return {.shader = "sum", .entry = std::move(entry), .macros = std::move(macros)};
}

// What a newly started process gets for `kernel`, and its counters.
struct Answer {
  std::string bytecode;
  ShaderLibraryCounters counters;
};

Answer AskFreshLibrary(const fs::path& directory, const KernelPermutation& kernel = Sum(),
                       ShaderSources sources = OneShader(),
                       std::string compiler_identity = "spelling 1") {
  SpellingCompiler compiler(std::move(compiler_identity));
  const auto library = ShaderLibrary::Create(
      {.cache_directory = Utf8Name(directory), .sources = std::move(sources)}, compiler);
  const auto bytecode = library->Get(kernel);
  EXPECT_TRUE(bytecode.ok()) << bytecode.status();
  return {bytecode.ok() ? **bytecode : "", library->counters()};
}

std::vector<fs::path> FilesIn(const fs::path& directory) {
  return {fs::directory_iterator(directory), fs::directory_iterator()};
}

std::string ReadAll(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
}

void WriteAll(const fs::path& path, absl::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

TEST(EmbeddedShaders, AreTheFilesOfTheSourceTree) {
  const fs::path root(OPMILL_SHADER_DIRECTORY);
  if (!fs::is_directory(root)) GTEST_SKIP() << "The source tree is not on this machine.";
  size_t file_count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = Utf8Name(entry.path().lexically_relative(root));
    if (!absl::EndsWith(path, ".hlsl") && !absl::EndsWith(path, ".hlsli") &&
        !absl::EndsWith(path, ".h")) {
      continue;
    }
    ++file_count;
    EXPECT_TRUE(EmbeddedShader(fs::path(path).generic_string()) == ReadAll(entry.path())) << path;
  }
  EXPECT_EQ(EmbeddedShaders().size(), file_count);
  EXPECT_EQ(EmbeddedShader("no_such.hlsl"), std::nullopt);
}

TEST(EmbeddedShaders, FlattenCompletely) {
  ShaderSources sources;
  for (const auto& file : EmbeddedShaders()) {
    sources.emplace(std::string(file.path), std::string(file.text));
  }
  for (const auto& [path, text] : sources) {
    const auto flat = FlattenShader(sources, path);
    ASSERT_TRUE(flat.ok()) << flat.status();
    EXPECT_FALSE(absl::StrContains(WithGenerated(*flat, {}), "#include \"")) << path;
  }
}

TEST(FlattenShader, KeepsFileAndLineAndGuardsEachFile) {
  const ShaderSources sources = {
      {"a.hlsl", "#if WIDE\r\n # include \"include/b.hlsli\"  // twice\r\n#endif\nint a;"},
      {"include/b.hlsli", "#include \"include/c.hlsli\"\nint b;\n"},
      {"include/c.hlsli", "#include <cstdint>\n#include \"include/b.hlsli\"\n"}};
  const auto flat = FlattenShader(sources, "a.hlsl");
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(*flat,
            "#line 1 \"a.hlsl\"\n"
            "#if WIDE\n"
            "#ifndef OPMILL_INCLUDED_0\n"
            "#define OPMILL_INCLUDED_0\n"
            "#line 1 \"include/b.hlsli\"\n"
            "#ifndef OPMILL_INCLUDED_1\n"
            "#define OPMILL_INCLUDED_1\n"
            "#line 1 \"include/c.hlsli\"\n"
            "#include <cstdint>\n"
            "#line 3 \"include/c.hlsli\"\n"
            "\n"
            "#endif\n"
            "#line 2 \"include/b.hlsli\"\n"
            "int b;\n"
            "\n"
            "#endif\n"
            "#line 3 \"a.hlsl\"\n"
            "#endif\n"
            "int a;\n");
}

TEST(FlattenShader, NamesTheLineOfAMissingInclude) {
  const auto flat = FlattenShader({{"a.hlsl", "\n#include \"gone.hlsli\"\n"}}, "a.hlsl");
  EXPECT_EQ(flat.status().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(flat.status().message(),
            "Shader a.hlsl includes \"gone.hlsli\" in line 2, which is not among the shader "
            "sources.");
}

TEST(ShaderLibrary, GivesTheCompilerMacrosAndEntry) {
  const Answer answer =
      AskFreshLibrary({}, Sum({{"THREADS", 64}, {"TYPE", 4294967295}}, "Partials"));
  EXPECT_EQ(answer.bytecode,
            "spelling 1|sum.hlsl|Partials|#line 1 \"sum.hlsl\"\nvoid Main() {}\n\n"
            "|THREADS=64|TYPE=4294967295");
}

TEST(ShaderLibrary, PutsTheKernelsTextInItsPlace) {
  const ShaderSources sources = {{"sum.hlsl", "int a;\n#include \"generated\"\nint b;\n"}};
  KernelPermutation kernel = Sum({});
  kernel.text = "int Generated();";
  const std::string name = SourceName(kernel);
  EXPECT_THAT(name, ::testing::MatchesRegex("sum\\.\\w+"));
  EXPECT_EQ(AskFreshLibrary({}, kernel, sources).bytecode,
            absl::StrCat("spelling 1|", name,
                         ".hlsl|Main|#line 1 \"sum.hlsl\"\nint a;\nint Generated();\nint b;\n\n"));
  KernelPermutation other = kernel;
  other.text = "int Other();";
  EXPECT_NE(SourceName(other), name);
  ScratchDirectory scratch;
  for (const uint64_t compiled : {1, 0}) {
    EXPECT_EQ(AskFreshLibrary(scratch.path(), kernel, sources).counters.compiled, compiled);
    EXPECT_EQ(AskFreshLibrary(scratch.path(), other, sources).counters.compiled, compiled);
  }
  SpellingCompiler compiler;
  const auto library =
      ShaderLibrary::Create({.cache_directory = scratch.utf8(), .sources = sources}, compiler);
  EXPECT_THAT(library->Remembered(100), ::testing::UnorderedElementsAre(kernel, other));
}

TEST(ShaderLibrary, PassesOnErrorsAndKeepsNone) {
  ScratchDirectory scratch;
  SpellingCompiler compiler;
  const auto library = ShaderLibrary::Create(
      {.cache_directory = scratch.utf8(), .sources = {{"sum.hlsl", "no HLSL"}}}, compiler);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(library->Get(Sum()).status(), absl::InternalError("sum.hlsl(1): syntax error"));
  }
  EXPECT_EQ(library->Get({.shader = "gone", .entry = "Main", .macros = {}}).status(),
            absl::InternalError("Shader gone.hlsl is not among the shader sources."));
  EXPECT_THAT(FilesIn(scratch.path()), IsEmpty());
  EXPECT_EQ(library->counters().compiled, 0u);
}

TEST(ShaderLibrary, CompilesNothingInTheNextProcess) {
  ScratchDirectory scratch;
  const fs::path directory = scratch.path() / "not" / "yet" / fs::path(u8"there \u00fc\u65e5");
  const Answer first = AskFreshLibrary(directory);
  EXPECT_EQ(first.counters.compiled, 1u);
  EXPECT_EQ(first.counters.disk.misses, 1u);
  const Answer second = AskFreshLibrary(directory);
  EXPECT_EQ(second.counters.compiled, 0u);
  EXPECT_EQ(second.counters.disk.hits, 1u);
  EXPECT_EQ(second.bytecode, first.bytecode);
  EXPECT_THAT(FilesIn(directory), SizeIs(1));
}

TEST(ShaderLibrary, CompilesAgainAfterAnyChange) {
  ScratchDirectory scratch;
  const ShaderSources include_1 = {{"sum.hlsl", "#include \"i\""}, {"i", "1"}};
  const ShaderSources include_2 = {{"sum.hlsl", "#include \"i\""}, {"i", "2"}};
  struct {
    const char* what;
    KernelPermutation kernel = Sum();
    ShaderSources sources = OneShader();
    std::string compiler_identity = "spelling 1";
  } const kCases[] = {
      {.what = "the first"},
      {.what = "a macro's value", .kernel = Sum({{"THREADS", 128}})},
      {.what = "a macro's name", .kernel = Sum({{"THREAD", 64}})},
      {.what = "one macro more", .kernel = Sum({{"THREADS", 64}, {"WIDE", 1}})},
      {.what = "no macro", .kernel = Sum({})},
      {.what = "the entry", .kernel = Sum({{"THREADS", 64}}, "Main2")},
      {.what = "the source", .sources = {{"sum.hlsl", "void Main() { }\n"}}},
      {.what = "an include", .sources = include_1},
      {.what = "the text of an include", .sources = include_2},
      {.what = "the compiler", .compiler_identity = "spelling 2"},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.what);
    for (const uint64_t compiled : {1, 0}) {
      const Answer answer =
          AskFreshLibrary(scratch.path(), test.kernel, test.sources, test.compiler_identity);
      EXPECT_EQ(answer.counters.compiled, compiled);
      EXPECT_EQ(answer.bytecode,
                AskFreshLibrary({}, test.kernel, test.sources, test.compiler_identity).bytecode);
    }
  }
  EXPECT_THAT(FilesIn(scratch.path()), SizeIs(std::size(kCases)));
}

TEST(ShaderLibrary, MissesOnAnyDamageAndRepairsIt) {
  ScratchDirectory scratch;
  const std::string bytecode = AskFreshLibrary(scratch.path()).bytecode;
  const fs::path path = FilesIn(scratch.path()).at(0);
  const std::string whole = ReadAll(path);
  std::vector<std::string> damaged = {whole + "x", std::string(whole.size(), '\0')};
  for (size_t i = 0; i < whole.size(); ++i) {
    damaged.push_back(whole.substr(0, i));
    damaged.push_back(whole);
    damaged.back()[i] ^= 1;
  }
  for (const std::string& bytes : damaged) {
    WriteAll(path, bytes);
    const Answer answer = AskFreshLibrary(scratch.path());
    ASSERT_EQ(answer.bytecode, bytecode);
    ASSERT_EQ(answer.counters.compiled, 1u);
    ASSERT_EQ(answer.counters.disk.rejected_files, 1u);
    ASSERT_EQ(ReadAll(path), whole);
  }
}

TEST(ShaderLibrary, RejectsAnotherKernelsFile) {
  ScratchDirectory scratch;
  const KernelPermutation other = Sum({{"THREADS", 128}});
  AskFreshLibrary(scratch.path());
  const fs::path path = FilesIn(scratch.path()).at(0);
  const std::string bytes = ReadAll(path);
  fs::remove(path);
  const Answer answer = AskFreshLibrary(scratch.path(), other);
  WriteAll(FilesIn(scratch.path()).at(0), bytes);
  const Answer after = AskFreshLibrary(scratch.path(), other);
  EXPECT_EQ(after.bytecode, answer.bytecode);
  EXPECT_EQ(after.counters.disk.rejected_files, 1u);
}

TEST(ShaderLibrary, ListsTheMostRecentlyUsedOfItsOwnKernels) {
  ScratchDirectory scratch;
  const KernelPermutation kernels[] = {Sum({}), Sum({{"THREADS", 64}, {"TYPE", 4294967295}}),
                                       Sum({{"A:", 1}}, "1:")};
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 3; ++i) {
    AskFreshLibrary(scratch.path(), kernels[i]);
    for (const fs::path& file : FilesIn(scratch.path())) {
      if (fs::last_write_time(file) > now - std::chrono::hours(1)) {
        fs::last_write_time(file, now - std::chrono::hours(9 - i));
      }
    }
  }
  AskFreshLibrary(scratch.path(), Sum(), {{"sum.hlsl", "another version's"}});
  AskFreshLibrary(scratch.path(), Sum(), OneShader(), "another compiler");
  WriteAll(scratch.path() / (std::string(64, 'a') + ".dxbc"), "damaged");
  WriteAll(scratch.path() / "notes.dxbc", "foreign");
  AskFreshLibrary(scratch.path(), kernels[0]);  // the oldest one, but just used

  SpellingCompiler compiler;
  const auto library =
      ShaderLibrary::Create({.cache_directory = scratch.utf8(), .sources = OneShader()}, compiler);
  EXPECT_THAT(library->Remembered(100), ElementsAre(kernels[0], kernels[2], kernels[1]));
  EXPECT_THAT(library->Remembered(0), IsEmpty());
  const ShaderLibraryCounters counters = library->counters();
  EXPECT_EQ(counters.disk.hits + counters.disk.misses + counters.compiled, 0u);

  const auto elsewhere = ShaderLibrary::Create({.sources = OneShader()}, compiler);
  EXPECT_THAT(elsewhere->Remembered(100), IsEmpty());
}

TEST(ShaderLibrary, WorksWithAReadOnlyDirectory) {
  ScratchDirectory scratch;
  const fs::path a_file = scratch.path() / "file";
  WriteAll(a_file, "in the way");
  const Answer in_a_file = AskFreshLibrary(a_file / "below");
  EXPECT_EQ(in_a_file.counters.compiled, 1u);
  EXPECT_EQ(in_a_file.counters.disk.failed_writes, 1u);

  // A directory is in the place of the file: the write fails at its last step.
  const fs::path taken = scratch.path() / "taken";
  AskFreshLibrary(taken);
  const fs::path name = FilesIn(taken).at(0);
  fs::remove(name);
  fs::create_directories(name / "and not empty");
  const Answer answer = AskFreshLibrary(taken);
  EXPECT_EQ(answer.counters.compiled, 1u);
  EXPECT_EQ(answer.counters.disk.failed_writes, 1u);
  EXPECT_THAT(FilesIn(taken), SizeIs(1));  // no unfinished file is left
}

TEST(ShaderLibrary, SharesADirectoryAmongConcurrentProcesses) {
  ScratchDirectory scratch;
  constexpr uint32_t kKernels = 20;
  std::vector<std::thread> processes;
  for (int i = 0; i < 8; ++i) {
    processes.emplace_back([&scratch] {
      for (uint32_t value = 0; value < kKernels; ++value) {
        const KernelPermutation kernel = Sum({{"THREADS", value}});
        const Answer answer = AskFreshLibrary(scratch.path(), kernel);
        EXPECT_EQ(answer.bytecode, AskFreshLibrary({}, kernel).bytecode);
        EXPECT_EQ(answer.counters.disk.rejected_files, 0u);
      }
    });
  }
  for (std::thread& process : processes) process.join();
  EXPECT_THAT(FilesIn(scratch.path()), SizeIs(kKernels));
}

TEST(BytecodeCache, RemovesTheLongestUnused) {
  ScratchDirectory scratch;
  const std::string keys[] = {std::string(32, 'a'), std::string(32, 'b'), std::string(32, 'c'),
                              std::string(32, 'd')};
  const std::string bytecode(1000, 'x');
  BytecodeCache cache(scratch.utf8(), 3500);  // room for three, headers included
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 3; ++i) {
    cache.Write(keys[i], bytecode);
    for (const fs::path& file : FilesIn(scratch.path())) {
      if (fs::last_write_time(file) > now - std::chrono::hours(1)) {
        fs::last_write_time(file, now - std::chrono::hours(9 - i));
      }
    }
  }
  EXPECT_EQ(cache.Read(keys[0]), bytecode);  // the oldest one, but just used
  cache.Write(keys[3], bytecode);
  EXPECT_EQ(cache.Read(keys[0]), bytecode);
  EXPECT_EQ(cache.Read(keys[1]), std::nullopt);
  EXPECT_EQ(cache.Read(keys[2]), bytecode);
  EXPECT_EQ(cache.Read(keys[3]), bytecode);
}

TEST(BytecodeCache, RemovesOnlyTheFilesOfCrashedProcesses) {
  ScratchDirectory scratch;
  const fs::path left = scratch.path() / "0123.unfinished";
  const fs::path foreign = scratch.path() / "notes.txt";
  WriteAll(left, std::string(3000, 'x'));
  WriteAll(foreign, std::string(3000, 'x'));
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(1));
  BytecodeCache cache(scratch.utf8(), 2000);
  cache.Write(std::string(32, 'a'), "bytecode");
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(foreign));
  EXPECT_EQ(cache.Read(std::string(32, 'a')), "bytecode");
}

TEST(BytecodeCache, RefusesEntriesLargerThanItsLimit) {
  ScratchDirectory scratch;
  BytecodeCache cache(scratch.utf8(), 1000);
  cache.Write(std::string(32, 'a'), std::string(1000, 'x'));
  EXPECT_EQ(cache.counters().failed_writes, 1u);
  EXPECT_THAT(FilesIn(scratch.path()), IsEmpty());
}

#ifdef _WIN32
TEST(DefaultCacheDirectory, LiesInLocalAppData) {
  _wputenv_s(L"LOCALAPPDATA", L"C:\\Users\\\u00fc\\Local");
  EXPECT_EQ(DefaultCacheDirectory(), "C:\\Users\\\xc3\xbc\\Local\\opmill");
}
#else
TEST(DefaultCacheDirectory, FollowsXdg) {
  struct {
    const char* cache_home;
    const char* home;
    const char* directory;
  } const kCases[] = {
      {"/var/cache/me", "/home/me", "/var/cache/me/opmill"},
      {"", "/home/me", "/home/me/.cache/opmill"},
      {"relative", "/home/me", "/home/me/.cache/opmill"},
      {"", "", ""},
  };
  for (const auto& test : kCases) {
    setenv("XDG_CACHE_HOME", test.cache_home, 1);
    setenv("HOME", test.home, 1);
    EXPECT_EQ(DefaultCacheDirectory(), test.directory);
  }
}
#endif

}  // namespace
}  // namespace opmill
