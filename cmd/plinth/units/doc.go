// Package units writes numbers with their units for people: bytes, counts and seconds, with about three digits.
//
// The commands and the page write them the same way. It must not know what is counted.
package units
