package api

import "testing"

// What the version policy says to every kind of header.
func TestSpoken(t *testing.T) {
	for header, want := range map[string]struct {
		version Version
		refused bool
	}{
		"":                         {refused: true},
		"48":                       {refused: true},
		"48.0":                     {refused: true},
		"48.0.0.0":                 {refused: true},
		"v48.0.0":                  {refused: true},
		"48.0.x":                   {refused: true},
		"048.0.0":                  {refused: true},
		"+1.0.0":                   {refused: true},
		"1..0":                     {refused: true},
		"49.0.0":                   {refused: true},
		"48.0.1":                   {refused: true},
		"99999999999999999999.0.0": {refused: true},
		"48.0.0":                   {version: Version{Major: 48}},
		"47.12.3":                  {version: Version{47, 12, 3}},
		"1.0.0":                    {version: Version{Major: 1}},
		"0.1.0":                    {version: Version{Minor: 1}},
	} {
		got, err := ParseAPIVersion(header)
		if got != want.version || (err != nil) != want.refused || err != nil && err.Status != 400 {
			t.Errorf("%q: %v, %v", header, got, err)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"48.0.0", "", "..", "1.2.3-x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := ParseVersion(text); err == nil && v.String() != text {
			t.Errorf("%q is read as %s", text, v)
		}
	})
}
