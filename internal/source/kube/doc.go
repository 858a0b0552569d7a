// Package kube reads a cluster: it turns what the caches of a controller-runtime
// manager hold into batches for the pipeline.
//
// Invariants:
//   - The first batch is everything that exists, once all caches are filled; later
//     ones are whatever came while the last was worked off. No handler of an
//     informer ever waits for who takes the batches.
//   - What is handed over is the cache's own object, never a copy, and what is equal in
//     objects of a kind is mostly in memory once: nobody changes any of it.
//   - A kind that an earlier process has read objects of, and that can't be read at the start,
//     is waited for some minutes before it counts as one without objects.
//   - A change that means nothing to the pipeline, such as a status written by us,
//     is not handed over, though Live has it.
//   - Of Secrets and ConfigMaps only names are watched. Contents are read of those
//     that the pipeline wants, one by one, and of no others. Namespaces take turns: who
//     wants thousands doesn't delay who wants one.
//   - An answer that is older than another one is dropped: what was deleted while it
//     was read doesn't come back.
//   - A kind is read while the cluster serves it and lets us: one that is missing is
//     looked for again, one that goes takes its objects with it, unless they say who may
//     pass. None of this ends the process.
//
// Objects are as the API server validated them. What they mean is topology's matter.
package kube
