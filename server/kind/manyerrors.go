package kind

// MostErrors is how many errors of validation an answer names, and MostErrorBytes about how long they are together.
// Validators need not look for more than just beyond them.
const (
	MostErrors     = 1000
	MostErrorBytes = 1 << 20
)
