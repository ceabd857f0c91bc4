package postgres

import "github.com/plinth-io/plinth/sqlstore/changelog"

// Log is a changelog.Log: each of its roles is a type that has the role's methods and nothing but the
// database under them. The receiver of all of them is called l, the log.
type Log struct {
	*database
	appender
	reader
	historian
	compaction
	leases
	filling
	source
}

func newLog(d *database) *Log {
	return &Log{d, appender{d}, reader{d}, historian{d}, compaction{d}, leases{d}, filling{d}, source{d}}
}

type (
	appender   struct{ *database } // a changelog.Appender
	reader     struct{ *database } // a changelog.Reader
	historian  struct{ *database } // a changelog.Historian
	compaction struct{ *database } // a changelog.Compaction
	leases     struct{ *database } // a changelog.Leases
	filling    struct{ *database } // a changelog.Filling
	source     struct{ *database } // a changelog.Source
)

var (
	_ changelog.Log        = (*Log)(nil)
	_ changelog.Database   = (*database)(nil)
	_ changelog.Appender   = appender{}
	_ changelog.Reader     = reader{}
	_ changelog.Historian  = historian{}
	_ changelog.Compaction = compaction{}
	_ changelog.Leases     = leases{}
	_ changelog.Filling    = filling{}
	_ changelog.Source     = source{}
)
