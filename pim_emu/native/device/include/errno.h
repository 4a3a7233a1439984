/* The last error of the calling tasklet. */
#ifndef DPU_ERRNO_H
#define DPU_ERRNO_H

int *__emu_errno(void);
#define errno (*__emu_errno())

#define EIO 5
#define ENOMEM 12
#define EINVAL 22
#define EDOM 33
#define ERANGE 34
#define EALREADY 114

#endif
