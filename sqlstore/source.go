package sqlstore

// Source returns the log for those who read it as it is at one moment. Its Close does nothing: the Store
// closes the log.
func (s *Store) Source() Source { return source{s.log} }

type source struct{ Log }

func (source) Close() error { return nil }
