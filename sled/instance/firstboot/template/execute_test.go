package template_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	gotemplate "text/template"

	"github.com/sledctl/sledctl/sled/instance/firstboot/template"
)

type guest struct {
	Name string
	Keys []string
	NICs []nic
}

type nic struct {
	MAC     string
	VLAN    int
	AllowIP []string
}

func web1() guest {
	return guest{Name: "web1", Keys: []string{"ssh-ed25519 <a>"}, NICs: []nic{{"02:01", 0, nil}, {"02:02", 7, []string{"10.0.0.1", "10.0.0.2"}}}}
}

// What a template becomes, and in which line it fails, is what text/template says.
func TestATemplateBecomesWhatGoMakesOfIt(t *testing.T) {
	for _, text := range templates() {
		var want, got bytes.Buffer
		expected := goes(&want, text)
		err := template.Execute(&got, text, web1())
		if (err == nil) != (expected == nil) || expected == nil && got.String() != want.String() {
			t.Errorf("%s\ngot  %q, %v\nwant %q, %v", text, got.String(), err, want.String(), expected)
		}
	}
}

func goes(out *bytes.Buffer, text string) error {
	parsed, err := gotemplate.New("").Parse(text)
	if err != nil {
		return err
	}
	return parsed.Execute(out, web1())
}

