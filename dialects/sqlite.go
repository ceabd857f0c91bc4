package dialects

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/plinth-io/plinth/dialects/sqlite"
)

// parseSQLite reads what follows sqlite://. The path is taken as it stands, up to the
// first question mark.
func parseSQLite(rest string) (sqlite.Options, error) {
	path, query, _ := strings.Cut(rest, "?")
	o := sqlite.Options{Path: path}
	params, err := url.ParseQuery(query)
	if err != nil {
		return o, fmt.Errorf("sqlite DSN: its parameters cannot be parsed; write ?name=value&name=value")
	}
	for name, values := range params {
		switch value := values[len(values)-1]; name {
		case "durability":
			o.Durability = sqlite.Durability(value)
			if value != "full" && value != "normal" && value != "off" {
				return o, fmt.Errorf("sqlite DSN: durability=%q; write full, normal or off", value)
			}
		case "maxconns":
			if o.MaxConns, err = strconv.Atoi(value); err != nil || o.MaxConns < 1 {
				return o, fmt.Errorf("sqlite DSN: maxconns=%q; write a number above 0", value)
			}
		case "reserve":
			if o.Reserve, err = parseReserve(value); err != nil {
				return o, err
			}
		case "mode":
			if value != "memory" {
				return o, fmt.Errorf("sqlite DSN: mode=%q; only memory is known", value)
			}
			path = ":memory:"
		default:
			return o, fmt.Errorf("sqlite DSN: unknown parameter %q; known are durability, maxconns, reserve and mode", name)
		}
	}
	switch path {
	case "":
		return o, fmt.Errorf("sqlite DSN has no path; write sqlite://plinth.db or sqlite:///var/lib/plinth/plinth.db")
	case ":memory:":
		o.Path = ""
	}
	return o, nil
}

// parseReserve reads a number of MiB.
func parseReserve(value string) (int64, error) {
	n, err := strconv.ParseUint(strings.TrimSuffix(value, "MiB"), 10, 20)
	switch {
	case err != nil:
		return 0, fmt.Errorf("sqlite DSN: reserve=%q; write a number of MiB such as 16MiB, or 0 for none", value)
	case n == 0:
		return -1, nil
	}
	return int64(n) << 20, nil
}
