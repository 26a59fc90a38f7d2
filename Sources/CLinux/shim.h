#ifndef KIZUNA_CLINUX_SHIM_H
#define KIZUNA_CLINUX_SHIM_H

// Kernel interfaces that Swift's Glibc module leaves out.
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

// prctl is variadic. The kernel cuts the name at 15 bytes.
static inline int kd_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

// Declared by glibc only under _GNU_SOURCE, which Swift's importer does not set.
extern int pipe2(int descriptors[2], int flags);
static inline int kd_pipe_closed_on_exec(int descriptors[2]) { return pipe2(descriptors, 02000000 /* O_CLOEXEC */); }

#endif
