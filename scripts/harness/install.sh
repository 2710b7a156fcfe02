#!/usr/bin/env bash
# Installs coding-agent harnesses for the tests, each into a folder NAME-VERSION:
#   scripts/harness/install.sh DIR pi@0.73.1 codex@0.171.0
# then: HARNESS_DIR=DIR cargo t
# What is there already is left as it is. Needs node (20 or newer) and npm.
set -euo pipefail
dir=${1:?name the folder to install into}
shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
for wanted in "$@"; do
  name=${wanted%@*} version=${wanted##*@}
  case $name in
    pi) package=@mariozechner/pi-coding-agent ;;
    codex) package=@openai/codex ;;
    *) echo "no harness is known as $name: pi, codex" >&2; exit 2 ;;
  esac
  place=$dir/$name-$version
  if [ -x "$place/node_modules/.bin/$name" ]; then
    echo "$name $version is there"
    continue
  fi
  # In a folder of its own first, so that one that was cut off is not taken for whole.
  fresh=$(mktemp -d "$dir/.new-XXXXXX")
  echo "installing $name $version"
  npm install --silent --no-audit --no-fund --prefix "$fresh" "$package@$version"
  rm -rf "$place"
  mv "$fresh" "$place"
done
