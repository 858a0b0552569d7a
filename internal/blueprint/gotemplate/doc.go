// Package gotemplate turns objects that are written as Go templates, as Helm has them, into templates of
// blueprints: YAML with expressions in its fields.
//
// A Go template makes a text, which becomes YAML afterwards; which field a value goes to is known only
// then. So the template's text is read as YAML with marks in the place of its actions, and each
// mark becomes an expression of the field where it stands:
//
//   - {{ .Values.size }} becomes ${values.size};
//   - a map or a list by toYaml becomes the field's value, or is merged into the map around it;
//   - if and range around fields become optional values, and lists made by map();
//   - functions that CEL doesn't have are evaluated as they are, by text().
//
// Invariants:
//   - What can't be turned is a problem with its line. Nothing is left out in silence.
//   - It is for people who move to blueprints, who read what comes out. Nothing of it runs in a controller.
package gotemplate
