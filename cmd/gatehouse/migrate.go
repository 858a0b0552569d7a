package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/migrate"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

type migrateFlags struct {
	cluster     clusterFlags
	options     migrate.Options
	gateway     string
	certificate string
	configMap   string
	report      string
	output      string
	serve       bool
	open        bool
}

func newMigrate() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate [PATH...]",
		Short: "Turn Ingresses of ingress-nginx into Gateway API objects and policies",
		Long: `Turn Ingresses, as ingress-nginx serves them, into a Gateway, ListenerSets, routes and policies, and print
these. Nothing is written to a cluster. Each annotation is told on standard error: what is not possible or
differs, and by --report all of them. PATH is a file or a directory, with the Services whose ports have names;
without one the cluster is asked.

Where something that protects can't be converted (who may pass, limits, directives of nginx), nothing is
printed and the exit code is 1, unless --allow-opened says that the result is wanted nevertheless.`,
		Example: `  gatehouse migrate ingresses/ >gateway.yaml
  gatehouse migrate -A --report report.json >gateway.yaml
  gatehouse migrate manifests/ --serve`,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.options.Class, "ingress-class", "nginx", "class of the Ingresses; those of no class are converted too")
	fl.StringVar(&f.gateway, "gateway", "default/ingress", "NAMESPACE/NAME of the Gateway that is made")
	fl.StringVar(&f.options.GatewayClass, "gateway-class", "gatehouse", "its class")
	fl.StringVar(&f.certificate, "default-certificate", "", "NAMESPACE/NAME of the Secret for hosts whose tls names none")
	fl.StringVar(&f.configMap, "configmap", "ingress-nginx/ingress-nginx-controller", "NAMESPACE/NAME of the controller's ConfigMap, if it is there")
	fl.StringVar(&f.report, "report", "", "file for the whole report, as JSON")
	fl.StringVarP(&f.output, "output", "o", "yaml", "json or yaml")
	fl.BoolVar(&f.serve, "serve", false, "serve the result at once, with what else is in PATH, as 'gatehouse run' does")
	fl.BoolVar(&f.open, "allow-opened", false, "print the result although something that protects is not in it")
	f.cluster.define(fl)
	complete(cmd, "output", "json", "yaml")
	return cmd
}

func (f *migrateFlags) run(cmd *cobra.Command, paths []string) error {
	if err := oneOf("output", f.output, "json", "yaml"); err != nil {
		return err
	}
	for _, of := range []struct {
		flag, text string
		to         *types.NamespacedName
	}{{"gateway", f.gateway, &f.options.Gateway}, {"default-certificate", f.certificate, &f.options.DefaultCertificate}} {
		namespace, name, ok := strings.Cut(of.text, "/")
		if !ok && of.text != "" {
			return usageError{fmt.Errorf("--%s: %q is not NAMESPACE/NAME", of.flag, of.text)}
		}
		*of.to = types.NamespacedName{Namespace: namespace, Name: name}
	}
	if f.serve && len(paths) == 0 {
		return usageError{errors.New("--serve needs a PATH, with the Services and endpoints that are served")}
	}
	f.options.NoConfig, f.options.Cluster = f.configMap == "", len(paths) == 0
	input, err := f.input(cmd.Context(), paths)
	if err != nil {
		return err
	}
	if len(input.Ingresses) == 0 {
		return errors.New("there are no Ingresses")
	}
	objects, report := migrate.Convert(*input, f.options)
	contents, err := contentsOf(objects)
	if err != nil {
		return err
	}
	wrong, err := refused(contents)
	if err != nil {
		return err
	}
	report = append(report, wrong...)
	if f.report != "" {
		text, err := json.MarshalIndent(report, "", "  ")
		if err == nil {
			err = os.WriteFile(f.report, append(text, '\n'), 0o600)
		}
		if err != nil {
			return err
		}
	}
	printReport(cmd.ErrOrStderr(), report)
	if report.Opens() && !f.open {
		fmt.Fprintln(cmd.ErrOrStderr(), "Nothing is printed, since it would let through what was not let through before: mend the lines with OPENS, or say --allow-opened.")
		return errFound
	}
	if !f.serve {
		return printObjects(cmd.OutOrStdout(), f.output, contents)
	}
	return serveMigrated(cmd, contents, paths)
}

// refused says which objects an API server would refuse, and with them perhaps what protects others.
func refused(contents []map[string]any) (wrong migrate.Report, err error) {
	validator, err := schema.New(kind.All, true)
	if err != nil {
		return nil, err
	}
	for _, content := range contents {
		id, err := validator.Identify(content)
		if err != nil {
			return nil, err
		}
		_, errs := validator.Decode(id, content)
		for _, e := range errs {
			wrong = append(wrong, migrate.Finding{
				Ingress: id.Key.Name.String(), Verdict: migrate.NotPossible, Opens: true,
				Message: fmt.Sprintf("%s %s, which it would become, can't be: %s", id.Key.Kind.Name(), id.Key.Name.Name, e),
			})
		}
	}
	return wrong, nil
}

// contentsOf are objects as somebody would write them.
func contentsOf(objects []migrate.Object) (out []map[string]any, err error) {
	scheme := runtime.NewScheme()
	if err := kind.All.AddToScheme(scheme); err != nil {
		return nil, err
	}
	for _, o := range objects {
		kinds, _, err := scheme.ObjectKinds(o)
		if err != nil {
			return nil, err
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			return nil, err
		}
		u := unstructured.Unstructured{Object: content}
		u.SetGroupVersionKind(kinds[0])
		unstructured.RemoveNestedField(content, "status")
		unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
		out = append(out, content)
	}
	return out, nil
}

