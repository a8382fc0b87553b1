#include "client/tensor_servers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "kernels/base/errors.h"

namespace opmill {
namespace {

constexpr size_t kMostPlaces = 10'000;  // beyond them, servers are asked again

// The error, with the address of the server before its sentence.
absl::Status NotThere(const std::string& address, const absl::Status& status) {
  absl::Status said(status.code(), absl::StrCat(address, ": ", status.message()));
  status.ForEachPayload(
      [&](absl::string_view type, const absl::Cord& payload) { said.SetPayload(type, payload); });
  return said;
}

}  // namespace

absl::StatusOr<Client*> TensorServers::At(const std::string& address) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = clients_.find(address); found != clients_.end()) {
      return found->second.get();
    }
  }
  ASSIGN_OR_RETURN(Client client, Client::Connect(address, options_));
  const std::lock_guard<std::mutex> lock(mutex_);
  std::unique_ptr<Client>& kept = clients_[address];
  if (kept == nullptr) kept = std::make_unique<Client>(std::move(client));
  return kept.get();
}

absl::StatusOr<v1::ExecutionStatistics> TensorServers::Execute(const ExecutionOptions& execution,
                                                               const Call& call) {
  ASSIGN_OR_RETURN(std::string address, PlaceOf(execution));
  if (address.empty()) address = NextInTurn();
  ASSIGN_OR_RETURN(Client * client, At(address));
  absl::StatusOr<v1::ExecutionStatistics> end = call(*client);
  if (absl::IsNotFound(end.status())) {
    for (const auto& input : execution.resident_inputs) Forget(input.name());
    for (const auto& output : execution.resident_outputs) Forget(output.name());
    return NotThere(address, end.status());
  }
  if (end.ok()) {
    for (const auto& output : execution.resident_outputs) Remember(output.name(), address);
  }
  return end;
}

absl::StatusOr<std::string> TensorServers::PlaceOf(const ExecutionOptions& execution) {
  std::vector<std::pair<std::string, std::string>> places;  // names and addresses
  for (const v1::ResidentInput& input : execution.resident_inputs) {
    ASSIGN_OR_RETURN(std::string address, PlaceOf(input.name()));
    places.emplace_back(input.name(), std::move(address));
  }
  for (const v1::ResidentOutput& output : execution.resident_outputs) {
    absl::StatusOr<std::string> address = PlaceOf(output.name());
    if (address.ok()) {
      places.emplace_back(output.name(), *std::move(address));
    } else if (!absl::IsNotFound(address.status()) ||
               output.kind() != v1::ResidentOutput::KIND_PUT) {
      return address.status();
    }
  }
  if (places.empty()) return std::string();
  const std::string& first = places[0].second;
  if (std::all_of(places.begin(), places.end(),
                  [&](const auto& each) { return each.second == first; })) {
    return first;
  }
  const std::string each = absl::StrJoin(places, ", ", [](std::string* text, const auto& place) {
    absl::StrAppend(text, "\"", place.first, "\" on ", place.second);
  });
  return absl::InvalidArgumentError(
      absl::StrCat("A call computes on one server, but names tensors of several: ", each, "."));
}

absl::StatusOr<std::string> TensorServers::PlaceOf(const std::string& name) {
  if (std::optional<std::string> known = Known(name)) return *std::move(known);
  ASSIGN_OR_RETURN(Found found, Find(name));
  return std::move(found.address);
}

absl::StatusOr<TensorServers::Found> TensorServers::Find(const std::string& name) {
  std::vector<std::string> asked;
  if (std::optional<std::string> known = Known(name)) asked.push_back(*std::move(known));
  for (const std::string& address : addresses_) {
    if (std::find(asked.begin(), asked.end(), address) == asked.end()) asked.push_back(address);
  }
  absl::Status failure;  // another server may have it
  for (const std::string& address : asked) {
    const absl::StatusOr<Client*> client = At(address);
    absl::StatusOr<v1::ListTensorsResponse> found =
        client.ok() ? (*client)->ListTensors(name) : client.status();
    if (found.ok()) {
      Remember(name, address);
      return Found{address, *std::move(found)};
    }
    if (failure.ok() && !absl::IsNotFound(found.status())) failure = found.status();
  }
  Forget(name);
  if (!failure.ok()) return failure;
  return absl::NotFoundError(absl::StrCat("No server has a tensor \"", name,
                                          "\"; these were asked: ", absl::StrJoin(addresses_, ", "),
                                          "."));
}

absl::StatusOr<v1::ListTensorsResponse> TensorServers::List(const std::string& name) {
  if (!name.empty()) {
    ASSIGN_OR_RETURN(Found found, Find(name));
    return std::move(found.tensor);
  }
  v1::ListTensorsResponse all;
  for (const std::string& address : addresses_) {
    ASSIGN_OR_RETURN(Client * client, At(address));
    ASSIGN_OR_RETURN(v1::ListTensorsResponse listed, client->ListTensors());
    for (v1::ResidentTensor& tensor : *listed.mutable_tensors()) {
      *all.add_tensors() = std::move(tensor);
    }
  }
  std::stable_sort(
      all.mutable_tensors()->begin(), all.mutable_tensors()->end(),
      [](const v1::ResidentTensor& a, const v1::ResidentTensor& b) { return a.name() < b.name(); });
  return all;
}

absl::Status TensorServers::Delete(const std::string& name, std::optional<uint64_t> if_generation) {
  ASSIGN_OR_RETURN(const std::string address, PlaceOf(name));
  ASSIGN_OR_RETURN(Client * client, At(address));
  const absl::Status deleted = client->DeleteTensor(name, if_generation);
  if (deleted.ok() || absl::IsNotFound(deleted)) Forget(name);
  return absl::IsNotFound(deleted) ? NotThere(address, deleted) : deleted;
}

std::optional<std::string> TensorServers::Known(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = places_.find(name);
  if (found == places_.end()) return std::nullopt;
  return found->second;
}

void TensorServers::Remember(const std::string& name, const std::string& address) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (places_.size() >= kMostPlaces) places_.clear();
  places_[name] = address;
}

void TensorServers::Forget(const std::string& name) {
  const std::lock_guard<std::mutex> lock(mutex_);
  places_.erase(name);
}

std::string TensorServers::NextInTurn() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return addresses_[turn_++ % addresses_.size()];
}

}  // namespace opmill
