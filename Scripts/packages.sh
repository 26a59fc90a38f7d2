# Sourced by the other scripts: makes sure that the Debian packages the build needs are there.
#
# install_packages name…   installs the missing ones with apt when this user may, else says what to type.

BUILD_PACKAGES=(libsqlite3-dev libcurl4-openssl-dev libwebsockets-dev)
DEMO_PACKAGES=(sqlite3 curl)
POSTGRES_PACKAGES=(libpq-dev postgresql)
INTEROP_PACKAGES=(python3 python3-venv)

install_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query --show --showformat='${db:Status-Abbrev}' "$name" 2>/dev/null | grep -q '^ii' || missing+=("$name")
  done
  ((${#missing[@]})) || return 0
  local sudo=()
  if ((EUID != 0)); then
    if command -v sudo >/dev/null && sudo --non-interactive true 2>/dev/null; then
      sudo=(sudo --non-interactive)
    else
      echo "These packages are missing; install them and try again: apt-get install ${missing[*]}" >&2
      return 1
    fi
  fi
  echo "Installing ${missing[*]} …" >&2
  # The package lists of a fresh machine are empty or old; one update, then one more try.
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends \
    "${missing[@]}" >/dev/null 2>&1 && return 0
  "${sudo[@]}" apt-get update --quiet >/dev/null || return 1
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends \
    "${missing[@]}" >&2
}

need_swift() {
  command -v swift >/dev/null && return 0
  echo "The Swift toolchain (6.2 or later) is not on the PATH; see https://www.swift.org/install/linux/" >&2
  return 1
}

# Sets `traits` to those that debug builds are made with, all with the same, so that nothing is built twice: with a
# PostgreSQL behind the development server where libpq is there.
debug_traits() {
  traits=()
  if dpkg-query --show --showformat='${db:Status-Abbrev}' libpq-dev 2>/dev/null | grep -q '^ii'; then
    traits=(--traits Postgres)
  fi
}

# build_products release|debug name…   builds executables and sets `bin` to where they are. A release carries the Swift
# runtime with it, as the README builds it: one file to copy, and less memory.
build_products() {
  local flags=(-c "$1") name
  [[ $1 == release ]] && flags+=(--static-swift-stdlib)
  # shellcheck disable=SC2206  # several flags in one variable
  flags+=(${SWIFT_FLAGS:-})
  if [[ $1 == debug ]]; then
    debug_traits
    flags+=("${traits[@]}")
  fi
  shift
  for name in "$@"; do
    swift build "${flags[@]}" --product "$name" || return 1
  done
  bin=$(swift build "${flags[@]}" --show-bin-path)
}
