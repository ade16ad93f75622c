package report

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
)

// pages holds the templates of the HTML reports, and the styles and scripts that are written into them.
//
//go:embed pages
var pages embed.FS

// page is what every HTML report has: its own style and script, and a policy by which a browser runs
// these two and loads nothing. So a report is one file that can be kept, sent and opened anywhere, and
// what it quotes from a repository is text even if the escaping had a hole.
type page struct {
	Style  template.CSS
	Script template.JS
	Policy string
}

// newPage reads the parts of a report by their names in pages.
func newPage(style, script []string) (page, error) {
	css, err := concatenate(style)
	if err != nil {
		return page{}, err
	}
	js, err := concatenate(script)
	if err != nil {
		return page{}, err
	}
	return page{
		Style: template.CSS(css), Script: template.JS(js), // ours, embedded: nothing of a repository
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; style-src " + digest(css) + "; script-src " + digest(js),
	}, nil
}

func concatenate(names []string) (string, error) {
	var all []byte
	for _, name := range names {
		data, err := pages.ReadFile("pages/" + name)
		if err != nil {
			return "", err
		}
		all = append(all, data...)
	}
	return string(all), nil
}

// digest is the source expression of a Content-Security-Policy that allows this text and no other.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// writePage fills the template of that name.
func writePage(w io.Writer, name string, data any) error {
	t, err := template.ParseFS(pages, "pages/*.gohtml")
	if err != nil {
		return err
	}
	return t.ExecuteTemplate(w, name, data)
}
