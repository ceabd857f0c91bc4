package past_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/cmd/plinth/past"
)

// TestYAML writes characters that YAML may treat in their own way, and reads the same.
func TestYAML(t *testing.T) {
	for r := rune(0); r <= 0xffff; r++ {
		switch r { // those between are like their neighbours
		case 0x180:
			r = 0x2000
		case 0x2080:
			r = 0xfe00
		}
		want := "a" + string(r) + "z"
		text, err := past.YAML(map[string]string{"k": want})
		var got map[string]string
		if err == nil {
			err = yaml.Unmarshal(text, &got)
		}
		if err != nil || got["k"] != want {
			t.Errorf("%U: %q reads as %q, %v", r, text, got["k"], err)
		}
	}
}
