// Package docs says where the documentation is, for messages: whoever reads them has no copy of this repository.
package docs

// Base is the address of the pages. A build for another one sets it by the linker:
// -ldflags "-X example.com/fairlead/internal/kit/docs.Base=https://docs.example.org/fairlead". The charts have it as the
// value documentation.
var Base = "https://fairlead.example.com/docs"

// Page is the address of a page, such as etcd.md#users.
func Page(name string) string { return Base + "/" + name }
