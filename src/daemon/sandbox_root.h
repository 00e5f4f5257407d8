/* sandbox_root.h - which directory the sandbox leaves open for the store. Main thread. */
#ifndef DARKROOM_DAEMON_SANDBOX_ROOT_H
#define DARKROOM_DAEMON_SANDBOX_ROOT_H

/* Returns the directory for the store's Landlock rule, root or a static text. A rule belongs
 * to a directory, not to its path, so a root that is deleted and made again is outside of it. The
 * parent of the root is therefore taken if it holds nothing else. */
const char *sandbox_root(const char *root);

#endif
