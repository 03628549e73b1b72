#!/bin/sh
# Zig as the C compiler and linker for one target, without the options that only other compilers
# understand.
skip=
for word in "$@"; do
  shift
  if [ -n "$skip" ]; then skip=; continue; fi
  case $word in
    --target=* | -mmacosx-version-min=* | -Wl,--no-undefined-version) ;;
    -arch | -isysroot) skip=1 ;;
    *) set -- "$@" "$word" ;;
  esac
done
exec PYTHON -m ziglang cc -target ZIG_TARGET "$@"
