/* pool_fixture.h - the end of tests that use pool buffers. */
#ifndef DARKROOM_TESTS_UNIT_SUPPORT_POOL_FIXTURE_H
#define DARKROOM_TESTS_UNIT_SUPPORT_POOL_FIXTURE_H

/* Asserts that all pool buffers have been returned, and frees them. Main thread, after all other
 * threads have ended. */
void pool_forget(void);

#endif
