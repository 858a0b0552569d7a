// Command record adds a figure to the file of the bars: one that a script or a
// person has counted.
//
//	go run ./test/bars/record -bar 'make test, failed runs of ten' -limit 0 -value 0
//
// It fails if the figure misses its bar, after it has recorded it.
package main
