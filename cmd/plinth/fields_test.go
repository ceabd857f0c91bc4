package main

import (
	"errors"
	"reflect"
	"testing"

	"github.com/plinth-io/plinth/server"
)

func TestNameFlags(t *testing.T) {
	cmd := newServe()
	t.Setenv("PLINTH_LISTEN", "127.0.0.1:1")
	if err := applyEnv(cmd); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"Config.Listen x: no":                "PLINTH_LISTEN x: no",
		"Config.DSN and Config.DataDir: no":  "--dsn and --data-dir: no",
		"Config.Untracked has no flag":       "Config.Untracked has no flag",
		"write --listen or --data-dir, --no": "write PLINTH_LISTEN or --data-dir, --no",
	} {
		err := errors.New(text)
		if got := nameFlags(cmd, err); got.Error() != want || !errors.Is(got, err) {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
	}
}

// TestFlagOfField checks that the fields and the flags exist, and that no field with a flag is
// missing.
func TestFlagOfField(t *testing.T) {
	config, flags := reflect.TypeFor[server.Config](), newServe().Flags()
	for field, flag := range flagOfField {
		if _, ok := config.FieldByName(field); !ok {
			t.Errorf("server.Config has no field %s", field)
		}
		if flags.Lookup(flag) == nil {
			t.Errorf("serve has no flag --%s", flag)
		}
	}
	without := map[string]bool{"Dial": true, "Linger": true, "Audit": true, "Authentication": true, "Authorization": true, "Debugging": true, "Flags": true, "Forward": true, "Serving": true, "Tokens": true, "Untracked": true, "Logf": true, "Log": true}
	for i := range config.NumField() {
		if name := config.Field(i).Name; flagOfField[name] == "" && !without[name] {
			t.Errorf("flagOfField does not have %s", name)
		}
	}
}
