#!/bin/sh
# Installs plinth from a release. It downloads the archive for this machine, verifies the signature of the release's checksums
# and the archive's checksum, and copies the program, its man pages and completion scripts below a prefix:
#
#   curl -fsSL https://github.com/plinth-io/plinth/releases/latest/download/install.sh | sh
#   curl -fsSL … | sh -s -- --prefix /opt/plinth --version v0.5.0
#
# It changes nothing else: it makes no user, starts nothing, and edits no file of yours. install.sh --help lists the options.
set -eu

# make release fills in these three lines. A copy from the repository has neither version nor key.
version=""
public_key=""
programs="plinth"

prefix=
from=

say() { printf 'plinth: %s\n' "$*" >&2; }
fail() {
  say "$*"
  exit 1
}

usage() {
  cat <<EOF
install.sh [--version VERSION] [--prefix DIR] [--from URL] [--public-key KEY]

  --version     release to install, such as v0.5.0; by default ${version:-none: name one}
  --prefix      directory for bin/ and share/; by default /usr/local as root, else ~/.local
  --from        directory with the files of the release; by default GitHub's
  --public-key  minisign's public key of the release; by default the one in this script
EOF
}

# options reads the command line.
options() {
  while [ $# -gt 0 ]; do
    case "$1" in
    --help | -h)
      usage
      exit 0
      ;;
    --version | --prefix | --from | --public-key)
      [ -n "${2-}" ] || fail "$1 needs a value"
      case "$1" in
      --version) version=$2 ;;
      --prefix) prefix=$2 ;;
      --from) from=${2%/} ;;
      --public-key) public_key=$2 ;;
      esac
      shift 2
      ;;
    *) fail "unknown option $1; install.sh --help lists the options" ;;
    esac
  done
  case "$version" in
  v[0-9]*) ;;
  "") fail "this copy of install.sh is not from a release: take that of the release, or name one with --version and --public-key" ;;
  *) fail "$version is not a version such as v0.5.0" ;;
  esac
  case "$version" in
  *[!A-Za-z0-9.-]*) fail "$version is not a version such as v0.5.0" ;;
  esac
  [ -n "$public_key" ] || fail "this copy of install.sh has no key to verify with: take that of the release, or name its key with --public-key"
  [ -n "$from" ] || from=https://github.com/plinth-io/plinth/releases/download/$version
  if [ -z "$prefix" ]; then
    if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=${HOME:?}/.local; fi
  fi
}

# platform prints the name of this machine's platform in names of archives.
platform() {
  [ "$(uname -s)" = Linux ] || fail "there are archives for Linux only; on macOS use Homebrew, or build plinth from source"
  case "$(uname -m)" in
  x86_64 | amd64) echo linux_amd64 ;;
  aarch64 | arm64) echo linux_arm64 ;;
  *) fail "there is no archive for $(uname -m), only for amd64 and arm64" ;;
  esac
}

# download NAME saves a file of the release.
download() {
  if command -v curl >/dev/null; then
    curl -fsSL --retry 3 -o "$work/$1" "$from/$1" || fail "$from/$1 cannot be downloaded"
  elif command -v wget >/dev/null; then
    wget -q -O "$work/$1" "$from/$1" || fail "$from/$1 cannot be downloaded"
  else
    fail "install curl or wget first"
  fi
}

# signed tells whether SHA256SUMS has a signature of the key. Either of minisign and OpenSSL 3 verifies it.
signed() {
  if command -v minisign >/dev/null; then
    minisign -Vq -P "$public_key" -m "$work/SHA256SUMS" -x "$work/SHA256SUMS.minisig" >/dev/null 2>&1
  elif openssl version 2>/dev/null | grep -q '^OpenSSL [3-9]'; then
    signed_openssl
  else
    fail "install minisign or OpenSSL 3 first, to verify the signature"
  fi
}

# signed_openssl is signed without minisign. A signature is two bytes for its form, eight for the key's number, and 64 of
# Ed25519 over the BLAKE2b digest of the file; a public key has the same beginning. A second signature is over the first one
# and the comment.
signed_openssl() (
  cd "$work"
  printf '%s\n' "$public_key" | base64 -d >key
  sed -n 2p SHA256SUMS.minisig | base64 -d >signature
  sed -n 4p SHA256SUMS.minisig | base64 -d >signature.comment
  [ "$(wc -c <key)" -eq 42 ] && [ "$(wc -c <signature)" -eq 74 ] && [ "$(wc -c <signature.comment)" -eq 64 ] || return 1
  [ "$(head -c 2 signature)" = ED ] || return 1
  head -c 10 key | tail -c 8 >key.number
  head -c 10 signature | tail -c 8 | cmp -s - key.number || return 1
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 key; } >key.der
  tail -c 64 signature >signature.file
  openssl dgst -blake2b512 -binary SHA256SUMS >digest
  sed -n '3s/^trusted comment: //p' SHA256SUMS.minisig | tr -d '\n' | cat signature.file - >commented
  verify() { openssl pkeyutl -verify -pubin -keyform DER -inkey key.der -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1; }
  verify digest signature.file && verify commented signature.comment
)

# install_all puts the files below the prefix. A program that runs is not written over but replaced.
install_all() {
  dir=$work/$name
  share=$prefix/share
  mkdir -p "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
  for program in $programs; do
    cp "$dir/$program" "$prefix/bin/$program.new"
    chmod 0755 "$prefix/bin/$program.new"
    mv -f "$prefix/bin/$program.new" "$prefix/bin/$program"
    say "installed $prefix/bin/$program"
  done
  cp "$dir"/man/man1/*.1 "$share/man/man1"
  cp "$dir"/completions/bash/* "$share/bash-completion/completions"
  cp "$dir"/completions/zsh/* "$share/zsh/site-functions"
  cp "$dir"/completions/fish/* "$share/fish/vendor_completions.d"
  say "installed man pages and completion scripts in $share"
}

main() {
  options "$@"
  name=plinth_${version}_$(platform)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  say "downloading $name.tar.gz from $from"
  download SHA256SUMS
  download SHA256SUMS.minisig
  signed || fail "the signature of SHA256SUMS is not one of the key $public_key: nothing was installed"
  say "the checksums are signed by the key $public_key"
  line=$(grep -E "^[0-9a-f]{64}  $name\.tar\.gz\$" "$work/SHA256SUMS") || fail "SHA256SUMS has no $name.tar.gz: nothing was installed"
  download "$name.tar.gz"
  (cd "$work" && printf '%s\n' "$line" | sha256sum -c - >/dev/null 2>&1) || fail "the checksum of $name.tar.gz is wrong: nothing was installed"
  say "the checksum of the archive is right"
  tar -xzf "$work/$name.tar.gz" -C "$work"
  mkdir -p "$prefix/bin" 2>/dev/null || true
  [ -w "$prefix/bin" ] || fail "$prefix cannot be written: name another --prefix, or run this as root"
  install_all
  case ":$PATH:" in
  *":$prefix/bin:"*) ;;
  *) say "$prefix/bin is not in PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
  esac
  "$prefix/bin/plinth" version
}

# All is read before anything runs, so that a download of this script that breaks off does nothing.
main "$@"
