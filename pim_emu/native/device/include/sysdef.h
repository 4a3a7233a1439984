/* Numbers of tasklets. */
#ifndef DPU_SYSDEF_H
#define DPU_SYSDEF_H

typedef unsigned int thread_id_t;
typedef unsigned int sysname_t;

#endif
