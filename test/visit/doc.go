// Package visit is the HTTP client of the programs that measure: one request after
// another over one connection, for a fraction of the CPU that net/http's client needs.
// What is measured runs on the same processors.
package visit
