// Package guard leads each request from the network to its handler: it gives the request an
// audit id and a deadline, finds out who sent it, bounds how many run at once, asks whether
// the sender may do what is asked, writes the audit log and counts the answer.
//
// It owns all running requests: it knows how many there are, ends those whose clients have
// stalled, lets no more in when the server stops, and turns errors and panics of handlers
// into answers.
//
// It must not know what the handlers do. The server hands it the routes.
package guard
