#!/usr/bin/env bash
# Installs coding-agent harnesses for the tests, each into a folder NAME-VERSION:
#   scripts/harness/install.sh DIR pi@0.73.1 codex@0.171.0
# then: HARNESS_DIR=DIR cargo t
# Known: pi, codex, opencode, qwen, cline (node 20 or newer, and npm); mini, aider (python3 with venv).
# What is there already is left as it is.
set -euo pipefail
dir=${1:?name the folder to install into}
shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# from_npm NAME VERSION PACKAGE: in a folder of its own first, so that one that was cut off is not taken for whole.
from_npm() {
  local place=$dir/$1-$2 fresh
  [ -x "$place/node_modules/.bin/$1" ] && { echo "$1 $2 is there"; return; }
  fresh=$(mktemp -d "$dir/.new-XXXXXX")
  echo "installing $1 $2"
  npm install --silent --no-audit --no-fund --prefix "$fresh" "$3@$2"
  rm -rf "$place"
  mv "$fresh" "$place"
}

# from_pypi NAME VERSION PACKAGE: in place, since such an environment cannot be moved. The program is installed after all that it
# needs, so it stands for the whole.
from_pypi() {
  local place=$dir/$1-$2
  [ -x "$place/venv/bin/$1" ] && { echo "$1 $2 is there"; return; }
  echo "installing $1 $2"
  rm -rf "$place"
  python3 -m venv "$place/venv"
  "$place/venv/bin/pip" install --quiet "$3==$2"
}

for wanted in "$@"; do
  name=${wanted%@*} version=${wanted##*@}
  case $name in
    pi) from_npm pi "$version" @mariozechner/pi-coding-agent ;;
    codex) from_npm codex "$version" @openai/codex ;;
    opencode) from_npm opencode "$version" opencode-ai ;;
    qwen) from_npm qwen "$version" @qwen-code/qwen-code ;;
    cline) from_npm cline "$version" cline ;;
    mini) from_pypi mini "$version" mini-swe-agent ;;
    aider) from_pypi aider "$version" aider-chat ;;
    *) echo "no harness is known as $name: pi, codex, opencode, qwen, cline, mini, aider" >&2; exit 2 ;;
  esac
done
