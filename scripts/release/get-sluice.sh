#!/bin/sh
# Downloads Sluice @VERSION@, checks it, and runs its installer with the given options:
#   curl -fsSL <address>/get-sluice.sh | sh -s -- --standard
# Nothing that was downloaded is unpacked or run before the signature of the checksums and the checksum of the archive are right.
set -eu

VERSION='@VERSION@'
# The address of the folder with the files of the release. SLUICE_DOWNLOADS names a mirror, whose files are checked in the same way.
DOWNLOADS=${SLUICE_DOWNLOADS:-'@DOWNLOADS@'}
PUBLIC_KEY='@PUBLIC_KEY@'

fail() {
  printf 'get-sluice: %s\n' "$*" >&2
  exit 1
}

has() {
  command -v "$1" >/dev/null 2>&1
}

# Downloads the file $1 of the release into the folder $2.
download() {
  printf 'get-sluice: fetching %s\n' "$1" >&2
  if has curl; then
    curl -fsSL --retry 2 -o "$2/$1" "${DOWNLOADS%/}/$1"
  elif has wget; then
    wget -q --tries=3 -O "$2/$1" "${DOWNLOADS%/}/$1"
  else
    fail 'neither curl nor wget is installed; install one of them'
  fi || fail "${DOWNLOADS%/}/$1 could not be downloaded; nothing was installed"
}

verified_by_openssl() {
  openssl pkeyutl -verify -pubin -inkey "$1/release.pub.pem" -rawin -in "$1/SHA256SUMS" -sigfile "$1/SHA256SUMS.sig" >/dev/null 2>&1
}

# OpenSSL before 3 has no -rawin, and the openssl of macOS may not know Ed25519.
openssl_can_verify() {
  has openssl || return 1
  case "$(openssl pkeyutl -help 2>&1)" in
    *-rawin*) openssl pkey -pubin -in "$1/release.pub.pem" -noout >/dev/null 2>&1 ;;
    *) return 1 ;;
  esac
}

# Root runs no Node that another user might replace.
may_run_node() {
  [ "$(id -u)" != 0 ] && has node
}

verified_by_node() {
  may_run_node && node -e '
    const [key, signature, data] = process.argv.slice(1).map((file) => require("fs").readFileSync(file))
    process.exit(require("crypto").verify(null, data, key, signature) ? 0 : 1)
  ' "$1/release.pub.pem" "$1/SHA256SUMS.sig" "$1/SHA256SUMS" >/dev/null 2>&1
}

sha256() {
  if has sha256sum; then sha256sum "$1"; else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

# The shell reads the whole script before it runs the last line, so a script whose download was cut does nothing.
main() {
  profile=full
  for option in "$@"; do
    case "$option" in --minimal | --standard | --full) profile=${option#--} ;; esac
  done
  [ -n "$DOWNLOADS" ] || fail 'SLUICE_DOWNLOADS is missing: set it to the address of the folder with the files of the release'
  has openssl || may_run_node || fail 'openssl is not installed, so the signature cannot be checked; install it'
  has sha256sum || has shasum || fail 'neither sha256sum nor shasum is installed, so the archive cannot be checked; install one of them'
  for program in tar gzip; do
    has "$program" || fail "$program is not installed, so the archive cannot be unpacked; install it"
  done
  name=sluice-$VERSION-$profile
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  trap 'exit 130' INT TERM
  printf '%s\n' "$PUBLIC_KEY" >"$folder/release.pub.pem"
  download SHA256SUMS "$folder"
  download SHA256SUMS.sig "$folder"
  if ! verified_by_openssl "$folder" && ! verified_by_node "$folder"; then
    openssl_can_verify "$folder" || may_run_node ||
      fail 'this openssl cannot check Ed25519 signatures, so nothing was installed; install OpenSSL 3 or later'
    fail 'the signature of SHA256SUMS is not the one of the release key; nothing was installed'
  fi
  expected=$(sed -n "s/^\([0-9a-f]\{64\}\)  $name\.tar\.gz\$/\1/p" "$folder/SHA256SUMS")
  [ -n "$expected" ] || fail "the signed SHA256SUMS does not name $name.tar.gz: these are the files of another release; nothing was installed"
  download "$name.tar.gz" "$folder"
  [ "$(sha256 "$folder/$name.tar.gz")" = "$expected" ] ||
    fail "$name.tar.gz does not have the SHA-256 of the signed SHA256SUMS; nothing was installed"
  tar -xzf "$folder/$name.tar.gz" -C "$folder"
  # The folder for temporary files may be mounted with noexec.
  sh "$folder/$name/install.sh" "$@"
}

main "$@"
