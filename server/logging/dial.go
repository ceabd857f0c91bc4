package logging

import (
	"fmt"
	"log/slog"
	"strconv"

	"k8s.io/klog/v2"
)

// Dial changes how much is logged below Info while a program runs.
type Dial struct{ level slog.LevelVar }

// NewDial returns a Dial that begins with v; see Options.
func NewDial(v Verbosity) *Dial {
	d := &Dial{}
	d.level.Set(lowest(v))
	return d
}

// OnlyWarnings leaves out what is no warning, until Set is called.
func (d *Dial) OnlyWarnings() { d.level.Set(slog.LevelWarn) }

// Set changes the verbosity of the logs that have d, and of upstream's libraries in this process. It
// takes a number as text, and returns upstream's answer to a client that has sent it
// (component-base/logs.GlogSetter).
func (d *Dial) Set(text string) (string, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return "", err
	}
	v := Verbosity(min(n, most))
	var libraries klog.Level
	if err := libraries.Set(v.String()); err != nil {
		return "", err
	}
	d.level.Set(lowest(v))
	return fmt.Sprintf("successfully set klog.logging.verbosity to %s", &v), nil
}
