package terminal

import (
	"fmt"

	"github.com/gatehouse-dev/gatehouse/internal/object"
	"github.com/gatehouse-dev/gatehouse/internal/view"
)

// Attention counts what a person should look at: objects that are not as they
// should be, and files that hold nothing that can be attributed to an object. What only
// waits for one of those is not counted.
type Attention struct{ Objects, Files int }

// Needed counts in a view.
func Needed(v view.View) Attention {
	objects, files := map[string]bool{}, map[string]bool{}
	for _, it := range v.Items {
		if _, _, bad := it.Summary.Trouble(); bad && len(it.Summary.WaitsFor) == 0 {
			objects[it.Kind+" "+objectName(it.Metadata)] = true
		}
	}
	for _, p := range v.Problems {
		if p.Key == (object.Key{}) {
			files[p.File] = true
		} else {
			objects[p.Key.String()] = true
		}
	}
	return Attention{len(objects), len(files)}
}

// Any reports whether anything does.
func (a Attention) Any() bool { return a != Attention{} }

// String returns "2 objects and 1 file need attention"; empty if nothing does.
func (a Attention) String() string {
	verb := "need"
	if a.Objects+a.Files == 1 {
		verb = "needs"
	}
	switch {
	case a.Objects == 0 && a.Files == 0:
		return ""
	case a.Files == 0:
		return fmt.Sprintf("%s %s attention", plural(a.Objects, "object"), verb)
	case a.Objects == 0:
		return fmt.Sprintf("%s %s attention", plural(a.Files, "file"), verb)
	}
	return fmt.Sprintf("%s and %s need attention", plural(a.Objects, "object"), plural(a.Files, "file"))
}
