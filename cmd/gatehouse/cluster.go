package main

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/gatehouse-dev/gatehouse/internal/cluster"
	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source/kube"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// clusterFlags choose a cluster and a namespace as kubectl does.
type clusterFlags struct {
	kubeconfig     string
	context        string
	namespace      string
	all            bool
	controllerName string
	// controllerNamespace is where the platform says values for whole classes; empty where they don't matter.
	controllerNamespace string
}

// clusterFlagNames are the flags that ask for a cluster.
var clusterFlagNames = []string{"kubeconfig", "context", "namespace", "all-namespaces"}

func (f *clusterFlags) define(fl *pflag.FlagSet) {
	fl.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig file of a cluster (default: as for kubectl)")
	fl.StringVar(&f.context, "context", "", "context of the kubeconfig (default: the current one)")
	fl.StringVarP(&f.namespace, "namespace", "n", "", "namespace in the cluster (default: the context's)")
	fl.BoolVarP(&f.all, "all-namespaces", "A", false, "all namespaces of the cluster")
	fl.StringVar(&f.controllerName, "controller-name", pipeline.ControllerName, "in a cluster: controllerName of our GatewayClasses")
}

// asked reports whether the command line asks for a cluster.
func (f *clusterFlags) asked(cmd *cobra.Command) bool {
	for _, name := range clusterFlagNames {
		if cmd.Flags().Changed(name) {
			return true
		}
	}
	return false
}

func (f *clusterFlags) config() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: f.context}
	overrides.Context.Namespace = f.namespace
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides)
}

// configured reports whether there is a cluster to ask without being told of one.
func (f *clusterFlags) configured() bool {
	_, err := f.config().ClientConfig()
	return err == nil
}

// snapshot reads the cluster. The namespace is the one to show, empty for all.
func (f *clusterFlags) snapshot(ctx context.Context) (s *cluster.Snapshot, r *kube.Reader, namespace string, err error) {
	ctrllog.SetLogger(logr.Discard()) // what went wrong is returned
	config := f.config()
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, nil, "", fmt.Errorf("choose a cluster: %w", err)
	}
	if namespace, _, err = config.Namespace(); err != nil {
		return nil, nil, "", fmt.Errorf("choose a namespace: %w", err)
	}
	if r, err = kube.Open(rest, namespace); err != nil {
		return nil, nil, "", err
	}
	if f.all {
		namespace = ""
	}
	s, err = cluster.TakeSnapshot(ctx, r, f.controllerName, f.controllerNamespace)
	return s, r, namespace, err
}

// view shows the statuses in the cluster.
func (f *clusterFlags) view(ctx context.Context) (v view.View, where string, err error) {
	s, _, namespace, err := f.snapshot(ctx)
	if err != nil {
		return view.View{}, "", err
	}
	where = "the cluster has"
	if namespace != "" {
		where = "namespace " + namespace + " (-A shows all) has"
	}
	return s.Live(namespace), where, nil
}

// evaluate computes what the cluster's objects become.
func (f *clusterFlags) evaluate(ctx context.Context) (p *pipeline.Pipeline, namespace string, err error) {
	s, r, namespace, err := f.snapshot(ctx)
	if err != nil {
		return nil, "", err
	}
	return s.Pipeline, namespace, s.Complete(ctx, r)
}