func templates() []string {
	values := []string{
		".", "$", "nil", "true", "false", "0", "1", "-1", "7", "2.5", "1e3", "0x10", "'a'", "1i", "99999999999999999999", "1e999", `"text"`, "`raw`", ".Name", ".Keys", ".NICs", ".Other",
		".Name.Other", "(index .NICs 1)", "(index .NICs 1).MAC", "(index .NICs 0).AllowIP", "(index .NICs 1).AllowIP", "(index .NICs 2)", "(index .Name 0)", "$.Name", "(len .NICs)", "(nil).Name", "(slice .NICs 1)",
	}
	all := []string{
		"", "plain {", "{{/* nothing */}}", "a {{- .Name -}} b", "{{.Name | printf \"%q %v\" 1}}", "{{.Name", "{{nothing}}", "{{end}}", "{{break}}",
		"{{range .NICs}}{{.MAC}} {{$.Name}} {{end}}", "{{range $i, $n := .NICs}}{{$i}}{{$n.VLAN}}{{end}}{{$i}}", "{{range $n := .NICs}}{{$n.MAC}}{{else}}none{{end}}",
		"{{range (index .NICs 0).AllowIP}}x{{else}}none{{end}}", "{{range .Name}}x{{end}}", "{{range 3}}{{.}}{{end}}", "{{range $i := 3}}{{$i}}{{end}}", "{{range $i, $j := 3}}{{$i}}{{end}}", "{{range 0}}x{{else}}y{{end}}",
		"{{range index .Name 0}}{{.}}{{end}}", "{{range nil}}{{end}}", "{{range .Keys}}{{break}}{{end}}", "{{range .NICs}}{{if .VLAN}}{{continue}}{{end}}{{.MAC}}{{end}}",
		"{{range .NICs}}{{range .AllowIP}}{{.}}{{break}}{{end}};{{end}}", "{{range .NICs}}{{range .AllowIP}}{{else}}{{break}}{{end}}{{.MAC}}{{end}}", "{{range .NICs}}{{range .AllowIP}}{{else}}{{continue}}{{end}}{{.MAC}}{{end}}",
		"{{$x := 1}}{{range .NICs}}{{$x = .VLAN}}{{end}}{{$x}}", "{{$x := 1}}{{if true}}{{$x := 2}}{{$x}}{{end}}{{$x}}", "{{with $x := .Name}}{{$x}}{{.}}{{end}}", "{{with .Keys}}{{len .}}{{else}}none{{end}}",
		"{{with nil}}a{{else with .Name}}{{.}}{{end}}", "{{if eq .Name \"web1\" \"web2\"}}a{{else if true}}b{{else}}c{{end}}", "{{$i := 0}}{{$n := 0}}{{range $i, $n = .NICs}}{{$i}}{{$n.MAC}}{{end}}{{$i}}", "{{$n := 0}}{{range $n = .NICs}}{{end}}{{$n.MAC}}",
		"{{define \"a\"}}<{{.}}{{$}}>{{end}}{{template \"a\"}}{{template \"a\" .Name}}{{$x := 1}}{{template \"a\" $x}}", "{{template \"none\"}}", "{{block \"b\" .Keys}}{{len .}}{{end}}", "{{define \"a\"}}{{$x}}{{end}}",
		"{{define \"a\"}}{{template \"a\"}}{{end}}{{template \"a\"}}", "{{define \"a\"}}x{{end}}{{define \"a\"}}y{{end}}", "{{template \"\" .}}", "{{print}}{{println}}{{html}}", "{{and}}", "{{not}}", "{{eq 1}}", "{{lt 1 2 3}}",
		"{{if and .Name (index .NICs 9)}}x{{end}}", "{{or .Name (index .NICs 9)}}", "{{and nil (index .NICs 9)}}", "{{.Name | and 1}}", "{{.Name | or nil}}", "{{.Name | and nil}}", "{{.Name 1}}", "{{1 | .Name}}", "{{true 1}}", "{{$ 1}}",
		"{{printf}}", "{{printf 1}}", "{{printf .Name}}", "{{\"%s\" | printf}}", "{{call .Name}}", "{{call nil}}", "{{slice .Name 1 2}}", "{{slice .Name 1 2 3}}", "{{slice .Keys 0 1 1}}", "{{slice .Keys 0 1 1 1}}", "{{slice .Name 3 1}}", "{{slice .Name 9}}", "{{slice .Name}}",
		"{{index .Name}}", "{{index .NICs 1 2}}", "{{index .Name -1}}", "{{index .Name 4}}", "{{index .Name nil}}", "{{slice .Name 4}}", "{{slice .Keys 2}}", "{{(print .Name).Other}}", "{{print print}}", "{{.Name.}}", "{{print (len .Keys) | printf \"%s-%d\" .Name}}",
	}
	for _, a := range values {
		all = append(all, "{{"+a+"}}", "{{if "+a+"}}yes{{end}}", "{{with "+a+"}}{{.}}{{end}}", "{{$x := "+a+"}}{{$x}}")
		for _, f := range []string{"print", "println", "html", "js", "urlquery", "len", "not", "index", "slice", "and", "or", "call", "printf", "printf \"%v|%T\" 1"} {
			all = append(all, "{{"+f+" "+a+"}}", "{{"+a+" | "+f+"}}")
		}
		for _, b := range values {
			for _, f := range []string{"eq", "ne", "lt", "le", "gt", "ge", "index", "slice", "and", "or", "print"} {
				all = append(all, "{{"+f+" "+a+" "+b+"}}")
			}
		}
	}
	return all
}

// An error has the line, and what is known of the reason.
func TestErrorsSayTheLine(t *testing.T) {
	for text, want := range map[string]template.Error{
		"a\n{{.Other}}":   {Line: 2, Field: "Other"},
		"\n\n{{nothing}}": {Line: 3},
		"{{define `a`}}\n{{.A}}{{end}}\n{{template `a` .}}": {Line: 2, Field: "A"},
		"{{index .Keys 1}}":   {Line: 1, Err: template.ErrIndex},
		"\n{{slice .Name 9}}": {Line: 2, Err: template.ErrIndex},
	} {
		var out strings.Builder
		got, ok := errors.AsType[*template.Error](template.Execute(&out, text, web1()))
		if !ok || got.Line != want.Line || got.Field != want.Field || want.Err != nil && !errors.Is(got, want.Err) || got.Error() == "" {
			t.Errorf("%q: %v", text, got)
		}
	}
}
