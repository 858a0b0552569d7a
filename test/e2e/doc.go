// Package e2e holds black-box tests of the gatehouse binary with the real Envoy.
//
// A test starts `gatehouse run` as a user would, writes manifests into the
// directory that it watches, sends requests to Envoy's listeners, and reads
// what arrived at the echo backends of this process. Most tests are files under
// testdata (README.md has the format); what needs a clock, a load or a signal
// is Go.
//
// Invariants:
//   - Nothing of the product but its command line, its files and its ports is
//     used, so the tests survive any change of what is inside.
//   - Each run has its own loopback addresses, ports and directories; runs don't
//     meet, and every process is ended by its id.
//   - Nothing sleeps: a test waits for what it says, with a deadline.
//
// Translation and status in detail are the golden tests' business.
package e2e
