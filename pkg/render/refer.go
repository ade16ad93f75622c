package render

import (
	"slices"

	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
)

// mended reports whether kustomize may change objects because the name or the namespace of another
// one has changed, which they refer to: nameReferenceTransformer with the references of kustomize's
// api/internal/konfig/builtinpluginconsts/namereference.go.
func mended(parts []*part) bool {
	moved := map[string]bool{}
	accounts := map[string][]string{}
	for _, p := range parts {
		was, is := p.original(), p.res.CurId()
		if was.Kind != is.Kind || was.Name != is.Name && is.Kind != "Namespace" {
			return true
		}
		if was.Namespace != is.Namespace { // also "" to "default", which are one namespace and not one text
			moved[is.Kind] = true
		}
		if is.Kind == "ServiceAccount" {
			accounts[is.Name] = append(accounts[is.Name], is.Namespace)
		}
	}
	return slices.ContainsFunc(parts, func(p *part) bool {
		switch p.res.GetKind() {
		case "RoleBinding", "ClusterRoleBinding":
			return moved["ServiceAccount"] && !binds(&p.res.RNode, accounts)
		case "CustomResourceDefinition":
			webhook, err := p.res.Pipe(kyaml.Lookup("spec", "conversion", "webhook"))
			return moved["Service"] && (err != nil || webhook != nil)
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService":
			return moved["Service"]
		}
		return false
	})
}

// binds reports whether each subject of a binding that may be an account of the build names the one
// there is as it is now.
func binds(binding *kyaml.RNode, accounts map[string][]string) bool {
	subjects, err := binding.Pipe(kyaml.Lookup("subjects"))
	if err != nil {
		return false
	}
	if subjects == nil {
		return true
	}
	elements, err := subjects.Elements()
	if err != nil {
		return false
	}
	return !slices.ContainsFunc(elements, func(s *kyaml.RNode) bool {
		if scalar(s, "kind") != "ServiceAccount" {
			return false
		}
		found := accounts[scalar(s, "name")]
		return len(found) > 1 || len(found) == 1 && found[0] != scalar(s, "namespace")
	})
}
