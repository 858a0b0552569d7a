// Package pipeline declares the tables from inputs to resources, statuses and
// infrastructure, on the stages that compute them: topology, translate, envoy, status.
//
// An HTTPRoute goes through Inputs, Graph.Routes and Graph.Attachments to Hosts, from
// there to RouteConfigurations, Members and Secrets, which proxies are sent, and to
// RouteStatus, which its author reads.
//
// Invariants:
//   - There is no I/O and no client here: what comes from outside is an input, also
//     the time and what proxies and fleets say.
//   - One commit carries configuration, statuses and infrastructure that were computed
//     from the same inputs.
//   - Feedback is an input like any other: what a proxy acknowledged or refused takes
//     effect in the next commit.
//   - A name for Envoy is made with its resource, from a key, and never taken apart. What
//     a proxy says under a name is found by making the names of what there is.
//
// What an object means belongs to topology and translate, who is told of a commit to
// the modes (packages cluster and standalone), and how a person sees it to view.
package pipeline
