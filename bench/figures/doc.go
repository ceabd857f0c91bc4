// Package figures has what benchmarks find out, for people and for programs: numbers with units, bounds that they
// have to reach, medians and percentiles, tables, charts, and the files that these are written to.
//
// It knows nothing of what is measured, nor how.
package figures
