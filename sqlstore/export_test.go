package sqlstore

// WindowLimit is the bound of the window in bytes.
func (s *Store) WindowLimit() int { return s.o.WindowBytes }
