package changelog

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ParseRules reads rules from text, separated by commas or lines. The rest of a line after # is a
// comment. A rule is RESOURCE=HOW, where HOW is how long old versions stay (90d, 12h; also w), how many
// of each object (10), both (7d/20), or 0 for none.
func ParseRules(text string) (rules []Rule, err error) {
	seen := map[string]bool{}
	text = strings.TrimPrefix(text, "\ufeff") // byte order mark of an editor
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for item := range strings.SplitSeq(line, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			r, err := parseRule(item)
			if err != nil {
				return nil, err
			}
			if seen[r.Resource] {
				return nil, fmt.Errorf("%q: there is another rule for %s: write one, such as %[2]s=7d/20", item, r.Resource)
			}
			seen[r.Resource] = true
			rules = append(rules, r)
		}
	}
	return rules, nil
}

const howToKeep = "write RESOURCE=DURATION, RESOURCE=COUNT or RESOURCE=DURATION/COUNT, such as deployments.apps=90d"

func parseRule(item string) (r Rule, err error) {
	resource, how, ok := strings.Cut(item, "=")
	if !ok {
		return r, fmt.Errorf("%q: %s", item, howToKeep)
	}
	r.Resource, how = strings.TrimSpace(resource), strings.TrimSpace(how)
	if err := checkRuleResource(r.Resource); err != nil {
		return r, fmt.Errorf("%q: %w", item, err)
	}
	duration, count, both := strings.Cut(how, "/")
	if number, err := strconv.Atoi(how); err == nil && number > 0 {
		duration, count, both = "", how, true
		r.For = KeepForever
	}
	if both {
		if r.Count, err = strconv.Atoi(count); err != nil || r.Count <= 0 {
			return r, fmt.Errorf("%q: %q is no number of versions: write one above 0, such as %s=20", item, count, r.Resource)
		}
	}
	if r.For != KeepForever {
		if r.For, err = parseKeepTime(duration); err != nil {
			return r, fmt.Errorf("%q: %q is %w: write one such as 12h, 90d or 2w, or 0 to keep none", item, duration, err)
		}
	}
	return r, nil
}

// resourceOfRule is RESOURCE, RESOURCE.GROUP, *.GROUP or *.
var resourceOfRule = regexp.MustCompile(`^(\*|[a-z0-9]([a-z0-9-]*[a-z0-9])?)(\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?$`)

func checkRuleResource(resource string) error {
	group, name, slash := strings.Cut(resource, "/")
	lower := strings.ToLower(resource)
	switch {
	case resource == "":
		return errors.New(howToKeep)
	case resourceOfRule.MatchString(resource):
		return nil
	case slash && subresources[name] && resourceOfRule.MatchString(group):
		return fmt.Errorf("a rule is for whole objects, with all subresources: write the resource as %s", group)
	case slash && group == "core":
		return fmt.Errorf("write the resource as %s", name)
	case slash && resourceOfRule.MatchString(name+"."+group):
		return fmt.Errorf("write the resource as %s.%s", name, group)
	case resourceOfRule.MatchString(lower):
		return fmt.Errorf("write the resource in small letters and in the plural, such as deployments.apps")
	}
	return errors.New("write the resource as in deployments.apps or configmaps, *.GROUP for all of a group, or * for all")
}

// subresources are those that somebody might write a rule for.
var subresources = map[string]bool{"status": true, "scale": true, "finalize": true, "approval": true, "eviction": true, "ephemeralcontainers": true, "resize": true}

var daysAndWeeks = regexp.MustCompile(`^(?:(\d+)w)?(?:(\d+)d)?(.*)$`)

var (
	errNoDuration   = errors.New("no duration")
	errLongDuration = errors.New("a duration of more than 200 years")
)

// parseKeepTime is time.ParseDuration with weeks and days before the rest.
func parseKeepTime(text string) (time.Duration, error) {
	const day, most = 24 * time.Hour, 200 * 365
	m := daysAndWeeks.FindStringSubmatch(text)
	days := 0
	for i, factor := range []int{7, 1} {
		if m[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+1])
		if err != nil || n > most {
			return 0, errLongDuration
		}
		days += factor * n
	}
	if days > most {
		return 0, errLongDuration
	}
	rest := time.Duration(0)
	if m[3] != "" || text == "" {
		var err error
		if rest, err = time.ParseDuration(m[3]); err != nil || rest < 0 {
			return 0, errNoDuration
		}
	}
	if rest > most*day {
		return 0, errLongDuration
	}
	return time.Duration(days)*day + rest, nil
}

// String is r as ParseRules reads it.
func (r Rule) String() string {
	const day = 24 * time.Hour
	how := r.For.String()
	switch {
	case r.For <= 0:
		how = "0"
	case r.For == KeepForever && r.Count > 0:
		return fmt.Sprintf("%s=%d", r.Resource, r.Count)
	case r.For%day == 0:
		how = fmt.Sprintf("%dd", r.For/day)
	}
	if r.Count > 0 {
		how += fmt.Sprintf("/%d", r.Count)
	}
	return r.Resource + "=" + how
}
