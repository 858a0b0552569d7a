// Package golden holds what manifests become, through the whole pipeline: each
// file of testdata has the objects, the status that people see of them, and the
// configuration that Envoy gets.
//
// README.md has the format. A file protects what its comment says, and nothing
// is in it that the comment's subject does not need.
//
// Invariants:
//   - An expectation is held against the specification before it is committed:
//     a golden that enshrines a mistake is worse than none.
//   - The same objects give the same output, in whatever order and however many
//     steps they come, and leave nothing behind when they go.
//   - Whatever objects say, a pipeline that they have gone through is in the state of a
//     fresh one with the objects that are left, and takes no more memory.
//   - No private key is printed at any stage.
//
// That Envoy does with the configuration what is meant is test/e2e's business.
package golden
