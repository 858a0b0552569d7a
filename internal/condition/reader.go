package condition

// Reader is whom a message is for: whoever may read the objects of a namespace. What
// objects of other namespaces are called, and what is wrong with them, is not for him to
// know, unless his own object refers to them or is attached to them. Its methods are the
// one place that decides this: a message names an object that it came upon by itself only
// through them.
type Reader struct {
	Namespace string
	// Operator says that all objects are those of one person, who runs the proxies too.
	Operator bool
}

// hidden stands for what a reader is not told.
const (
	hiddenName  = "another namespace's"
	hiddenWhy   = "its own status says why"
	hiddenWords = "what it says is in the log of the controller, since it may be about objects of other namespaces"
)

// Sees reports whether the reader may know the objects of a namespace. Those in no
// namespace are everyone's.
func (r Reader) Sees(namespace string) bool {
	return r.Operator || namespace == "" || namespace == r.Namespace
}

// Object names an object of some kind: HTTPRoute team/a, or another namespace's HTTPRoute.
func (r Reader) Object(kind, namespace, name string) string {
	switch {
	case namespace == "":
		return kind + " " + name
	case !r.Sees(namespace):
		return hiddenName + " " + kind
	default:
		return kind + " " + namespace + "/" + name
	}
}

// Name is the name of an object whose kind is clear: team/a, or another namespace's.
func (r Reader) Name(namespace, name string) string {
	if !r.Sees(namespace) {
		return hiddenName
	}
	return namespace + "/" + name
}

// Why is what a condition says of an object of a namespace, in the message of another one.
func (r Reader) Why(namespace, message string) string {
	if !r.Sees(namespace) {
		return hiddenWhy
	}
	return message
}

// Words are what a proxy says of something that objects of these namespaces share.
func (r Reader) Words(message string, namespaces ...string) string {
	for _, n := range namespaces {
		if !r.Sees(n) {
			return hiddenWords
		}
	}
	return message
}
