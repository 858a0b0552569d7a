package golden

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-dev/gatehouse/internal/pipeline"
	"github.com/gatehouse-dev/gatehouse/internal/source"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// TestPrivacy prints every stage of every file, and the tables that are not about
// Secrets as /debug/tables does: no private key, nor any other secret is in any of it.
func TestPrivacy(t *testing.T) {
	each(t, func(t *testing.T, f *file) {
		if !strings.Contains(f.objects, "kind: Secret") {
			return // reading objects is the dear part
		}
		batch := f.load(t)
		keys := privateKeys(batch)
		if len(keys) == 0 && strings.Contains(f.objects, "tls.key") {
			t.Error("the Secrets were not read")
		}
		p := f.evaluated(t, "")
		p.Apply(batch)
		for where, text := range everything(t, p) {
			for secret, forms := range keys {
				for _, form := range forms {
					if strings.Contains(text, form) {
						t.Errorf("%s has the key of %s in it", where, secret)
					}
				}
			}
		}
	})
}

// privateKeys returns what nobody may read of all Secrets, in the forms in which one could get
// out: line by line, and encoded.
func privateKeys(batch source.Batch) map[string][]string {
	keys := map[string][]string{}
	for _, o := range batch.Set {
		secret, ok := o.(*corev1.Secret)
		if !ok {
			continue
		}
		for entry, value := range secret.Data {
			if entry != corev1.TLSCertKey && entry != corev1.ServiceAccountRootCAKey && len(value) > 0 {
				keys[keyOf(o).String()+" "+entry] = formsOf(value)
			}
		}
	}
	return keys
}

func formsOf(key []byte) (forms []string) {
	for line := range strings.SplitSeq(strings.TrimSpace(string(key)), "\n") {
		if !strings.HasPrefix(line, "-----") {
			forms = append(forms, line, base64.StdEncoding.EncodeToString([]byte(line)))
		}
	}
	// Go's %v of bytes, and the encoding of the whole but for its end, which depends on what
	// follows.
	encoded := base64.StdEncoding.EncodeToString(key)
	return append(forms, encoded[:len(encoded)/2], strings.Trim(fmt.Sprint(key), "[]"))
}

// everything returns all that can be printed of a pipeline, by where it is.
func everything(t *testing.T, p *pipeline.Pipeline) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, stage := range []view.Stage{view.StageIR, view.StageXDS, view.StageStatus, view.StageAll} {
		out["stage "+string(stage)] = string(printed(t, p, stage))
	}
	for _, table := range p.Engine.Stats() {
		if strings.Contains(table.Table, "secret") {
			continue
		}
		var text strings.Builder
		entries, _ := p.Engine.Dump(table.Table)
		for k, v := range entries {
			asYAML, err := yaml.Marshal(v)
			if err != nil {
				t.Errorf("table %s: %v", table.Table, err)
			}
			fmt.Fprintf(&text, "%v %+v\n%s\n", k, v, asYAML)
		}
		out["table "+table.Table] = text.String()
	}
	return out
}
