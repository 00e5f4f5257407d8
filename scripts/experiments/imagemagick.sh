#!/bin/bash
# What the paper's server replaced (Gordon 2010, 1.3 and 4.2.1): a batch script that spawns a process of ImageMagick for every
# step and hands the picture on through files, one picture at a time. Only to measure against; it makes what conf/*.ini ask for.
#
# usage: imagemagick.sh OUT_DIR FILE.jpg...      makes OUT_DIR/NAME/{medium,thumb,blurred}.jpg
set -euo pipefail
[ $# -ge 2 ] || {
	sed -n '5s/^# //p' "$0" >&2
	exit 2
}
PATH=/usr/bin:/bin # Debian's ImageMagick, whatever else there is
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
