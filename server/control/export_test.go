package control

// Enabled lists the controllers that a list turns on.
func Enabled(list []string) (names []string) {
	enabled, _ := choose(list)
	for _, c := range enabled {
		names = append(names, c.alias)
	}
	return names
}
