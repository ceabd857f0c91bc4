package server

import (
	"crypto/tls"
	"errors"
	"fmt"
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
	"github.com/plinth-io/plinth/server/fielderr"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/pki"
)

// mostLeaseDelay bounds Config.LeaseCommitDelay: clients of Leases give up after seconds.
const mostLeaseDelay = 5 * time.Second

// check finds what can be known to be wrong without any I/O.
func (c *Config) check() error {
	if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" {
		return fieldError("%v %q: write HOST:PORT, such as 127.0.0.1:6443, or port 0 for a free one", field("Listen"), c.Listen)
	}
	if err := dialects.Check(c.DSN, dialects.Options{}); err != nil {
		return fieldError("%v: %w", field("DSN"), err)
	}
	if err := controllers.Check(c.Controllers); err != nil {
		return fieldError("%v: %w", field("Controllers"), err)
	}
	if err := audit.Check(c.Audit); err != nil {
		return configError("audit: %w", err)
	}
	if err := authz.CheckOptions(c.Authorization); err != nil {
		return configError("authorization: %w", err)
	}
	if err := c.Tokens.Check(); err != nil {
		return configError("%w", fielderr.Below("Tokens", err))
	}
	if err := c.Serving.Check(); err != nil {
		return configError("%w", fielderr.Below("Serving", err))
	}
	if err := authn.Check(c.Authentication); err != nil {
		return configError("authentication: %w", err)
	}
	enabled, err := builtin.ParseEnabled(c.RuntimeConfig, c.Forward)
	if err != nil {
		return fieldError("%v: %w", field("RuntimeConfig"), err)
	}
	if _, err := enabled.Removed(c.ServeRemovedAPIs); err != nil {
		return fieldError("%v: %w", field("ServeRemovedAPIs"), err)
	}
	if err := admission.Check(c.EnableAdmissionPlugins, c.DisableAdmissionPlugins); err != nil {
		return configError("%w", err)
	}
	if c.EventTTL > 0 && c.EventTTL < time.Second {
		return fieldError("%v %v is less than a second: write a duration such as 1h", field("EventTTL"), c.EventTTL)
	}
	if c.LeaseCommitDelay < 0 || c.LeaseCommitDelay > mostLeaseDelay {
		return fieldError("%v %v: write a duration from 0 to %v, such as 1s", field("LeaseCommitDelay"), c.LeaseCommitDelay, mostLeaseDelay)
	}
	if err := checkRetention(c.Keep); err != nil {
		return fieldError("%v: %w", field("Keep"), err)
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
			return fieldError("%v: %q: write a DNS name or an IP address, such as plinth.example.com", field("SANs"), name)
		}
	}
	return c.checkBounds()
}

// checkBounds checks durations and numbers that must not be negative.
func (c *Config) checkBounds() error {
	for _, d := range []struct {
		field field
		value time.Duration
	}{
		{"DatabaseTimeout", c.DatabaseTimeout}, {"ShutdownDelay", c.ShutdownDelay},
		{"ShutdownTimeout", c.ShutdownTimeout}, {"RequestTimeout", c.RequestTimeout},
	} {
		if d.value < 0 {
			return fieldError("%v %v is negative: write a duration such as 30s", d.field, d.value)
		}
	}
	if c.ShutdownDelay >= c.ShutdownTimeout {
		return fieldError("%v %v: write less than %v, %v", field("ShutdownDelay"), c.ShutdownDelay, field("ShutdownTimeout"), c.ShutdownTimeout)
	}
	if c.Memory != 0 && c.Memory < LeastMemory {
		return fieldError("%v %d MiB: write at least %d MiB", field("Memory"), c.Memory>>20, LeastMemory>>20)
	}
	if c.MaxReads < 0 {
		return fieldError("%v %d is negative: write a number such as 400", field("MaxReads"), c.MaxReads)
	}
	if c.MaxWrites < 0 {
		return fieldError("%v %d is negative: write a number such as 200", field("MaxWrites"), c.MaxWrites)
	}
	if c.MaxStreams < 0 {
		return fieldError("%v %d is negative: write a number such as 1000", field("MaxStreams"), c.MaxStreams)
	}
	if !(c.GoAwayChance >= 0 && c.GoAwayChance <= 0.02) {
		return fieldError("%v %v is not between 0 and 0.02: write a number such as 0.001", field("GoAwayChance"), c.GoAwayChance)
	}
	return nil
}

// checkKubelets checks what has to do with kubelets.
func (c *Config) checkKubelets() error {
	if (c.KubeletCertificate == "") != (c.KubeletKey == "") {
		return fieldError("%v and %v belong together: give both or neither", field("KubeletCertificate"), field("KubeletKey"))
	}
	if c.KubeletCertificate != "" {
		shown, err := tls.LoadX509KeyPair(c.KubeletCertificate, c.KubeletKey)
		if err != nil {
			return fieldError("%v and %v: %w", field("KubeletCertificate"), field("KubeletKey"), err)
		}
		if shown.Leaf.Subject.CommonName == pki.AdminName {
			return fieldError("%v is one of the admin %s, who could not get in with it any more: make one of another name, such as %s", field("KubeletCertificate"), pki.AdminName, pki.KubeletClientName)
		}
	}
	for _, t := range c.KubeletAddressTypes {
		if !slices.Contains(NodeAddressTypes, t) {
			return fieldError("%v: %q: write some of %s", field("KubeletAddressTypes"), t, strings.Join(NodeAddressTypes, ", "))
		}
	}
	return nil
}

// ErrConfig is wrapped by errors of Open that say what to write in a Config instead.
var ErrConfig = errors.New("bad configuration")

// FieldError is an error about fields of a Config, which it calls Config.NAME. fielderr.Text writes it in other
// names, such as those of flags.
type FieldError = fielderr.Error

// field is the name of a field of Config in an error.
type field = fielderr.Name

// fieldError returns a FieldError that wraps ErrConfig. Arguments of type field are the fields.
func fieldError(format string, args ...any) error {
	return configError("%w", fielderr.Errorf(format, args...))
}

// configError returns an error that wraps ErrConfig.
func configError(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrConfig, fmt.Errorf(format, args...))
}
