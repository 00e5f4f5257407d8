#!/bin/bash
# The baseline: the kind of batch script that the paper's server replaced (Gordon 2010, 1.3 and
# 4.2.1). It runs an ImageMagick process for each step, passes pictures on as files, and processes
# one picture at a time. It makes the variants of conf/*.ini.
#
# usage: imagemagick.sh OUT_DIR FILE.jpg...      makes OUT_DIR/NAME/{medium,thumb,blurred}.jpg
set -euo pipefail
[ $# -ge 2 ] || {
	sed -n '6s/^# //p' "$0" >&2
	exit 2
}
PATH=/usr/bin:/bin # Debian's ImageMagick
export MAGICK_THREAD_LIMIT=1
out=$1
shift

for file in "$@"; do
	name=$(basename "$file" .jpg)
	work=$out/.$name
	mkdir -p "$work"
	identify -format '%m %w %h %[orientation]\n' "$file" >"$work/info"
	convert "$file" -auto-orient +profile '!icc,*' -quality 95 "$work/oriented.jpg"
	convert "$work/oriented.jpg" -resize '800x800>' -quality 95 "$work/scaled.jpg"
	convert "$work/scaled.jpg" -quality 82 "$work/medium.jpg"
	convert "$work/scaled.jpg" -resize '160x160>' -quality 80 "$work/thumb.jpg"
	convert "$work/scaled.jpg" -blur 0x8 -quality 75 "$work/blurred.jpg"
	rm "$work/info" "$work/oriented.jpg" "$work/scaled.jpg"
	mv "$work" "$out/$name"
done
