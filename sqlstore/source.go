package sqlstore

import "github.com/plinth-io/plinth/sqlstore/changelog"

// Source returns the log for those who read it as it is at one moment. Its Close does nothing: the Store
// closes the log.
func (s *Store) Source() changelog.Source { return source{s.log} }

type source struct{ changelog.Log }

func (source) Close() error { return nil }
