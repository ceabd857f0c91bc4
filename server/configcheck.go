package server

import (
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/server/admission"
	"github.com/plinth-io/plinth/server/audit"
	"github.com/plinth-io/plinth/server/authn"
	"github.com/plinth-io/plinth/server/authz"
	"github.com/plinth-io/plinth/server/controllers"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/pki"
)

// mostLeaseDelay bounds Config.LeaseCommitDelay: clients of Leases give up after seconds.
const mostLeaseDelay = 5 * time.Second

// check finds what can be known to be wrong without any I/O.
func (c *Config) check() error {
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return configError("Config.Listen %q: write HOST:PORT, such as 127.0.0.1:6443, or port 0 for a free one", c.Listen)
	}
	if err := dialects.Check(c.DSN, dialects.Options{}); err != nil {
		return configError("Config.DSN: %w", err)
	}
	if err := controllers.Check(c.Controllers); err != nil {
		return configError("Config.Controllers: %w", err)
	}
	if err := audit.Check(c.Audit); err != nil {
		return configError("audit: %w", err)
	}
	if err := authz.CheckOptions(c.Authorization); err != nil {
		return configError("authorization: %w", err)
	}
	if err := c.Tokens.Check(); err != nil {
		return configError("%w", err)
	}
	if err := c.Serving.Check(); err != nil {
		return configError("%w", err)
	}
	if err := authn.Check(c.Authentication); err != nil {
		return configError("authentication: %w", err)
	}
	enabled, err := builtin.ParseEnabled(c.RuntimeConfig, c.Forward)
	if err != nil {
		return configError("Config.RuntimeConfig: %w", err)
	}
	if _, err := enabled.Removed(c.ServeRemovedAPIs); err != nil {
		return configError("Config.ServeRemovedAPIs: %w", err)
	}
	if err := admission.Check(c.EnableAdmissionPlugins, c.DisableAdmissionPlugins); err != nil {
		return configError("%w", err)
	}
	if c.EventTTL > 0 && c.EventTTL < time.Second {
		return configError("Config.EventTTL %v is less than a second: write a duration such as 1h", c.EventTTL)
	}
	if c.LeaseCommitDelay < 0 || c.LeaseCommitDelay > mostLeaseDelay {
		return configError("Config.LeaseCommitDelay %v: write a duration from 0 to %v, such as 1s", c.LeaseCommitDelay, mostLeaseDelay)
	}
	if err := checkKeep(c.Keep); err != nil {
		return configError("Config.Keep: %w", err)
	}
	if err := c.checkBackups(); err != nil {
		return err
	}
	if err := c.checkKubelets(); err != nil {
		return err
	}
	ranges, err := allocate.ParseRanges(c.ServiceClusterIPRange, c.ServiceNodePortRange)
	if err != nil {
		return configError("%w", err)
	}
	if err := checkAdvertised(c.AdvertiseAddress, ranges.Addresses[0]); err != nil {
		return err
	}
	for _, name := range c.SANs {
		if net.ParseIP(name) == nil && len(validation.IsDNS1123Subdomain(strings.TrimPrefix(name, "*."))) > 0 {
			return configError("Config.SANs: %q: write a DNS name or an IP address, such as plinth.example.com", name)
		}
	}
	return c.checkBounds()
}

// checkBounds checks durations and numbers that must not be negative.
func (c *Config) checkBounds() error {
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"DatabaseTimeout", c.DatabaseTimeout}, {"ShutdownDelay", c.ShutdownDelay},
		{"ShutdownTimeout", c.ShutdownTimeout}, {"RequestTimeout", c.RequestTimeout},
	} {
		if d.value < 0 {
			return configError("Config.%s %v is negative: write a duration such as 30s", d.field, d.value)
		}
	}
	if c.ShutdownDelay >= c.ShutdownTimeout {
		return configError("Config.ShutdownDelay %v: write less than Config.ShutdownTimeout, %v", c.ShutdownDelay, c.ShutdownTimeout)
	}
	if c.Memory != 0 && c.Memory < LeastMemory {
		return configError("Config.Memory %d MiB: write at least %d MiB", c.Memory>>20, LeastMemory>>20)
	}
	if c.MaxReads < 0 {
		return configError("Config.MaxReads %d is negative: write a number such as 400", c.MaxReads)
	}
	if c.MaxWrites < 0 {
		return configError("Config.MaxWrites %d is negative: write a number such as 200", c.MaxWrites)
	}
	if c.MaxStreams < 0 {
		return configError("Config.MaxStreams %d is negative: write a number such as 1000", c.MaxStreams)
	}
	if !(c.GoAwayChance >= 0 && c.GoAwayChance <= 0.02) {
		return configError("Config.GoAwayChance %v is not between 0 and 0.02: write a number such as 0.001", c.GoAwayChance)
	}
	return nil
}

// checkKubelets checks what has to do with kubelets.
func (c *Config) checkKubelets() error {
	if (c.KubeletCertificate == "") != (c.KubeletKey == "") {
		return configError("Config.KubeletCertificate and Config.KubeletKey belong together: give both or neither")
	}
	if c.KubeletCertificate != "" {
		shown, err := tls.LoadX509KeyPair(c.KubeletCertificate, c.KubeletKey)
		if err != nil {
			return configError("Config.KubeletCertificate and Config.KubeletKey: %w", err)
		}
		if shown.Leaf.Subject.CommonName == pki.AdminName {
			return configError("Config.KubeletCertificate is one of the admin %s, who could not get in with it any more: make one of another name, such as %s", pki.AdminName, pki.KubeletClientName)
		}
	}
	for _, t := range c.KubeletAddressTypes {
		if !slices.Contains(NodeAddressTypes, t) {
			return configError("Config.KubeletAddressTypes: %q: write some of %s", t, strings.Join(NodeAddressTypes, ", "))
		}
	}
	return nil
}
