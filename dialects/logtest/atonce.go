package logtest

import (
	"flag"
	"runtime"
	"strconv"
)

// AtOnce has as many tests run at once, unless -parallel says something else than the number of processors. TestMain
// calls it where tests wait for databases or other processes most of their time.
func AtOnce(tests int) {
	flag.Parse()
	if n := flag.Lookup("test.parallel").Value; n.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := n.Set(strconv.Itoa(tests)); err != nil {
			panic(err) // not a number
		}
	}
}
