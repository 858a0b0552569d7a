// Package admin is the HTTP interface by which a person or a page looks into a running
// process: health, metrics, the view, the tables, the sessions of proxies, profiles.
//
// Invariants:
//   - Nothing can be changed here, and no Secret is printed.
//   - Requests for other hosts than this one are refused, see localOnly.
//
// What there is to see belongs to packages view, flow and xds.
package admin
