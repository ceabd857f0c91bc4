package history

// Parts of the package that its tests look at.
const (
	FirstRows = firstRows
	PartRows  = partRows
	PartBytes = partBytes
)

var (
	NextRows   = nextRows
	WhyNotKept = whyNotKept
)
