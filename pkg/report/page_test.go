package report

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func parsePage(t *testing.T, data []byte) *html.Node {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// checkPage holds a page to what every report promises: it loads nothing, runs only its own script under
// a policy that allows no other, names nothing twice, and every link leads somewhere on it.
func checkPage(t *testing.T, doc *html.Node) {
	t.Helper()
	ids := map[string]bool{}
	for _, n := range find(doc, func(n *html.Node) bool { return n.Type == html.ElementNode }) {
		if id := attribute(n, "id"); id != "" {
			if ids[id] {
				t.Errorf("id %s is there twice", id)
			}
			ids[id] = true
		}
	}
	var scripts, styles []string
	policy := ""
	for _, n := range find(doc, func(n *html.Node) bool { return n.Type == html.ElementNode }) {
		switch n.Data {
		case "script":
			scripts = append(scripts, textOf(n))
		case "style":
			styles = append(styles, textOf(n))
		case "link", "img", "image", "iframe", "object", "embed", "base", "form", "audio", "video", "source", "foreignObject", "foreignobject":
			t.Errorf("there is an element %s", n.Data)
		}
		if attribute(n, "http-equiv") == "Content-Security-Policy" {
			policy = attribute(n, "content")
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "href":
				if !strings.HasPrefix(a.Val, "#") || !ids[a.Val[1:]] {
					t.Errorf("%s leads to %q", n.Data, a.Val)
				}
			case a.Key == "src", a.Key == "srcset", a.Key == "style", strings.HasPrefix(a.Key, "on"):
				t.Errorf("%s has the attribute %s=%q", n.Data, a.Key, a.Val)
			case a.Key != "title" && strings.Contains(a.Val, "://"):
				t.Errorf("%s refers to %q", n.Data, a.Val)
			}
		}
	}
	if len(scripts) != 1 || len(styles) != 1 {
		t.Fatalf("%d scripts and %d styles", len(scripts), len(styles))
	}
	for _, own := range []string{scripts[0], styles[0]} {
		if strings.Contains(own, "://") || strings.Contains(own, "@import") || strings.Contains(strings.ReplaceAll(own, "url(#", ""), "url(") {
			t.Errorf("this refers to something: %s", own)
		}
		if !strings.Contains(policy, digest(own)) {
			t.Errorf("the policy %s allows neither %s nor what it is of: %.80s", policy, digest(own), own)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is %s", policy)
	}
}

// find lists the nodes below n that fit, in the order of the document.
func find(n *html.Node, fits func(*html.Node) bool) []*html.Node {
	var out []*html.Node
	for d := range n.Descendants() {
		if fits(d) {
			out = append(out, d)
		}
	}
	return out
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func hasClass(n *html.Node, class string) bool {
	return slices.Contains(strings.Fields(attribute(n, "class")), class)
}

// textOf is all text of a node, without the tags.
func textOf(n *html.Node) string {
	var b strings.Builder
	for _, d := range find(n, func(d *html.Node) bool { return d.Type == html.TextNode }) {
		b.WriteString(d.Data)
	}
	return b.String()
}
