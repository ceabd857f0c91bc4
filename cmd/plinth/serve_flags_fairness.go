package main

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/plinth-io/plinth/server"
)

// addFairnessFlags adds the flags that divide the server among its clients and bound what each
// can take, in part under kube-apiserver's names.
func addFairnessFlags(cmd *cobra.Command, c *server.Config) {
	f := cmd.Flags()
	f.Var((*not)(&c.NoFairness), "enable-priority-and-fairness", "divide the server among its clients by FlowSchemas and PriorityLevelConfigurations")
	f.IntVar(&c.MaxConnections, "max-connections", 4096, "`number` of connections of clients that may be open, or fewer if the limit of open files is low; when there are more, those are closed that have had no request for the longest time; negative: any number")
	f.IntVar(&c.MaxStreams, "http2-max-streams-per-connection", 1000, "`number` of requests that may be under way on one connection of HTTP/2")
	f.Float64Var(&c.GoAwayChance, "goaway-chance", 0, "`chance`, from 0 to 0.02, that a request ends its connection of HTTP/2, so that load balancers spread clients anew; for several servers behind one address")
	f.Lookup("enable-priority-and-fairness").NoOptDefVal = "true"
}

// not is a flag whose field says the opposite.
type not bool

func (n *not) String() string { return strconv.FormatBool(!bool(*n)) }
func (n *not) Type() string   { return "bool" }

func (n *not) Set(text string) error {
	v, err := strconv.ParseBool(text)
	*n = not(!v)
	return err
}
