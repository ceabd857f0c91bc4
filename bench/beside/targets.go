package beside

import "strings"

// Target is what plinth has to reach in a row.
type Target struct {
	Own   string // plinth's database, as a part of "sqlite" or of "postgres mysql"; empty: all
	To    string // etcd or kine; empty: the value itself is meant
	Bound Bound
}

// AtLeast returns a lower bound.
func AtLeast(bound float64) Bound { return Bound{Bound: bound} }

// AtMost returns an upper bound.
func AtMost(bound float64) Bound { return Bound{AtMost: true, Bound: bound} }

// absolute returns the bound of values in this row, nil if there is none.
func (row *Row) absolute() *Bound {
	for _, t := range row.Targets {
		if t.To == "" {
			return &t.Bound
		}
	}
	return nil
}

// relative returns the bound of the ratio between two endpoints, nil if there is none. A kine whose
// name says on which database it is, as kine-mysql, is judged beside the same database.
func (row *Row) relative(own, other string) *Bound {
	for _, t := range row.Targets {
		if t.To != "" && strings.HasPrefix(other, t.To) && (t.Own == "" || strings.Contains(t.Own, own)) && sameDatabase(own, other) {
			return &t.Bound
		}
	}
	return nil
}

func sameDatabase(own, other string) bool {
	_, on, named := strings.Cut(other, "-")
	if !named || !strings.HasPrefix(other, "kine") {
		return true
	}
	return on == own || own == "mysql" && on == "mariadb"
}
