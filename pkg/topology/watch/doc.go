// Package watch feeds a [topology.Graph] from a Kubernetes API server: one cache of
// controller-runtime, whose informers list each kind once and are told of changes from then
// on. Nothing is asked of the API server when something changes.
//
// The first update of a graph holds everything that there was. Later ones hold what has
// come while the one before was at work: a single event is taken up at once, and many
// events together.
//
// What does not belong here: writing, and who of several replicas does it.
package watch
