// Package members is the source of Services of several clusters, where no controller of the Multi-Cluster Services API
// (KEP-1645) connects them: it reads exported Services and their EndpointSlices from the API servers of member clusters, and
// makes of them the ServiceImports and EndpointSlices that such a controller would make.
//
// Invariants:
//   - Nothing is written in a member cluster, and nothing else is read there: Services, EndpointSlices and
//     ServiceExports. A Service counts once a ServiceExport beside it names it.
//   - A cluster that is lost costs nothing at first: what it had last stays in force for a stated time, and how old that is
//     is known. It never holds up the others for longer than a start may wait.
//   - What is made depends on the clusters' objects alone, and on the order in which clusters are configured.
//
// It knows nothing of routes, nor which of the clusters a request should go to: policies say so.
package members
