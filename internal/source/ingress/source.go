package ingress

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gatehouse-dev/gatehouse/internal/condition"
	"github.com/gatehouse-dev/gatehouse/internal/kind"
	"github.com/gatehouse-dev/gatehouse/internal/migrate"
	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/source/schema"
)

// Options say which Ingresses are served, and where.
type Options struct {
	// Class is the class of the Ingresses. Those that name none are not served.
	Class string
	// Gateway is the one that is made for them, and GatewayClass its class.
	Gateway      object.Name
	GatewayClass string
	// ConfigMap is that of ingress-nginx's controller, and DefaultCertificate the Secret for hosts whose
	// Ingress names none; zero for nothing.
	ConfigMap, DefaultCertificate object.Name
}

// Source makes objects of Ingresses. It is for one goroutine.
type Source struct {
	opts      Options
	validator *schema.Validator
	scheme    *runtime.Scheme

	ingresses  map[object.Name]*networkingv1.Ingress
	services   map[object.Name]*corev1.Service
	secrets    map[object.Name]*corev1.Secret
	configMaps map[object.Name]*corev1.ConfigMap
	named      map[object.Key]bool // the Secrets and ConfigMaps that count

	made map[object.Key]made // nil before the first translation
	told map[string][]source.Problem
}

// made is an object with what it was made of.
type made struct {
	raw    migrate.Object
	object source.Object
}

// New prepares a Source.
func New(opts Options) (*Source, error) {
	validator, err := schema.New(kind.All, false)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := kind.All.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return &Source{
		opts: opts, validator: validator, scheme: scheme,
		ingresses: map[object.Name]*networkingv1.Ingress{}, services: map[object.Name]*corev1.Service{},
		secrets: map[object.Name]*corev1.Secret{}, configMaps: map[object.Name]*corev1.ConfigMap{},
		told: map[string][]source.Problem{},
	}, nil
}

// ConfigMaps are those that the translation of an object needs; none where it is no Ingress that is served.
func (o Options) ConfigMaps(of source.Object) (names []object.Name) {
	in, ok := of.(*networkingv1.Ingress)
	if !ok || !o.Serves(in) {
		return nil
	}
	if o.ConfigMap.Name != "" {
		names = append(names, o.ConfigMap)
	}
	for _, n := range migrate.ConfigMaps(in) {
		names = append(names, object.Name(n))
	}
	return names
}

// Serves reports whether an Ingress is of the class.
func (o Options) Serves(in *networkingv1.Ingress) bool { return migrate.ClassOf(in) == o.Class }

// Take takes in what has changed of all objects, and returns what this changes of what is made of Ingresses.
func (s *Source) Take(b source.Batch) source.Batch {
	counts := false
	for _, o := range b.Set {
		counts = s.set(o) || counts
	}
	for _, k := range b.Deleted {
		counts = s.deleted(k) || counts
	}
	if !counts && s.made != nil {
		return source.Batch{}
	}
	return s.translate()
}

// set takes in an object, and reports whether the translation may be another one by it.
func (s *Source) set(o source.Object) bool {
	name := object.Name{Namespace: o.GetNamespace(), Name: o.GetName()}
	switch o := o.(type) {
	case *networkingv1.Ingress:
		was := s.ingresses[name]
		if s.ingresses[name] = o; !s.opts.Serves(o) {
			delete(s.ingresses, name)
		}
		return was != nil || s.opts.Serves(o)
	case *corev1.Service:
		was := s.services[name]
		s.services[name] = o
		return len(s.ingresses) > 0 && (was == nil || !reflect.DeepEqual(was.Spec.Ports, o.Spec.Ports))
	case *corev1.Secret:
		s.secrets[name] = o
		return s.named[object.Key{Kind: kind.Secret, Name: name}]
	case *corev1.ConfigMap:
		s.configMaps[name] = o
		return s.named[object.Key{Kind: kind.ConfigMap, Name: name}]
	}
	return false
}

// deleted is set for the end of an object.
func (s *Source) deleted(k object.Key) bool {
	switch k.Kind {
	case kind.Ingress:
		_, was := s.ingresses[k.Name]
		delete(s.ingresses, k.Name)
		return was
	case kind.Service:
		delete(s.services, k.Name)
		return len(s.ingresses) > 0
	case kind.Secret:
		delete(s.secrets, k.Name)
	case kind.ConfigMap:
		delete(s.configMaps, k.Name)
	}
	return s.named[k]
}

// input is what is translated. It notes what else counts.
func (s *Source) input() migrate.Input {
	in := migrate.Input{Ingresses: slices.Collect(maps.Values(s.ingresses)), Services: slices.Collect(maps.Values(s.services))}
	s.named = map[object.Key]bool{{Kind: kind.ConfigMap, Name: s.opts.ConfigMap}: true}
	in.Config = s.configMaps[s.opts.ConfigMap]
	for _, o := range in.Ingresses {
		if secret := migrate.PasswordSecret(o); secret != "" {
			s.named[object.Key{Kind: kind.Secret, Name: object.Name{Namespace: o.Namespace, Name: secret}}] = true
		}
		for _, n := range migrate.ConfigMaps(o) {
			if n.Namespace != o.Namespace {
				continue // whoever writes the Ingress may have no right to read it
			}
			s.named[object.Key{Kind: kind.ConfigMap, Name: object.Name(n)}] = true
		}
	}
	for k := range s.named {
		if o := s.secrets[k.Name]; k.Kind == kind.Secret && o != nil {
			in.Secrets = append(in.Secrets, o)
		}
		if o := s.configMaps[k.Name]; k.Kind == kind.ConfigMap && o != nil && k.Name != s.opts.ConfigMap {
			in.ConfigMaps = append(in.ConfigMaps, o)
		}
	}
	return in
}

