// Package measure has how benchmarks find something out: loads, watches whose events are checked against what was
// written, servers that take turns, processes of plinth, scratch databases, and the line that shows progress.
//
// It knows nothing of any protocol.
package measure
