package main

import "testing"

func TestOtherPath(t *testing.T) {
	for _, test := range []struct{ live, read, want string }{
		{"./clusters/prod", "clusters/prod/", ""},
		{"", "./", ""},
		{"./clusters/prod", "./clusters/dev", "./clusters/prod"},
		{"clusters/prod", "", "./clusters/prod"},
	} {
		if got := otherPath(test.live, test.read); got != test.want {
			t.Errorf("otherPath(%q, %q) = %q, want %q", test.live, test.read, got, test.want)
		}
	}
}
