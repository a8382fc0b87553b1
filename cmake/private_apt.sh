# Sourced by the fetch scripts: apt with a sources list of its own, beside the system's and without
# touching it. The mirror and every other setting are the machine's.
#
#   private_apt_beside "$dir"                         sets work, an empty folder beside it that is gone at
#                                                     the script's end, and begins in $work/apt
#   private_apt_begin "$work/apt"                     an empty folder
#   private_apt_source "deb [...] %s unstable main"   %s becomes the mirror
#   private_apt_fetch download libvkd3d-dev           updates, then runs the verb in $work/files
#   private_apt_has libvkd3d-dev=2.1                  after an update: is there this version?
#
# OPMILL_DEBIAN_MIRROR is another mirror for these scripts alone, such as a snapshot of Debian's archive.
# shellcheck shell=bash

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

private_apt() {
  local tool=$1
  shift
  "$tool" -qq -o Dir::Etc::SourceList="$apt_work/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$apt_work/lists" -o Dir::Cache="$apt_work/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@"
}

# shellcheck disable=SC2016  # apt expands $(REPO_URI)
debian_mirror() {
  apt-get "$@" indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p
}

# The name of this Debian release.
debian_codename() {
  # shellcheck source=/dev/null
  (. /etc/os-release && echo "${VERSION_CODENAME:-}")
}

private_apt_beside() {
  mkdir -p "$(dirname "$1")"
  work=$(mktemp -d "$1.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  private_apt_begin "$work/apt"
}

private_apt_begin() {
  command -v apt-get >/dev/null || fail "needs apt-get, which this system does not have."
  apt_work=$(realpath "$1")
  mkdir -p "$apt_work"/{lists,cache/archives}/partial "$apt_work"/files
  apt_mirror=${OPMILL_DEBIAN_MIRROR:-$(debian_mirror)}
  if [[ -z $apt_mirror ]]; then  # the system's lists were cleaned away
    local own=(-o Dir::State::Lists="$apt_work/lists" -o APT::Sandbox::User="$(id -un)")
    apt-get -qq "${own[@]}" update || true
    apt_mirror=$(debian_mirror "${own[@]}")
  fi
  [[ -n $apt_mirror ]] || fail "apt's configuration names no Debian mirror."
}

# shellcheck disable=SC2059  # the caller's line is the format
private_apt_source() { printf "$1\n" "$apt_mirror" >>"$apt_work/sources.list"; }

private_apt_fetch() {
  local attempt attempts=3
  for ((attempt = 1; ; ++attempt)); do
    private_apt apt-get update && (cd "$apt_work/files" && private_apt apt-get "$@") && return
    ((attempt < attempts)) || fail "$apt_mirror did not give in $attempts attempts: $*."
    echo "${0##*/}: attempt $attempt of $attempts failed; trying again." >&2
    sleep $((attempt * 5))
  done
}

private_apt_has() { [[ -n $(private_apt apt-cache show "$1" 2>/dev/null) ]]; }
