package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server/pki"
)

const certsHelp = `Show, renew and copy the certificates of plinth's own authority, in the data directory.

plinth renews them by itself, 90 days before they expire, at its start and while it runs. These
commands do not show certificates that flags name.`

func newCerts() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certs",
		Short: "Show, renew and copy the certificates of plinth",
		Long:  certsHelp,
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCertsCheck(), newCertsRenew(), newCertsCopy())
	return cmd
}

const certsCheckHelp = `Show the certificates in the data directory, their signers, and when they expire.

The exit code is 0 if all of them can be used, 1 if one has expired, expires soon or cannot be used,
and 2 if the command was wrong.`

// certsQuery is the flags of the command certs check.
type certsQuery struct {
	dataDir, output string
	within          days
}

// certificateStatus is what certs check prints of a certificate.
type certificateStatus struct {
	Name      string     `json:"name"`
	Subject   string     `json:"subject,omitempty"`
	Authority string     `json:"authority,omitempty"`
	Expires   *time.Time `json:"expires,omitempty"`
	DaysLeft  *int       `json:"daysLeft,omitempty"`
	Problem   string     `json:"problem,omitempty"`
}

func newCertsCheck() *cobra.Command {
	q := certsQuery{within: days(30 * 24 * time.Hour)}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Show when the certificates of plinth expire",
		Long:  certsCheckHelp,
		Args:  noArgs,
		Example: `  plinth certs check
  plinth certs check --within 60d -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.dataDir = dataDirOf(cmd, q.dataDir)
			return q.print(cmd.OutOrStdout())
		},
	}
	addInOrder(cmd,
		dataDirFlag(&q.dataDir, ownDirHelp),
		Flag{Name: "within", Set: value(&q.within), Help: "a certificate that expires within this time is a problem"},
		outputFlag(&q.output, outputHelp, "json", "yaml"),
	)
	return cmd
}

func (q *certsQuery) print(stdout io.Writer) error {
	if err := checkOutput(q.output); err != nil {
		return err
	}
	found, err := pki.List(filepath.Join(q.dataDir, "pki"))
	if err != nil {
		return aboutPKI(err)
	}
	list, problems := q.look(found, time.Now())
	if q.output != "" {
		err = printAs(stdout, q.output, list)
	} else {
		err = printCertificates(stdout, list)
	}
	if err != nil || len(problems) == 0 {
		return err
	}
	return fmt.Errorf("%s; run plinth certs renew", strings.Join(problems, "; "))
}

// look returns the certificates as they are shown, and what is wrong with them.
func (q *certsQuery) look(found []pki.Certificate, now time.Time) (list []certificateStatus, problems []string) {
	for _, c := range found {
		s := certificateStatus{Name: c.Name, Subject: c.Subject, Authority: c.Authority}
		if !c.End.IsZero() {
			end, left := c.End.UTC(), int(c.End.Sub(now).Hours()/24)
			s.Expires, s.DaysLeft = &end, &left
		}
		switch {
		case c.Err != nil:
			s.Problem = oneLine(c.Err)
		case now.After(c.End):
			s.Problem = "has ended on " + c.End.UTC().Format(time.DateOnly)
		case now.Add(time.Duration(q.within)).After(c.End):
			s.Problem = fmt.Sprintf("ends in %d days", *s.DaysLeft)
		}
		if s.Problem != "" {
			problems = append(problems, c.Name+": "+s.Problem)
		}
		list = append(list, s)
	}
	return list, problems
}

func printCertificates(w io.Writer, list []certificateStatus) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSUBJECT\tAUTHORITY\tEXPIRES\tDAYS LEFT\tPROBLEM")
	for _, s := range list {
		expires, left := "", ""
		if s.Expires != nil {
			expires, left = s.Expires.Format(time.DateOnly), fmt.Sprint(*s.DaysLeft)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", s.Name, s.Subject, s.Authority, expires, left, s.Problem)
	}
	return table.Flush()
}

const certsRenewHelp = `Replace the certificates in the data directory by new ones with the same content.

Without names, this replaces all but the authorities. An authority (ca, front-proxy-ca) keeps its
key: certificates that it has signed stay valid, and clients trust the new certificate once they
have it. The admin's kubeconfig in the data directory gets the new certificates, too.

A running plinth reads the new files within seconds. Kubeconfigs of other users are not renewed:
create new ones with plinth kubeconfig.`

func newCertsRenew() *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "renew [NAME...]",
		Short: "Renew the certificates of plinth",
		Long:  certsRenewHelp,
		Example: `  plinth certs renew
  plinth certs renew apiserver`,
		ValidArgsFunction: func(_ *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
			left := slices.DeleteFunc(pki.Names(), func(name string) bool { return slices.Contains(given, name) })
			return left, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return renewCertificates(dataDirOf(cmd, dataDir), args, cmd.OutOrStdout())
		},
	}
	addFlags(cmd, dataDirFlag(&dataDir, ownDirHelp))
	return cmd
}

func renewCertificates(dataDir string, names []string, stdout io.Writer) error {
	dir := filepath.Join(dataDir, "pki")
	list, err := pki.List(dir)
	if err != nil {
		return aboutPKI(err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(list, func(c pki.Certificate) bool { return c.Name == name }) {
			return usagef("there is no certificate %q in %s; write some of %s", name, dir, strings.Join(present(list), ", "))
		}
	}
	if len(names) == 0 {
		names = pki.Renewable(list)
	}
	ends, err := pki.RenewFiles(dir, names)
	for _, name := range names {
		if end, ok := ends[name]; ok {
			fmt.Fprintf(stdout, "renewed %s, until %s\n", name, end.UTC().Format(time.DateOnly))
		}
	}
	if len(ends) > 0 {
		err = errors.Join(err, pki.RefreshKubeconfig(filepath.Join(dataDir, "kubeconfig"), dir))
	}
	if err != nil {
		return aboutPKI(err)
	}
	return nil
}

func present(list []pki.Certificate) (names []string) {
	for _, c := range list {
		names = append(names, c.Name)
	}
	return names
}
