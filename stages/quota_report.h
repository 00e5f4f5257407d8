/* quota_report.h - what each token may use, and uses: darkroomd ctl quota. Any thread. */
#ifndef DARKROOM_QUOTA_REPORT_H
#define DARKROOM_QUOTA_REPORT_H

struct text;
struct tokens;
struct usage;

/* Appends a line for each token: "camera: images 12 of 1000, bytes 3456, uploads today 2 of 50". */
void quota_report(struct tokens *tokens, struct usage *usage, struct text *to);

#endif
