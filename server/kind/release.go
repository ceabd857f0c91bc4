package kind

// The release of Kubernetes whose kinds are served. It is written here and nowhere else.
const (
	Major = "1"
	Minor = "33"
	// MinorBefore is the oldest release whose servers may serve the same database.
	MinorBefore = "32"
	Release     = "v" + Major + "." + Minor + ".13"
)
