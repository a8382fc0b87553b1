// Compiles the list that kernel_list writes with Microsoft's d3dcompiler_47.dll, on Windows or
// under Wine. Kernel number n of the list leaves <n>.dxbc beside it.
//
//   fxc.exe FOLDER [SHARE SHARES]     every SHARES-th kernel, from number SHARE on
//
// Exit status 1: a kernel does not compile, or draws a warning that kAllowed does not name.
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
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/d3d12/shader_options.h"

namespace {

// Every other warning stops the build. Those that say that a kernel may be wrong rather than slow:
// X3203 signed/unsigned mismatch, X3206 implicit truncation, X3550 array index out of bounds,
// X3578 output not written, X3663 barrier in varying flow, X4000 uninitialised, X4010 unsigned
// compared with below 0.
struct Allowed {
  const char* code;
  const char* kernels;  // what their lines in the list begin with
  const char* reason;
};
constexpr Allowed kAllowed[] = {
    {"X4714", "arg_reduce ReduceColumns DATA_TYPE=5 THREADS=256 ",
     "16 candidates a lane; a hint at how many groups fit, and drivers allot registers anew"},
    {"X4714", "arg_reduce ReduceColumns DATA_TYPE=8 THREADS=256 ",
     "16 candidates a lane; a hint at how many groups fit, and drivers allot registers anew"},
};

struct Kernel {
  std::string line;  // as the list has it
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

// What the compiler says, line by line, each with the first kernel that drew it.
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

  // Prints all; the number of those that stop the build.
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

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  std::vector<Kernel> Kernels() const {
    std::vector<Kernel> kernels;
    std::istringstream lines(ReadFile(path_ + "/kernels.txt"));
    for (std::string line; std::getline(lines, line);) kernels.push_back(ParseKernel(line));
    return kernels;
  }

  // False when there is no bytecode.
  bool Compile(const Kernel& kernel, size_t number, Complaints& complaints) {
    std::string& source = sources_[kernel.shader];
    if (source.empty()) source = ReadFile(path_ + "/" + kernel.shader + ".hlsl");
    std::vector<D3D_SHADER_MACRO> macros;
    for (const auto& [name, value] : kernel.macros) {
      macros.push_back({name.c_str(), value.c_str()});
    }
    macros.push_back({nullptr, nullptr});
    ID3DBlob* code = nullptr;
    ID3DBlob* messages = nullptr;
    const HRESULT result = D3DCompile(
        source.data(), source.size(), (kernel.shader + ".hlsl").c_str(), macros.data(), nullptr,
        kernel.entry.c_str(), opmill::kShaderTarget, opmill::kShaderFlags, 0, &code, &messages);
    if (messages != nullptr) {
      complaints.Add(kernel, std::string(static_cast<const char*>(messages->GetBufferPointer()),
                                         messages->GetBufferSize()));
      messages->Release();
    }
    if (FAILED(result)) {
      if (messages == nullptr) complaints.Add(kernel, "error: D3DCompile failed and says nothing");
      return false;
    }
    char name[32];
    std::snprintf(name, sizeof(name), "/%05zu.dxbc", number);
    std::ofstream file(path_ + name, std::ios::binary);
    file.write(static_cast<const char*>(code->GetBufferPointer()),
               static_cast<std::streamsize>(code->GetBufferSize()));
    code->Release();
    file.close();
    return !file.fail();
  }

 private:
  const std::string path_;
  std::map<std::string, std::string> sources_;
};

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::fprintf(stderr, "usage: fxc FOLDER [SHARE SHARES]\n");
    return 2;
  }
  const size_t share = argc == 4 ? std::strtoul(argv[2], nullptr, 10) : 0;
  const size_t shares = argc == 4 ? std::strtoul(argv[3], nullptr, 10) : 1;
  if (shares == 0 || share >= shares) {
    std::fprintf(stderr, "fxc: there is no share %s of %s\n", argv[2], argv[3]);
    return 2;
  }
  Folder folder(argv[1]);
  const std::vector<Kernel> kernels = folder.Kernels();
  Complaints complaints;
  size_t compiled = 0;
  size_t failed = 0;
  double slowest = 0;
  std::string slowest_kernel;
  const double began = Now();
  for (size_t number = share; number < kernels.size(); number += shares) {
    const double start = Now();
    ++(folder.Compile(kernels[number], number, complaints) ? compiled : failed);
    if (const double seconds = Now() - start; seconds > slowest) {
      slowest = seconds;
      slowest_kernel = kernels[number].line;
    }
  }
  const size_t refused = complaints.Report();
  std::printf(
      "fxc: share %zu of %zu: %zu compiled, %zu failed, %zu complaints, %.1f s, slowest %.2f s: "
      "%s\n",
      share + 1, shares, compiled, failed, refused, Now() - began, slowest, slowest_kernel.c_str());
  return failed == 0 && refused == 0 && compiled > 0 ? 0 : 1;
}
