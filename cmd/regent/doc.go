// Regent is the service that gives a fleet of agents one leader at a time, and the command line
// that agents and operators use to talk to it.
//
//	regent serve                              run the service
//	regent acquire reports --candidate me     ask to lead
//	regent run reports -- ./make-reports      run a command only while leading
//	regent help all                           everything else, and the exit codes
//
// The package is wiring: each command reads its flags and the environment into plain values (a flag
// overrides the environment, which overrides the default), calls the package that does the work,
// and prints the answer. Data goes to standard output, everything else to standard error. main
// calls run; tests call run as well.
package main
