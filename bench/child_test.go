package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

// TestChild sends orders to a child.
func TestChild(t *testing.T) {
	var out bytes.Buffer
	in := strings.NewReader(`{"do":"say what was used"} {"do":"dance"}`)
	if err := Child(context.Background(), in, &out); err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(&out)
	var used, refused answer
	if err := errors.Join(answers.Decode(&used), answers.Decode(&refused)); err != nil {
		t.Fatal(err)
	}
	if used.CPU <= 0 || used.RSS <= 0 || refused.Error != "dance: no such order" {
		t.Errorf("answers %+v, %+v", used, refused)
	}
}
