package render

import (
	"errors"

	"sigs.k8s.io/kustomize/api/filters/nameref"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	kustypes "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
)

// reference is a field that names an object with its namespace. Kustomize writes there what the
// object is called at the end, by its nameReferenceTransformer.
type reference struct {
	to resid.Gvk
	in kustypes.FieldSpec
}

// references are those of kustomize's api/internal/konfig/builtinpluginconsts/namereference.go that
// lead to a mapping, not to a name alone.
func references() []reference {
	account, service := resid.Gvk{Version: "v1", Kind: "ServiceAccount"}, resid.Gvk{Version: "v1", Kind: "Service"}
	binding := func(kind string) kustypes.FieldSpec {
		return kustypes.FieldSpec{Path: "subjects", Gvk: resid.Gvk{Group: "rbac.authorization.k8s.io", Kind: kind}}
	}
	webhook := func(kind string) kustypes.FieldSpec {
		return kustypes.FieldSpec{Path: "webhooks/clientConfig/service", Gvk: resid.Gvk{Group: "admissionregistration.k8s.io", Kind: kind}}
	}
	return []reference{
		{account, binding("RoleBinding")}, {account, binding("ClusterRoleBinding")},
		{service, webhook("ValidatingWebhookConfiguration")}, {service, webhook("MutatingWebhookConfiguration")},
	}
}

// refer does with kustomize's own filter what its nameReferenceTransformer does once all is in place:
// it writes the namespaces of objects that a transformer has touched into the references to them. It
// returns false where a name has changed, which far more fields may hold, and where the filter finds
// fault.
func refer(parts []*part) bool {
	touched := map[string]bool{}
	for _, p := range parts {
		was, is := p.original(), p.res.CurId()
		if was.Kind != is.Kind || was.Name != is.Name && is.Kind != "Namespace" {
			return false
		}
		touched[is.Kind] = touched[is.Kind] || len(p.before) > 0
	}
	for _, r := range references() {
		if touched[r.to.Kind] && !r.mend(parts) {
			return false
		}
	}
	return true
}

// mend has kustomize rewrite the reference in all objects that hold it.
func (r reference) mend(parts []*part) bool {
	var all resmap.ResMap
	for _, p := range parts {
		org := p.original()
		if !org.IsSelected(&r.in.Gvk) {
			continue
		}
		if all == nil {
			var ok bool
			if all, ok = candidates(parts, r.to.Kind); !ok {
				return false
			}
		}
		reachable, err := all.SubsetThatCouldBeReferencedByResource(p.res)
		if err != nil || p.res.ApplyFilter(nameref.Filter{
			Referrer: p.res, NameFieldToUpdate: r.in, ReferralTarget: r.to, ReferralCandidates: reachable,
		}) != nil {
			return false
		}
	}
	return true
}

// candidates are copies of the objects of a kind that note what those were called before.
func candidates(parts []*part, kind string) (resmap.ResMap, bool) {
	out := resmap.New()
	for _, p := range parts {
		if p.res.GetKind() != kind {
			continue
		}
		noted, err := p.noted()
		if err != nil || out.Append(noted) != nil {
			return nil, false
		}
	}
	return out, true
}

// noted is a copy of the object with kustomize's notes about the identities it had.
func (p *part) noted() (*resource.Resource, error) {
	r, out := p.res.DeepCopy(), p.res.DeepCopy()
	be := func(id resid.ResId) error {
		r.SetKind(id.Kind)
		return errors.Join(r.SetName(id.Name), r.SetNamespace(id.Namespace))
	}
	for _, id := range p.before {
		if err := be(id); err != nil {
			return nil, err
		}
		r.StorePreviousId()
	}
	if len(p.before) == 0 {
		return out, nil
	}
	// Only the notes are taken over: to name the object anew would drop an empty namespace.
	return out, out.SetAnnotations(r.GetAnnotations())
}
