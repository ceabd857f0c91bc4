package transfer_test

import (
	"fmt"
	"strings"
)

// maps is the prefix of the keys of ConfigMaps.
const maps = "/registry/core/configmaps/"

// kilobyte is an object of about 1 KiB.
func kilobyte(key string) []byte {
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q},"data":{"pad":%q}}`,
		key[strings.LastIndexByte(key, '/')+1:], strings.Repeat("x", 900))
}
