#include "kernels/d3d12/shader/shader_library.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "kernels/base/errors.h"
#include "kernels/base/sha256.h"
#include "kernels/d3d12/shader/embedded_shaders.h"

namespace opmill {
namespace {

// What KernelPermutation::text replaces, as a whole line.
constexpr absl::string_view kGeneratedPath = "generated";
constexpr absl::string_view kGeneratedLine = "#include \"generated\"\n";

// The path of an `#include "path"` line; empty for other lines.
absl::string_view IncludedPath(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "#")) return {};
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "include")) return {};
  line = absl::StripLeadingAsciiWhitespace(line);
  if (!absl::ConsumePrefix(&line, "\"")) return {};
  return line.substr(0, line.find('"'));
}

class Flattener {
 public:
  explicit Flattener(const ShaderSources& sources) : sources_(sources) {}

  absl::Status Append(absl::string_view path, absl::string_view text) {
    open_.push_back(path);
    AppendLineDirective(1, path);
    size_t number = 0;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      line = absl::StripSuffix(line, "\r");
      const absl::string_view included = IncludedPath(line);
      if (included.empty() || included == kGeneratedPath) {
        absl::StrAppend(&out_, line, "\n");
        continue;
      }
      const auto source = sources_.find(included);
      if (source == sources_.end()) {
        return absl::InternalError(absl::StrCat("Shader ", path, " includes \"", included,
                                                "\" in line ", number,
                                                ", which is not among the shader sources."));
      }
      RETURN_IF_ERROR(AppendGuarded(source->first, source->second));
      AppendLineDirective(number + 1, path);
    }
    open_.pop_back();
    return absl::OkStatus();
  }

  std::string Take() && { return std::move(out_); }

 private:
  // The text is inserted at every inclusion, because macros determine which one the compiler
  // reaches first; the guard empties the others.
  absl::Status AppendGuarded(absl::string_view path, absl::string_view text) {
    if (std::find(open_.begin(), open_.end(), path) != open_.end()) return absl::OkStatus();
    const size_t guard = guards_.try_emplace(path, guards_.size()).first->second;
    absl::StrAppend(&out_, "#ifndef OPMILL_INCLUDED_", guard, "\n#define OPMILL_INCLUDED_", guard,
                    "\n");
    RETURN_IF_ERROR(Append(path, text));
    absl::StrAppend(&out_, "#endif\n");
    return absl::OkStatus();
  }

  void AppendLineDirective(size_t line, absl::string_view path) {
    absl::StrAppend(&out_, "#line ", line, " \"", path, "\"\n");
  }

  const ShaderSources& sources_;
  std::vector<absl::string_view> open_;  // the chain of including files
  absl::flat_hash_map<absl::string_view, size_t> guards_;
  std::string out_;
};

ShaderSources EmbeddedSources() {
  ShaderSources sources;
  for (const EmbeddedFile& file : EmbeddedShaders()) {
    sources.emplace(std::string(file.path), std::string(file.text));
  }
  return sources;
}

// Appends a field with its length, so that it cannot merge with its neighbor.
void AppendField(std::string& out, absl::string_view field) {
  absl::StrAppend(&out, field.size(), ":", field);
}

std::optional<absl::string_view> TakeField(absl::string_view& in) {
  const size_t colon = in.find(':');
  uint32_t size = 0;
  if (colon == absl::string_view::npos || !absl::SimpleAtoi(in.substr(0, colon), &size) ||
      size > in.size() - colon - 1) {
    return std::nullopt;
  }
  const absl::string_view field = in.substr(colon + 1, size);
  in.remove_prefix(colon + 1 + size);
  return field;
}

// A cache file contains the kernel's name as a field, followed by its bytecode.
std::string NameOf(const KernelPermutation& kernel) {
  std::string name;
  AppendField(name, kernel.shader);
  AppendField(name, kernel.entry);
  AppendField(name, kernel.text);
  for (const ShaderMacro& macro : kernel.macros) {
    AppendField(name, macro.name);
    AppendField(name, absl::StrCat(macro.value));
  }
  return name;
}

std::optional<KernelPermutation> KernelOf(absl::string_view name) {
  const std::optional<absl::string_view> shader = TakeField(name);
  const std::optional<absl::string_view> entry = TakeField(name);
  const std::optional<absl::string_view> text = TakeField(name);
  if (!shader.has_value() || !entry.has_value() || !text.has_value()) return std::nullopt;
  KernelPermutation kernel = {
      .shader = std::string(*shader), .entry = std::string(*entry), .text = std::string(*text)};
  while (!name.empty()) {
    const std::optional<absl::string_view> macro = TakeField(name);
    const std::optional<absl::string_view> value = TakeField(name);
    uint32_t number = 0;
    if (!macro.has_value() || !value.has_value() || !absl::SimpleAtoi(*value, &number)) {
      return std::nullopt;
    }
    kernel.macros.push_back({std::string(*macro), number});
  }
  return kernel;
}

}  // namespace

