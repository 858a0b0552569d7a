// Package apply makes what the API server has what it should be: the objects of fleets, which
// package infra renders.
//
// Invariants:
//   - An object that is already as it should be is not written. What others have
//     changed is changed back, what they have deleted is made again.
//   - An object that belongs to somebody else is never touched.
//   - What is replaced serves on until what replaces it works.
//   - A Gateway that is frozen (infra.Gateway.Frozen) keeps the fleet that it has, whatever else it
//     says; only the authorities that its proxies trust are renewed.
//
// What objects say does not belong here.
package apply
