// Command scale holds an installed Gatehouse to its bars in Kubernetes: what it
// writes, how soon, how much it takes, and what clients notice when a part of it
// ends.
//
//	make scale
//
// That is test/scale/run, which brings up a cluster and installs Gatehouse in it. It
// works on a cluster that `make cluster` brought up, since it counts writes in the API
// server's audit log, what Gatehouse says of itself being no evidence, and since it
// kills processes of pods, which it finds on this machine.
//
// It makes one namespace with everything in it, and removes it in the end.
//
// Bars are for a machine that does nothing else.
package main
