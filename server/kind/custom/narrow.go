package custom

import (
	celcommon "github.com/google/cel-go/common"
	celast "github.com/google/cel-go/common/ast"
	celparser "github.com/google/cel-go/parser"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	celescape "k8s.io/apiserver/pkg/cel"
)

// narrow reduces the schemas of a validator to the fields that its rules read. Upstream copies
// the schemas of all properties of an object each time a rule reads one of them, which for an
// object of fifty properties is most of a rule's cost. The rules stay compiled against the
// whole schema.
func narrow(v *cel.Validator) {
	if v == nil {
		return
	}
	v.Schema = narrowed(v.Schema)
	if len(v.Properties) == 0 {
		v.Properties = nil // else every field of every object is looked up in it
	}
	narrow(v.Items)
	narrow(v.AdditionalProperties)
	for name, property := range v.Properties {
		narrow(&property)
		v.Properties[name] = property
	}
}

// narrowed returns a schema with only the properties that its rules read, or the schema itself
// if they may read any property.
func narrowed(s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil || len(s.Properties) == 0 || s.ValueValidation != nil && len(s.ValueValidation.AllOf) > 0 {
		return s
	}
	read := map[string]bool{}
	for _, rule := range s.XValidations {
		for _, expression := range []string{rule.Rule, rule.MessageExpression} {
			if !fieldsRead(expression, read) {
				return s
			}
		}
	}
	small := *s
	small.Properties = make(map[string]structuralschema.Structural, len(read))
	for name := range read {
		if property, ok := s.Properties[name]; ok {
			small.Properties[name] = property
		}
	}
	return &small
}

// fieldsRead adds the fields of self and oldSelf that an expression names. It is false if the
// expression uses self or oldSelf as a whole, or cannot be parsed.
func fieldsRead(expression string, fields map[string]bool) bool {
	if expression == "" {
		return true
	}
	parser, err := celparser.NewParser()
	if err != nil {
		return false
	}
	parsed, faults := parser.Parse(celcommon.NewTextSource(expression))
	if len(faults.GetErrors()) > 0 {
		return false
	}
	known := true
	ofField := map[int64]bool{} // the operands of the selections seen so far
	celast.PreOrderVisit(parsed.Expr(), celast.NewExprVisitor(func(e celast.Expr) {
		switch {
		case e.Kind() == celast.SelectKind && isSelf(e.AsSelect().Operand()):
			name, ok := celescape.Unescape(e.AsSelect().FieldName())
			known = known && ok
			fields[name] = true
			ofField[e.AsSelect().Operand().ID()] = true
		case isSelf(e) && !ofField[e.ID()]:
			known = false
		}
	}))
	return known
}

func isSelf(e celast.Expr) bool {
	return e.Kind() == celast.IdentKind && (e.AsIdent() == "self" || e.AsIdent() == "oldSelf")
}
