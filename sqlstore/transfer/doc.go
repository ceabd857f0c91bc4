// Package transfer fills empty logs with what is elsewhere, and lets a log go on that has moved. Copy brings the objects
// of one log to another, also while that is served; an Intake takes objects page by page from any other place; an Import
// takes the rows of another kind of database as they are, with their revisions. While a log is only half filled,
// marks say so (changelog.HalfCopied). A Copy and an Intake write objects in one way (target.go): in transactions that are
// not too large, with what each change is to expect; and of two that fill a log the later one goes on. The package knows
// logs, and no Store.
package transfer
