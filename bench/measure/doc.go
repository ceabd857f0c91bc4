// Package measure has what benchmarks share: loads, percentiles and medians, scratch databases, the
// line that shows progress, and drawing.
package measure
