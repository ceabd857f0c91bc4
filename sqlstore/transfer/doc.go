// Package transfer fills empty logs with what is elsewhere, and lets a log go on that has moved. Copy brings the objects
// of one log to another, also while that is served; an Intake takes objects page by page from any other place; an Import
// takes the rows of another kind of database as they are, with their revisions. While a log is only half filled,
// marks say so (changelog.HalfCopied), and of two that fill it the later one goes on. It knows logs, and no Store.
package transfer
