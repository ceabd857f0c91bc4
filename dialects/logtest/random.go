package logtest

import (
	"crypto/rand"
	"strings"
)

func randomName() string { return strings.ToLower(rand.Text()[:12]) }
