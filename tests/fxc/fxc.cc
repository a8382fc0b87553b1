// Compiles the list of kernel_list with Microsoft's d3dcompiler_47.dll, on Windows or under Wine.
//
//   fxc.exe FOLDER KEPT SHARE SHARES     every SHARES-th kernel of FOLDER, starting with SHARE
//
// FOLDER/compiled.<SHARE> gets one line per kernel: the file of its bytecode in KEPT, and the
// kernel. Files are named after the preprocessed text, so another run compiles only what has
// changed or was not reached. Kernels with warnings are compiled every time.
//
// Exit status 1: a kernel does not compile, or has a warning that kAllowed does not list.
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
// clang-format off
#include <windows.h>
#include <d3dcompiler.h>
// clang-format on

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/d3d12/shader/shader_options.h"

namespace {

// All other warnings are errors. Those that indicate a wrong, not only a slow, kernel are: X3203
// signed/unsigned mismatch, X3206 implicit truncation, X3550 array index out of bounds, X3578
// output not written, X3663 barrier in varying flow, X4000 uninitialised, X4010 unsigned compared
// with below 0.
struct Allowed {
  const char* code;
  const char* kernels;  // prefix of their lines in the list
  const char* reason;
};
const std::vector<Allowed> kAllowed = {
    {"X4714", "top_k_select SelectBest",
     "a lane keeps the keys of four vectors; the drivers' compilers spill none of them, see "
     "./dev gpu-report"},
    {"X4714", "matrix Multiply",
     "a lane keeps 64 sums; the drivers' compilers spill none of them, see ./dev gpu-report"},
};

struct Kernel {
  std::string line;  // as in the list
  std::string shader;
  std::string entry;
  std::vector<std::pair<std::string, std::string>> macros;
};

Kernel ParseKernel(const std::string& line) {
  Kernel kernel;
  kernel.line = line;
  std::istringstream words(line);
  words >> kernel.shader >> kernel.entry;
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    kernel.macros.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return kernel;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "fxc: cannot open %s\n", path.c_str());
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

// Collects the compiler's messages, each with the first kernel that caused it.
class Complaints {
 public:
  void Add(const Kernel& kernel, const std::string& messages) {
    std::istringstream lines(messages.c_str());  // up to its zero
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      const Allowed* allowed = FindAllowed(kernel, line);
      if (allowed != nullptr) {
        ++allowed_[allowed];
      } else {
        ++complaints_.try_emplace(line, Complaint{kernel.line, 0}).first->second.count;
      }
    }
  }

  // Prints all messages; returns the number of errors.
  size_t Report() const {
    for (const auto& [line, complaint] : complaints_) {
      std::printf("%s\n  %zu times, first by: %s\n", line.c_str(), complaint.count,
                  complaint.kernel.c_str());
    }
    for (const auto& [allowed, count] : allowed_) {
      std::printf("allowed %s, %zu times by %s: %s\n", allowed->code, count, allowed->kernels,
                  allowed->reason);
    }
    return complaints_.size();
  }

 private:
  struct Complaint {
    std::string kernel;
    size_t count = 0;
  };

  static const Allowed* FindAllowed(const Kernel& kernel, const std::string& line) {
    for (const Allowed& allowed : kAllowed) {
      if (line.find(std::string("warning ") + allowed.code + ":") != std::string::npos &&
          kernel.line.rfind(allowed.kernels, 0) == 0) {
        return &allowed;
      }
    }
    return nullptr;
  }

  std::map<std::string, Complaint> complaints_;
  std::map<const Allowed*, size_t> allowed_;
};

// The compiler's output as text.
class Blob {
 public:
  Blob() = default;
  Blob(const Blob&) = delete;
  Blob& operator=(const Blob&) = delete;
  ~Blob() {
    if (blob_ != nullptr) blob_->Release();
  }

  ID3DBlob** out() { return &blob_; }

  std::string text() const {
    if (blob_ == nullptr) return {};
    return {static_cast<const char*>(blob_->GetBufferPointer()), blob_->GetBufferSize()};
  }

 private:
  ID3DBlob* blob_ = nullptr;
};

// FNV-1a over the entry and the lines of code, independent of their line numbers.
std::string NameOf(const std::string& entry, const std::string& preprocessed) {
  uint64_t hash = 14695981039346656037u;
  const auto add = [&hash](const std::string& text) {
    for (const char c : text + '\n') {
      hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    }
  };
  add(entry);
  std::istringstream lines(preprocessed.c_str());  // up to its zero
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos && line.rfind("#line", 0) != 0) {
      add(line);
    }
  }
  char name[32];
  std::snprintf(name, sizeof(name), "%016llx.dxbc", static_cast<unsigned long long>(hash));
  return name;
}

