package etcdbench

import "strings"

// target is what plinth has to reach in a row.
type target struct {
	own   string // plinth's database, as a part of "sqlite" or of "postgres mysql"; empty: all
	to    string // etcd or kine; empty: the value itself is meant
	bound Bound
}

func atLeast(bound float64) Bound { return Bound{Bound: bound} }
func atMost(bound float64) Bound  { return Bound{AtMost: true, Bound: bound} }

var (
	createTargets = []target{{"sqlite", "etcd", atLeast(1.5)}, {"postgres mysql", "kine", atLeast(5)}}
	pageTargets   = []target{{"", "etcd", atMost(1)}, {"", "kine", atMost(0.1)}}
	delayTargets  = []target{{"", "etcd", atMost(1)}}
	objectTargets = []target{{"sqlite", "etcd", atLeast(1)}, {"postgres", "kine", atLeast(3)}}
	memoryTargets = []target{{"", "etcd", atMost(0.5)}}
	lossTargets   = []target{{"", "", atMost(0)}}
)

// absolute returns the bound of values in this row, nil if there is none.
func (row *Row) absolute() *Bound {
	for _, t := range row.targets {
		if t.to == "" {
			return &t.bound
		}
	}
	return nil
}

// relative returns the bound of the ratio between two endpoints, nil if there is none. A kine whose
// name says on which database it is, as kine-mysql, is judged beside the same database.
func (row *Row) relative(own, other string) *Bound {
	for _, t := range row.targets {
		if t.to != "" && strings.HasPrefix(other, t.to) && (t.own == "" || strings.Contains(t.own, own)) && sameDatabase(own, other) {
			return &t.bound
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
