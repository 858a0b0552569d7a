// externaldns writes the names of DNSEndpoints into a DNS server by RFC 2136. What reads DNS servers, compares and
// writes is external-dns's own; what reads DNSEndpoints is not: the package of its sources needs modules of
// other controllers.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider/rfc2136"
	"sigs.k8s.io/external-dns/registry"
	"sigs.k8s.io/external-dns/registry/txt"
)

func main() {
	kubeconfig := flag.String("kubeconfig", "", "file with the API server and who asks it")
	cfg := externaldns.NewConfig()
	flag.IntVar(&cfg.RFC2136Port, "port", 53, "of the DNS server on this machine")
	zone := flag.String("zone", "", "that it has")
	flag.StringVar(&cfg.RFC2136TSIGSecret, "secret", "", "of the key external-dns, with which it is asked")
	flag.Parse()
	cfg.RFC2136Host, cfg.RFC2136Zone, cfg.RFC2136AXFR = []string{"127.0.0.1"}, []string{*zone}, true
	cfg.RFC2136TSIGKeyName, cfg.RFC2136TSIGSecretAlg = "external-dns", "hmac-sha256"
	cfg.RFC2136BatchChangeSize = 50
	cfg.TXTOwnerID, cfg.TXTPrefix = "gatehouse", "owner-"
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "externaldns:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string, cfg *externaldns.Config) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	cluster, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	server, err := rfc2136.New(ctx, cfg, endpoint.NewDomainFilter(cfg.RFC2136Zone))
	if err != nil {
		return err
	}
	records, err := txt.New(cfg, server)
	if err != nil {
		return err
	}
	of := cluster.Resource(schema.GroupVersionResource{Group: "externaldns.k8s.io", Version: "v1alpha1", Resource: "dnsendpoints"})
	for ctx.Err() == nil {
		if err := once(ctx, of, records); err != nil {
			fmt.Fprintln(os.Stderr, "externaldns:", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

// once makes the records of the server those that DNSEndpoints want, and says so on them.
func once(ctx context.Context, of dynamic.NamespaceableResourceInterface, records registry.Registry) error {
	list, err := of.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	var wanted []*endpoint.Endpoint
	for _, o := range list.Items {
		var spec struct{ Endpoints []*endpoint.Endpoint }
		text, err := json.Marshal(o.Object["spec"])
		if err == nil {
			err = json.Unmarshal(text, &spec)
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", o.GetNamespace(), o.GetName(), err)
		}
		for _, e := range spec.Endpoints {
			if e.Labels == nil {
				e.Labels = endpoint.NewLabels()
			}
			wanted = append(wanted, e)
		}
	}
	current, err := records.Records(ctx)
	if err != nil {
		return err
	}
	if wanted, err = records.AdjustEndpoints(wanted); err != nil {
		return err
	}
	p := (&plan.Plan{
		Policies: []plan.Policy{&plan.SyncPolicy{}}, Current: current, Desired: wanted, DomainFilter: endpoint.MatchAllDomainFilters{records.GetDomainFilter()},
		ManagedRecords: []string{endpoint.RecordTypeA, endpoint.RecordTypeCNAME}, OwnerID: records.OwnerID(),
	}).Calculate()
	if p.Changes.HasChanges() {
		if err := records.ApplyChanges(ctx, p.Changes); err != nil {
			return err
		}
	}
	for _, o := range list.Items {
		patch := fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, o.GetGeneration())
		if _, err := of.Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}