// serveMigrated serves what was made of Ingresses.
func serveMigrated(cmd *cobra.Command, contents []map[string]any, paths []string) error {
	dir, err := os.MkdirTemp("", "gatehouse-migrate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := os.Create(filepath.Join(dir, "migrated.yaml"))
	if err != nil {
		return err
	}
	err = printObjects(file, "yaml", contents)
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	run := newRun()
	run.SetArgs(append([]string{dir}, paths...))
	run.SetOut(cmd.OutOrStdout())
	run.SetErr(cmd.ErrOrStderr())
	return run.ExecuteContext(cmd.Context())
}

// printReport prints what somebody has to look at, and counts the rest.
func printReport(w io.Writer, report migrate.Report) {
	for _, f := range report {
		if f.Verdict != migrate.NotPossible && f.Verdict != migrate.Differs {
			continue
		}
		of, word := "the controller's ConfigMap", string(f.Verdict)
		if f.Ingress != "" {
			of = "Ingress " + f.Ingress
		}
		if f.Opens {
			word = "OPENS"
		}
		if f.Annotation != "" {
			of += ", " + f.Annotation
		}
		fmt.Fprintf(w, "%s: %s: %s\n", word, of, f.Message)
	}
	fmt.Fprintf(w, "%d converted, %d not needed, %d that differ, %d not possible\n",
		report.Count(migrate.Converted), report.Count(migrate.NotNeeded), report.Count(migrate.Differs), report.Count(migrate.NotPossible))
}

// printObjects prints objects.
func printObjects(w io.Writer, form string, contents []map[string]any) error {
	for _, content := range contents {
		if err := printDocument(w, form, content); err != nil {
			return err
		}
	}
	return nil
}

// input reads files, or the cluster.
func (f *migrateFlags) input(ctx context.Context, paths []string) (*migrate.Input, error) {
	if len(paths) == 0 {
		return f.fromCluster(ctx)
	}
	in := &migrate.Input{}
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			return nil, err
		} else if info.IsDir() {
			if files, err = manifests(path); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			objects, err := readObjects(file)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			for _, o := range objects {
				if err := f.take(in, o); err != nil {
					return nil, fmt.Errorf("%s: %s %s: %w", file, o.GetKind(), o.GetName(), err)
				}
			}
		}
	}
	return in, nil
}

func manifests(dir string) (files []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			files = append(files, path)
		}
		return err
	})
	return files, err
}

// take adds an object of a file to what is converted. Those of other kinds are left out.
func (f *migrateFlags) take(in *migrate.Input, o *unstructured.Unstructured) error {
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	if o.GetKind() == "Ingress" && o.GetAPIVersion() != networkingv1.SchemeGroupVersion.String() {
		return fmt.Errorf("its apiVersion is %s, which no API server has any more: write %s", o.GetAPIVersion(), networkingv1.SchemeGroupVersion)
	}
	switch o.GroupVersionKind().GroupKind() {
	case kschema.GroupKind{Group: networkingv1.GroupName, Kind: "Ingress"}:
		return takeInto(&in.Ingresses, o)
	case kschema.GroupKind{Group: networkingv1.GroupName, Kind: "IngressClass"}:
		return takeInto(&in.Classes, o)
	case kschema.GroupKind{Kind: "Service"}:
		return takeInto(&in.Services, o)
	case kschema.GroupKind{Kind: "Secret"}:
		return takeInto(&in.Secrets, o)
	case kschema.GroupKind{Kind: "ConfigMap"}:
		if o.GetNamespace()+"/"+o.GetName() == f.configMap {
			in.Config = new(corev1.ConfigMap)
			return runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, in.Config)
		}
		return takeInto(&in.ConfigMaps, o)
	}
	return nil
}

func takeInto[T any](list *[]*T, o *unstructured.Unstructured) error {
	of := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, of); err != nil {
		return err
	}
	*list = append(*list, of)
	return nil
}

func (f *migrateFlags) fromCluster(ctx context.Context) (*migrate.Input, error) {
	config := f.cluster.config()
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, usageError{fmt.Errorf("name a PATH, or choose a cluster: %w", err)}
	}
	namespace, _, err := config.Namespace()
	if err != nil {
		return nil, err
	}
	if f.cluster.all {
		namespace = ""
	}
	c, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, err
	}
	in, all := &migrate.Input{}, metav1.ListOptions{}
	ingresses, err := c.NetworkingV1().Ingresses(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	classes, err := c.NetworkingV1().IngressClasses().List(ctx, all)
	if err != nil {
		return nil, err
	}
	services, err := c.CoreV1().Services(namespace).List(ctx, all)
	if err != nil {
		return nil, err
	}
	in.Ingresses, in.Classes, in.Services = pointers(ingresses.Items), pointers(classes.Items), pointers(services.Items)
	if ns, name, ok := strings.Cut(f.configMap, "/"); ok {
		if in.Config, err = c.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			in.Config = nil
		} else if err != nil {
			return nil, fmt.Errorf("the controller's ConfigMap, which says what holds for all Ingresses: %w", err)
		}
	}
	// What of these can't be read is said in the report.
	for _, o := range in.Ingresses {
		if name := migrate.PasswordSecret(o); name != "" {
			if s, err := c.CoreV1().Secrets(o.Namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
				in.Secrets = append(in.Secrets, s)
			}
		}
		if ns, name, ok := strings.Cut(migrate.HeadersConfigMap(o), "/"); ok {
			if m, err := c.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{}); err == nil {
				in.ConfigMaps = append(in.ConfigMaps, m)
			}
		}
	}
	return in, nil
}

func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}
