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

#endif
