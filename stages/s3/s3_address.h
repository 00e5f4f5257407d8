/* s3_address.h - where an S3 store is: the configuration, and the endpoint's addresses. */
#ifndef DARKROOM_S3_ADDRESS_H
#define DARKROOM_S3_ADDRESS_H

struct conf;
struct s3_target;

/* Fills in all but directory_fd. The addresses are looked up here, once: the sandbox has no
 * resolver. Returns 0, or -errno with the reason logged. Blocks. Main thread. */
int s3_address_target(struct s3_target *t, const struct conf *conf);

#endif
