// Package figures sums what the proxies of Gateways count, and shows the sums to Prometheus.
//
// Invariants:
//   - A request counts once: proxies report what they have counted since their last report,
//     and a report comes over one connection, at most once. So no restart, no end of a proxy
//     and no second scrape counts anything again.
//   - The caller says for which Gateway a report counts, never the report.
//   - The series of a Gateway are bounded. What is beyond the bound is counted as one.
package figures
