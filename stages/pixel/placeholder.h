/*
 * placeholder.h - the average colour of a picture, and a ThumbHash: some 25 bytes from which a page
 * draws a blurred picture until it has the real one.
 *
 * The format is that of Evan Wallace's ThumbHash (https://evanw.github.io/thumbhash/), without
 * transparency: a few coefficients of a cosine transform of brightness and two colour differences.
 * A bounded number of samples is read, whatever the size of the picture. Pure function, any thread.
 */
#ifndef DARKROOM_PIXEL_PLACEHOLDER_H
#define DARKROOM_PIXEL_PLACEHOLDER_H

struct picture;

#define PLACEHOLDER_COLOR_MAX 8 /* "#7a8b9c", with the zero */
#define PLACEHOLDER_HASH_MAX 33 /* 5 bytes and 37 nibbles in base64, with the zero */

struct placeholder {
	char color[PLACEHOLDER_COLOR_MAX]; /* of sRGB; "": it was not made */
	char hash[PLACEHOLDER_HASH_MAX];   /* base64 */
};

/* Describes a picture that is ready for the encoder: grey or YCbCr. */
void placeholder_make(struct placeholder *p, const struct picture *picture);

#endif
