package past

import historyv1 "github.com/plinth-io/plinth/server/history/v1"

// Person writes who made a change: of an impersonation both, the one who asked first.
func Person(d historyv1.Description) string {
	switch {
	case d.User == "":
		return "-"
	case d.Impersonator != "":
		return d.Impersonator + " as " + d.User
	}
	return d.User
}

// MadeBy tells whether a user made a change: in his own name or another's, or a proxy in his.
func MadeBy(d historyv1.Description, user string) bool {
	return d.User == user || d.Impersonator == user
}

// Way writes how a change was made: patch, or update status.
func Way(d historyv1.Description) string {
	switch {
	case d.Verb == "":
		return "-"
	case d.Subresource != "":
		return d.Verb + " " + d.Subresource
	}
	return d.Verb
}

// Manager writes the field manager of a change.
func Manager(d historyv1.Description) string {
	if d.Manager == "" {
		return "-"
	}
	return d.Manager
}
