package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-dev/gatehouse/internal/source/members"
)

// memberClusterFlags name member clusters.
type memberClusterFlags struct {
	clusters []string
}

func (f *memberClusterFlags) define(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.clusters, "member-cluster", nil,
		"NAME=KUBECONFIG of a cluster whose exported Services are backends, as ServiceImports; only Services are read of it; repeatable")
}

// options are those of each cluster.
func (f *memberClusterFlags) options() (out []members.Cluster, err error) {
	for _, text := range f.clusters {
		name, file, ok := strings.Cut(text, "=")
		if !ok || name == "" || file == "" {
			return nil, usageError{fmt.Errorf("--member-cluster %s: write NAME=KUBECONFIG, such as west=west.kubeconfig", text)}
		}
		out = append(out, members.Cluster{Name: name, Kubeconfig: file})
	}
	if _, err := members.New(members.Options{Clusters: out}); err != nil {
		return nil, usageError{err}
	}
	return out, nil
}
