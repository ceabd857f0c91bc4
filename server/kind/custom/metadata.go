package custom

import "time"

// plainMetadata reports that metadata has only fields of ObjectMeta in the form in which
// ObjectMeta is encoded, so that a round trip through ObjectMeta would change nothing. It may
// be false for such metadata. stored metadata must have a generation.
func plainMetadata(metadata map[string]any, stored bool) bool {
	for name, value := range metadata {
		if !plainField(name, value) {
			return false
		}
	}
	_, hasGeneration := metadata["generation"]
	return hasGeneration || !stored
}

func plainField(name string, value any) bool {
	switch name {
	case "name", "generateName", "namespace", "uid", "resourceVersion":
		return isText(value)
	case "creationTimestamp", "deletionTimestamp":
		return isTime(value)
	case "generation":
		n, ok := value.(int64)
		return ok && n != 0
	case "labels", "annotations":
		return areTexts(value)
	case "finalizers":
		list, ok := value.([]any)
		return ok && all(list, func(v any) bool { _, ok := v.(string); return ok })
	case "managedFields":
		list, ok := value.([]any)
		return ok && all(list, isPlainEntry)
	}
	return false
}

func isPlainEntry(value any) bool {
	entry, _ := value.(map[string]any)
	if entry == nil {
		return false
	}
	for name, v := range entry {
		plain := false
		switch name {
		case "manager", "operation", "apiVersion", "fieldsType", "subresource":
			plain = isText(v)
		case "time":
			plain = isTime(v)
		case "fieldsV1":
			_, plain = v.(map[string]any)
		}
		if !plain {
			return false
		}
	}
	return true
}

func all(list []any, is func(any) bool) bool {
	for _, v := range list {
		if !is(v) {
			return false
		}
	}
	return len(list) > 0
}

func isText(value any) bool {
	s, _ := value.(string)
	return s != ""
}

// isTime reports a time as metav1.Time is encoded: in UTC, in whole seconds.
func isTime(value any) bool {
	s, _ := value.(string)
	if len(s) != len("2006-01-02T15:04:05Z") {
		return false
	}
	t, err := time.Parse(time.RFC3339, s)
	return err == nil && s[len(s)-1] == 'Z' && !t.IsZero()
}

func areTexts(value any) bool {
	texts, _ := value.(map[string]any)
	for _, v := range texts {
		if _, ok := v.(string); !ok {
			return false
		}
	}
	return len(texts) > 0
}
