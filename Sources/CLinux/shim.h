#ifndef KIZUNA_CLINUX_SHIM_H
#define KIZUNA_CLINUX_SHIM_H

// Kernel interfaces that Swift's Glibc module leaves out.
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <stdint.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

// prctl is variadic. The kernel cuts the name at 15 bytes.
static inline int kd_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

// Declared by glibc only under _GNU_SOURCE, which Swift's importer does not set.
extern int pipe2(int descriptors[2], int flags);
static inline int kd_pipe_closed_on_exec(int descriptors[2]) { return pipe2(descriptors, 02000000 /* O_CLOEXEC */); }
extern int accept4(int listener, struct sockaddr *peer, socklen_t *size, int flags);
static inline int kd_accept_closed_on_exec(int listener) { return accept4(listener, 0, 0, SOCK_CLOEXEC); }
extern int dup3(int from, int to, int flags);
static inline int kd_replace_descriptor(int old, int by) { return dup3(by, old, 02000000 /* O_CLOEXEC */); }

// Swift's runtime hands every job of its global executor to this hook, where there is one.
__attribute__((swiftcall)) typedef void (*kd_enqueue_original)(void *job);
extern __attribute__((swiftcall)) void (*swift_task_enqueueGlobal_hook)(void *job, kd_enqueue_original original);
extern __attribute__((swiftcall)) void swift_job_run(void *job, void *executor, uintptr_t implementation);

// A static variable of a header is only emitted inside a function.
typedef void (*kd_enqueue)(void *job);
static inline kd_enqueue *kd_global_enqueue(void) {
  static kd_enqueue enqueue = 0;
  return &enqueue;
}
__attribute__((swiftcall)) static void kd_enqueue_global(void *job, kd_enqueue_original original) {
  (void)original;
  (*kd_global_enqueue())(job);
}
static inline void kd_take_global_jobs(kd_enqueue enqueue) {
  *kd_global_enqueue() = enqueue;
  swift_task_enqueueGlobal_hook = kd_enqueue_global;
}

// Two nulls are the executor that is no actor's.
static inline void kd_run_global_job(void *job) { swift_job_run(job, 0, 0); }

#endif
