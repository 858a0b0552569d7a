// Package lastgood keeps the configuration that an Envoy has acknowledged last, and serves
// it to an Envoy that starts while no control plane answers.
//
// Invariants:
//   - What passes between Envoy and its control plane is read from the side: nothing is
//     changed, and bytes that can't be read cost nothing but what is kept.
//   - Only what Envoy has acknowledged is kept, and only as a whole: of an Envoy that is not
//     live, or of which something is not known, nothing is. What was kept before stays.
//   - The file has keys of certificates. It is in a memory-backed file system, with mode
//     0600, or there is none and this process alone remembers.
//   - A file that is damaged, or of another Gateway or version of Envoy, is not used.
//   - Versions are the control plane's own, so it goes on with what has changed when it is
//     back.
//
// When to serve from here is the decision of package agent.
package lastgood
