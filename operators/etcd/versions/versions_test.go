package versions

import (
	"fmt"
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want, wrong string }{
		"the same":                                    {from: "3.6.16", to: "v3.6.16"},
		"another patch release":                       {from: "3.6.15", to: "3.6.16", want: "3.6.16"},
		"back to an earlier patch release":            {from: "3.6.16", to: "3.6.8", want: "3.6.8"},
		"the next minor version":                      {from: "3.5.35", to: "3.6.16", want: "3.6.16"},
		"two minor versions":                          {from: "3.5.35", to: "3.7.3", want: "3.6.16 3.7.3"},
		"four minor versions":                         {from: "3.3.10", to: "3.7.3", want: "3.4.37 3.5.35 3.6.16 3.7.3"},
		"to 3.6 from too early a patch release":       {from: "3.5.21", to: "3.6.16", want: "3.5.35 3.6.16"},
		"to 3.7 from too early a patch release":       {from: "3.6.8", to: "3.7.3", want: "3.6.16 3.7.3"},
		"a release candidate":                         {from: "3.6.16", to: "3.7.0-rc.1", want: "3.7.0-rc.1"},
		"one minor version down":                      {from: "3.7.3", to: "3.6.16", want: "3.6.16"},
		"down to 3.5":                                 {from: "3.6.16", to: "3.5.35", want: "3.5.35"},
		"two minor versions down":                     {from: "3.7.3", to: "3.5.35", wrong: "by one minor version, to 3.6"},
		"down to 3.4":                                 {from: "3.5.35", to: "3.4.37", wrong: "downgrades are possible from 3.6 on"},
		"a minor version that the operator knows not": {from: "3.7.3", to: "3.8.0", wrong: "newer than this operator knows"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := Path(parsed(t, tc.from), parsed(t, tc.to))
			if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("the error is %v, want %q", err, tc.wrong)
			}
			if got := strings.Trim(fmt.Sprint(path), "[]"); got != tc.want {
				t.Errorf("the path is %q, want %q", got, tc.want)
			}
		})
	}
}

func parsed(t *testing.T, text string) Version {
	t.Helper()
	v, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestParse(t *testing.T) {
	for _, text := range []string{"", "3", "3.6", "2.3.8", "3.6.x", "latest", "3.-1.2", "3.6.16+more", "3.6.16-", "03.6.1"} {
		if v, err := Parse(text); err == nil {
			t.Errorf("%q is %s", text, v)
		}
	}
	ordered := []string{"3.2.13", "3.4.9", "3.4.10", "3.6.0-alpha.3", "3.6.0-rc.2", "3.6.0-rc.10", "3.6.0", "3.6.1"}
	for i := range ordered {
		for j := range ordered {
			if got := parsed(t, ordered[i]).Less(parsed(t, ordered[j])); got != (i < j) {
				t.Errorf("%s before %s: %t", ordered[i], ordered[j], got)
			}
		}
	}
	if !(Version{}).Less(parsed(t, "3.0.0")) || !(Version{}).IsZero() || (Version{}).String() != "" {
		t.Error("no version is not before all others")
	}
	if minor, err := ParseMinor("3.6.0"); minor != 6 || err != nil {
		t.Errorf("the minor version of 3.6.0 is %d (%v)", minor, err)
	}
	if MinorOf("3.6.0") != "3.6" || MinorOf("") != "" {
		t.Error("the minor version of 3.6.0 is not 3.6")
	}
}
