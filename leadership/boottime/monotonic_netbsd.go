package boottime

const clockMonotonic = 3 // CLOCK_MONOTONIC in NetBSD's sys/time.h; x/sys does not have it