// translate makes all anew, and returns what is another than before.
func (s *Source) translate() source.Batch {
	next, report := s.convert()
	var b source.Batch
	for k, m := range next {
		if s.made[k].object != m.object {
			b.Set = append(b.Set, m.object)
		}
	}
	for k := range s.made {
		if _, ok := next[k]; !ok {
			b.Deleted = append(b.Deleted, k)
		}
	}
	slices.SortFunc(b.Set, func(x, y source.Object) int { return source.KeyOf(x).Compare(source.KeyOf(y)) })
	slices.SortFunc(b.Deleted, object.Key.Compare)
	s.made = next
	b.Problems = s.tell(report)
	return b
}

// convert makes all objects. An Ingress of which something is made that nobody would take is refused, and if that
// isn't enough, its hosts are. What is made of several Ingresses stays as it was.
func (s *Source) convert() (map[object.Key]made, migrate.Report) {
	input := s.input()
	options := migrate.Options{
		Class: s.opts.Class, Gateway: types.NamespacedName(s.opts.Gateway), GatewayClass: s.opts.GatewayClass,
		DefaultCertificate: types.NamespacedName(s.opts.DefaultCertificate), Cluster: true,
		NoConfig: s.opts.ConfigMap.Name == "" || len(s.ingresses) == 0, // without Ingresses nobody asks for it
	}
	ages := map[string]metav1.Time{}
	for _, o := range input.Ingresses {
		ages[o.Namespace+"/"+o.Name] = o.CreationTimestamp
	}
	refused, whole, wrong := map[string]bool{}, map[string]bool{}, migrate.Report{}
	for {
		objects, report := migrate.ConvertClosed(input, options, refused, whole)
		next, again := map[object.Key]made{}, false
		for _, m := range objects {
			k, o, err := s.finish(m, ages[m.Ingress])
			switch {
			case err == nil:
				next[k] = made{m.Object, o}
			case m.Ingress == "":
				if was, ok := s.made[k]; ok {
					next[k] = was
				}
				report = append(report, migrate.Finding{Verdict: migrate.NotPossible, Message: k.Kind.Name() + " " + k.Name.String() +
					", which is made of all Ingresses, stays as it was: " + err.Error()})
			case refused[m.Ingress]:
				again = again || !whole[m.Ingress]
				whole[m.Ingress] = true
			default:
				refused[m.Ingress], again = true, true
				wrong = append(wrong, migrate.Finding{
					Ingress: m.Ingress, Verdict: migrate.NotPossible, Opens: true,
					Message: k.Kind.Name() + " " + k.Name.String() + ", which is made of it, can't be: " + err.Error(),
				})
			}
		}
		if !again {
			return next, append(report, wrong...)
		}
	}
}

// finish gives an object its defaults, and checks it. Of what is as it was before, the same object is returned.
func (s *Source) finish(m migrate.Made, age metav1.Time) (object.Key, source.Object, error) {
	gvks, _, err := s.scheme.ObjectKinds(m.Object)
	if err != nil {
		return object.Key{}, nil, err
	}
	k := object.Key{Kind: object.KindOf(gvks[0].Group, gvks[0].Kind), Name: object.Name{Namespace: m.GetNamespace(), Name: m.GetName()}}
	if was, ok := s.made[k]; ok && reflect.DeepEqual(was.raw, m.Object) && was.object.GetCreationTimestamp().Time.Equal(age.Time) {
		return k, was.object, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m.Object)
	if err != nil {
		return k, nil, err
	}
	content["apiVersion"], content["kind"] = gvks[0].GroupVersion().String(), gvks[0].Kind
	id, err := s.validator.Identify(content)
	if err != nil {
		return k, nil, err
	}
	o, errs := s.validator.Decode(id, content)
	if err := errs.ToAggregate(); err != nil {
		return k, nil, err
	}
	// Of a route that somebody has written and one that is made, the older one has a path that both have.
	o.SetCreationTimestamp(metav1.NewTime(age.Round(time.Second)))
	return k, o, nil
}

// tell returns what there is to say now of Ingresses, and of the controller's ConfigMap, and wasn't before.
func (s *Source) tell(report migrate.Report) map[string][]source.Problem {
	all := map[string][]source.Problem{}
	for _, f := range report {
		if f.Verdict != migrate.NotPossible && !f.Opens {
			continue
		}
		of := object.Key{Kind: kind.Ingress}
		if f.Ingress == "" {
			of = object.Key{Kind: kind.ConfigMap, Name: s.opts.ConfigMap}
		} else {
			of.Name = nameOf(f.Ingress)
		}
		p := source.Problem{Key: of, Reason: source.NotConverted, Message: condition.NotConverted(f.Annotation, f.Message)}
		if f.Opens {
			p.Message = condition.IngressRefused(f.Annotation, f.Message)
		}
		at := "\x00made of " + of.String()
		all[at] = append(all[at], p)
	}
	out := map[string][]source.Problem{}
	for at, list := range all {
		if !slices.EqualFunc(s.told[at], list, source.Problem.Equal) {
			out[at] = list
		}
	}
	for at := range s.told {
		if all[at] == nil {
			out[at] = nil
		}
	}
	s.told = all
	return out
}

func nameOf(text string) object.Name {
	namespace, name, _ := strings.Cut(text, "/")
	return object.Name{Namespace: namespace, Name: name}
}
