// A wall clock that is set an hour ahead and an hour back in turn, each millisecond: for programs that
// read it through the C library, by LD_PRELOAD. The other clocks are as they are.
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t shift(void) {
	struct timespec now;
	syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
	return now.tv_nsec / 1000000 % 2 ? 3600 : -3600;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
	int failed = syscall(SYS_clock_gettime, clock, now);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += shift();
	return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
	struct timespec t;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &t);
	now->tv_sec = t.tv_sec;
	now->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *into) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (into)
		*into = t.tv_sec;
	return t.tv_sec;
}
