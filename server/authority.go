package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// markAuthority is a mark of a database that servers share: with the fingerprint of the authority that they have
// behind it. Its value says who has noted it. A copy of the objects, and what a backup is restored to, has none.
const markAuthority = "authority/"

// shareAuthority refuses a database whose servers have another authority, and notes this one in a database where none is
// noted. Of two servers that come to a new database at once, at least one sees what both have noted.
func shareAuthority(ctx context.Context, c *Config, log changelog.Log, own string) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.DatabaseTimeout, time.Minute))
	defer cancel()
	marks, err := log.Marks(ctx)
	if err != nil {
		return fmt.Errorf("compare the authority with that of the database: %w", err)
	}
	others := otherAuthorities(marks, own)
	if c.NewAuthority {
		return replaceAuthorities(ctx, c, log, own, others)
	}
	if len(others) > 0 {
		return refuseAuthority(c, own, others)
	}
	if marks[markAuthority+own] != "" {
		return nil
	}
	if err := log.SetMarks(ctx, map[string]string{markAuthority + own: noter(c)}); err != nil {
		return unnoted(c, err)
	}
	if marks, err = log.Marks(ctx); err != nil {
		return fmt.Errorf("compare the authority with that of the database: %w", err)
	}
	if others = otherAuthorities(marks, own); len(others) > 0 {
		return errors.Join(refuseAuthority(c, own, others), log.SetMarks(ctx, map[string]string{markAuthority + own: ""}))
	}
	return nil
}

// otherAuthorities returns the marks of authorities but own.
func otherAuthorities(marks map[string]string, own string) map[string]string {
	others := map[string]string{}
	for name, value := range marks {
		if fingerprint, ok := strings.CutPrefix(name, markAuthority); ok && fingerprint != own {
			others[name] = value
		}
	}
	return others
}

// replaceAuthorities notes own in the place of all others.
func replaceAuthorities(ctx context.Context, c *Config, log changelog.Log, own string, others map[string]string) error {
	if len(others) == 0 {
		c.Log.Warn("--new-authority is given and no other authority is noted in the database: take the flag away, or it permits the next change, too")
	}
	marks := map[string]string{markAuthority + own: noter(c)}
	for name, by := range others {
		marks[name] = ""
		c.Log.Warn("the database is served with a new authority, as --new-authority says: kubeconfigs and client certificates of the old one are not valid here", "old", strings.TrimPrefix(name, markAuthority), "notedBy", by, "new", own)
	}
	if err := log.SetMarks(ctx, marks); err != nil {
		return unnoted(c, err)
	}
	return nil
}

// unnoted judges a mark that could not be written. A database that takes no writes now is served all the same.
func unnoted(c *Config, err error) error {
	if !errors.Is(err, changelog.ErrUnavailable) {
		return fmt.Errorf("note the authority in the database: %w", err)
	}
	c.Log.Warn("the authority could not be noted in the database; the next start does it", "err", err)
	return nil
}

// noter says who notes an authority, for people. A value has 255 bytes at most.
func noter(c *Config) string {
	host, _ := os.Hostname()
	by := fmt.Sprintf("%s at %s", time.Now().UTC().Format(time.RFC3339), strings.ToValidUTF8(cmp.Or(host, "unknown"), "?"))
	return by[:min(len(by), 200)]
}

func refuseAuthority(c *Config, own string, others map[string]string) error {
	dir := filepath.Join(c.DataDir, "pki")
	var noted []string
	for name, by := range others {
		noted = append(noted, fmt.Sprintf("%s, noted %s", strings.TrimPrefix(name, markAuthority), by))
	}
	return configError("plinths on %s have another authority (%s) than %s (%s), and clients of the one would not trust the other: "+
		"copy ca.crt, ca.key and sa.key from their pki/ to %[3]s, or say with --new-authority (PLINTH_NEW_AUTHORITY=true) that this one takes its place",
		dialects.Describe(c.DSN), strings.Join(noted, "; "), dir, own)
}
