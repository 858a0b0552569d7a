// Command node brings up a one-node Kubernetes on a bare Linux machine, and
// removes it without a trace:
//
//	go run ./test/cluster/node up [--name N] [--channel standard]
//	go run ./test/cluster/node exec [--name N] COMMAND...
//	go run ./test/cluster/node image [--name N] FILE...
//	go run ./test/cluster/node status|down [--name N]
//
// Everything that runs is built here, from Go modules, or is a Debian package;
// no image registry is asked. It needs root.
//
// The node is one process in a network, a mount and a process namespace of its
// own, and everything else is below it. So the end of that process ends and
// unmounts all the rest: what `down` has left to do is to remove one directory
// and the control groups.
//
// Each odd flag has its reason beside it.
package main
