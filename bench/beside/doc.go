// Package beside compares plinth with other servers, called endpoints: they take turns under the same
// load, a ratio is the median of the ratios of neighbouring rounds, and every event of a watch is checked
// against what was written. It makes the table and the charts.
//
// It knows nothing of any protocol.
package beside