class Compiler {
 public:
  Compiler(std::string folder, std::string kept, const std::string& share)
      : folder_(std::move(folder)), kept_(std::move(kept) + "/"), new_("new." + share) {}

  // The file of the bytecode; empty if there is none.
  std::string Compile(const Kernel& kernel, Complaints& complaints) {
    std::string& source = sources_[kernel.shader];
    if (source.empty()) source = ReadFile(folder_ + "/" + kernel.shader + ".hlsl");
    const std::string name = kernel.shader + ".hlsl";
    std::vector<D3D_SHADER_MACRO> macros;
    for (const auto& [macro, value] : kernel.macros) {
      macros.push_back({macro.c_str(), value.c_str()});
    }
    macros.push_back({nullptr, nullptr});

    Blob text;
    Blob text_messages;
    if (FAILED(D3DPreprocess(source.data(), source.size(), name.c_str(), macros.data(), nullptr,
                             text.out(), text_messages.out()))) {
      complaints.Add(kernel, "error: D3DPreprocess fails: " + text_messages.text());
      return {};
    }
    const std::string file = NameOf(kernel.entry, text.text());
    if (std::filesystem::exists(kept_ + file)) return file;

    ++compiled_;
    Blob code;
    Blob messages;
    const HRESULT result = D3DCompile(source.data(), source.size(), name.c_str(), macros.data(),
                                      nullptr, kernel.entry.c_str(), opmill::kShaderTarget,
                                      opmill::kShaderFlags, 0, code.out(), messages.out());
    const std::string said = messages.text();
    complaints.Add(kernel, said);
    if (FAILED(result)) {
      if (said.empty()) complaints.Add(kernel, "error: D3DCompile fails and says nothing");
      return {};
    }
    // The file is renamed when it is complete.
    std::ofstream stream(kept_ + new_, std::ios::binary | std::ios::trunc);
    stream << code.text();
    stream.close();
    if (stream.fail()) {
      std::fprintf(stderr, "fxc: cannot write %s%s\n", kept_.c_str(), new_.c_str());
      std::exit(2);
    }
    const std::string name_of_it = said.empty() ? file : "warned." + file;
    std::filesystem::rename(kept_ + new_, kept_ + name_of_it);
    return name_of_it;
  }

  size_t compiled() const { return compiled_; }

 private:
  const std::string folder_;
  const std::string kept_;
  const std::string new_;
  std::map<std::string, std::string> sources_;
  size_t compiled_ = 0;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: fxc FOLDER KEPT SHARE SHARES\n");
    return 2;
  }
  const std::string folder = argv[1];
  const size_t share = std::strtoul(argv[3], nullptr, 10);
  const size_t shares = std::strtoul(argv[4], nullptr, 10);
  if (shares == 0 || share >= shares) {
    std::fprintf(stderr, "fxc: there is no share %s of %s\n", argv[3], argv[4]);
    return 2;
  }
  std::vector<Kernel> kernels;
  std::istringstream lines(ReadFile(folder + "/kernels.txt"));
  for (std::string line; std::getline(lines, line);) kernels.push_back(ParseKernel(line));

  Compiler compiler(folder, argv[2], argv[3]);
  std::ofstream list(folder + "/compiled." + argv[3], std::ios::binary);
  Complaints complaints;
  size_t right = 0;
  size_t failed = 0;
  double slowest = 0;
  std::string slowest_kernel;
  const double began = Now();
  for (size_t number = share; number < kernels.size(); number += shares) {
    const double start = Now();
    const std::string file = compiler.Compile(kernels[number], complaints);
    ++(file.empty() ? failed : right);
    if (!file.empty()) list << file << " " << kernels[number].line << "\n";
    if (const double seconds = Now() - start; seconds > slowest) {
      slowest = seconds;
      slowest_kernel = kernels[number].line;
    }
  }
  list.close();
  const size_t refused = complaints.Report();
  std::printf(
      "fxc: share %zu of %zu: %zu right, %zu of them compiled now, %zu failed, %zu complaints, "
      "%.1f "
      "s, slowest %.2f s: %s\n",
      share + 1, shares, right, compiler.compiled() - failed, failed, refused, Now() - began,
      slowest, slowest_kernel.c_str());
  return failed == 0 && refused == 0 && right > 0 && !list.fail() ? 0 : 1;
}
