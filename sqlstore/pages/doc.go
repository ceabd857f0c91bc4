// Package pages reads a log page by page: how many rows to ask for, and what comes next. It knows no store.
package pages
