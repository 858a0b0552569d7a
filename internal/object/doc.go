// Package object names the objects of the Kubernetes API: which kind an object is of,
// and which one of that kind it is.
//
// Invariants:
//   - A key is a value: it can be compared, it can be the key of a map, and two keys
//     are equal exactly if they name the same object.
//   - A key doesn't depend on the version of the API in which an object was read.
//   - Text is read as a name only where it comes from outside the process: ParseName.
//   - There is one type for this. A table whose objects are all of one kind is keyed
//     by Name, every other one by Key. Whoever reads several clusters adds the cluster
//     to Name, and to nothing else.
//
// What a kind is beyond its name (how it is read, which status it has) belongs to
// package kind, and names that Envoy is given to package envoy.
package object
