#!/bin/sh
# Sees to what pictures and windows need of the system: installs it where that is allowed, else names it in one line.
# Without it everything still runs; only what draws with OpenGL is skipped, with its reason.
# `system-libs.sh tests` also sees to the virtual screen that the tests of windows run on.
set -u

LIBS="libEGL.so.1 libGL.so.1 libGLX_mesa.so.0 libXcursor.so.1 libXi.so.6 libXinerama.so.1 libXrandr.so.2"
PACKAGES="libegl1 libegl-mesa0 libgl1 libglx-mesa0 libgl1-mesa-dri libxcursor1 libxi6 libxinerama1 libxrandr2"
PROGRAMS=""
if [ "${1:-}" = tests ]; then
    PROGRAMS="Xvfb xauth xdotool"
    PACKAGES="$PACKAGES xvfb xauth xdotool"
fi

[ "$(uname -s)" = Linux ] || exit 0

known=$(PATH="$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null) || exit 0
missing=""
for lib in $LIBS; do
    case "$known" in *"$lib"*) ;; *) missing="$missing $lib" ;; esac
done
for program in $PROGRAMS; do
    command -v "$program" >/dev/null || missing="$missing $program"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing what pictures and windows need of the system:$missing"
    export DEBIAN_FRONTEND=noninteractive
    if { apt-get update -qq && apt-get install -y -qq --no-install-recommends $PACKAGES; } >/dev/null 2>&1; then
        exit 0
    fi
fi
echo "Pictures and windows need what is missing here:$missing (Debian, Ubuntu: apt-get install $PACKAGES); going on without." >&2