std::string WithGenerated(absl::string_view flat, const KernelPermutation& kernel) {
  return absl::StrReplaceAll(flat, {{kGeneratedLine, absl::StrCat(kernel.text, "\n")}});
}

std::string SourceName(const KernelPermutation& kernel) {
  if (kernel.text.empty()) return kernel.shader;
  return absl::StrCat(kernel.shader, ".", Sha256Hex(kernel.text).substr(0, 16));
}

absl::StatusOr<std::string> FlattenShader(const ShaderSources& sources, absl::string_view path) {
  const auto source = sources.find(path);
  if (source == sources.end()) {
    return absl::InternalError(absl::StrCat("Shader ", path, " is not among the shader sources."));
  }
  Flattener flattener(sources);
  RETURN_IF_ERROR(flattener.Append(source->first, source->second));
  return std::move(flattener).Take();
}

std::unique_ptr<ShaderLibrary> ShaderLibrary::Create(ShaderLibraryOptions options,
                                                     ShaderCompiler& compiler) {
  return std::unique_ptr<ShaderLibrary>(new ShaderLibrary(std::move(options), compiler));
}

ShaderLibrary::ShaderLibrary(ShaderLibraryOptions options, ShaderCompiler& compiler)
    : compiler_(compiler),
      compiler_identity_(compiler.identity()),
      sources_(options.sources.empty() ? EmbeddedSources() : std::move(options.sources)),
      disk_(options.cache_directory, options.max_cache_bytes, std::move(options.on_cache_problem)) {
}

absl::StatusOr<std::shared_ptr<const std::string>> ShaderLibrary::Get(
    const KernelPermutation& kernel) {
  const std::string path = absl::StrCat(kernel.shader, ".hlsl");
  ASSIGN_OR_RETURN(const std::shared_ptr<const FlatShader> flat, Flat(path));
  const std::string key = KeyOf(*flat, kernel);
  if (std::optional<std::string> found = disk_.Read(key); found.has_value()) {
    absl::string_view bytecode = *found;
    if (TakeField(bytecode).has_value()) return std::make_shared<const std::string>(bytecode);
  }
  ASSIGN_OR_RETURN(
      std::string bytecode,
      compiler_.Compile(WithGenerated(flat->text, kernel),
                        absl::StrCat(SourceName(kernel), ".hlsl"), kernel.entry, kernel.macros));
  compiled_.fetch_add(1, std::memory_order_relaxed);
  std::string file;
  AppendField(file, NameOf(kernel));
  absl::StrAppend(&file, bytecode);
  disk_.Write(key, file);
  return std::make_shared<const std::string>(std::move(bytecode));
}

std::vector<KernelPermutation> ShaderLibrary::Remembered(size_t max_kernels) {
  std::vector<KernelPermutation> kernels;
  for (const std::string& key : disk_.Keys(max_kernels)) {
    const std::optional<std::string> file = disk_.Peek(key);
    if (!file.has_value()) continue;
    absl::string_view rest = *file;
    const std::optional<absl::string_view> name = TakeField(rest);
    std::optional<KernelPermutation> kernel = name.has_value() ? KernelOf(*name) : std::nullopt;
    if (!kernel.has_value()) continue;
    // Files of other sources and compilers are left alone.
    const auto flat = Flat(absl::StrCat(kernel->shader, ".hlsl"));
    if (flat.ok() && KeyOf(**flat, *kernel) == key) kernels.push_back(*std::move(kernel));
  }
  return kernels;
}

ShaderLibraryCounters ShaderLibrary::counters() const {
  return {.compiled = compiled_.load(std::memory_order_relaxed), .disk = disk_.counters()};
}

absl::StatusOr<std::shared_ptr<const ShaderLibrary::FlatShader>> ShaderLibrary::Flat(
    const std::string& path) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<const FlatShader>& flat = flat_[path];
  if (flat == nullptr) {
    ASSIGN_OR_RETURN(std::string text, FlattenShader(sources_, path));
    std::string digest = Sha256(text);
    flat = std::make_shared<const FlatShader>(FlatShader{std::move(text), std::move(digest)});
  }
  return flat;
}

std::string ShaderLibrary::KeyOf(const FlatShader& flat, const KernelPermutation& kernel) const {
  std::string fields;
  AppendField(fields, "name, text and bytecode");
  AppendField(fields, compiler_identity_);
  AppendField(fields, flat.digest);
  AppendField(fields, NameOf(kernel));
  return Sha256(fields);
}

}  // namespace opmill
